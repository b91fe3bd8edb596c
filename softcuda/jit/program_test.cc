// Loading: what it refuses, what it leaves to the first launch, and that code kept on disk is the same code.
#include "softcuda/jit/program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "softcuda/jit/code_cache.h"
#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class Programs : public TestRig {};

constexpr char kOneBad[] = R"(
.func (.param .b32 r) odd(.param .b32 n)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [n];
  frobnicate.b32 %r2, %r1;
  st.param.b32 [r], %r2; ret;
}
.visible .entry good(.param .u64 at) { .reg .b64 %rd; ld.param.u64 %rd, [at]; st.global.u32 [%rd], 42; ret; }
.visible .entry bad(.param .u64 at)
{
  .reg .b64 %rd; .reg .b32 %r;
  ld.param.u64 %rd, [at];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], 1; call.uni (b), odd, (a); ld.param.b32 %r, [b]; }
  st.global.u32 [%rd], %r; ret;
}
)";

TEST_F(Programs, OneKernelThatCannotRunLeavesTheOthers) {
  auto program = Load(kOneBad);
  ASSERT_TRUE(program);
  auto* p = Allocate<uint32_t>(1);
  Run(*program, "good", {}, p);
  EXPECT_EQ(*p, 42u);
  EXPECT_EQ(program->Info(program->FindKernel("good")).refusal, "");
  // Three lines of header, and five of the function.
  std::string why = program->Info(program->FindKernel("bad")).refusal;
  EXPECT_NE(why.find("line 9"), std::string::npos) << why;
  EXPECT_NE(why.find("frobnicate.b32"), std::string::npos) << why;
  auto outcome = TryRun(*program, "bad", {}, p);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().blame, Blame::kUnsupported);
  EXPECT_NE(outcome.error().sentence.find("`bad`"), std::string::npos) << outcome.error().sentence;
  EXPECT_NE(outcome.error().sentence.find("frobnicate"), std::string::npos) << outcome.error().sentence;
}

TEST_F(Programs, WhatNoKernelReachesIsInNobodysWay) {
  auto program =
      Load(".func f() { .reg .b32 %r<3>; frobnicate.b32 %r0, %r1; ret; } .visible .entry k() { ret; }");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->kernels()[0].refusal, "");
}

TEST_F(Programs, AModuleOfWhichNothingRunsIsRefused) {
  auto program = TryLoad(".visible .entry k() { .reg .b32 %r<3>; frobnicate.b32 %r0, %r1; ret; }");
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().sentence.find("frobnicate"), std::string::npos);
}

// ------------------------------------------------------------------------------------------- code on disk

constexpr char kAdds[] = R"(
.global .u32 step = 3;
.visible .entry add(.param .u64 at)
{
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r2, [step]; mad.lo.u32 %r3, %r1, %r2, 5; st.global.u32 [%rd1], %r3; ret;
}
.visible .entry sum(.param .u64 at)
{
  .shared .align 4 .b32 all[64];
  .reg .b64 %rd; .reg .b32 %r<9>; .reg .pred %p;
  ld.param.u64 %rd, [at]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, all; add.u32 %r2, %r2, %r3;
  st.shared.u32 [%r2], %r1; bar.sync 0;
  xor.b32 %r4, %r1, 63; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4];
  mul.wide.u32 %rd, %r1, 1; ld.param.u64 %rd, [at];
  setp.ne.u32 %p, %r1, 7; @%p ret; st.global.u32 [%rd], %r5; ret;
}
)";

class CodeOnDisk : public TestRig {
 protected:
  void SetUp() override {
    TestRig::SetUp();
    std::string form = (std::filesystem::temp_directory_path() / "code_on_disk.XXXXXX").string();
    ASSERT_TRUE(mkdtemp(form.data()));
    folder_ = form;
  }
  void TearDown() override {
    TestRig::TearDown();
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<CodeCache> Open(uint64_t most = 64 << 20) {
    auto cache = CodeCache::Open(folder_, most);
    EXPECT_TRUE(cache.ok()) << cache.error().sentence;
    return cache.ok() ? *std::move(cache) : nullptr;
  }
  std::vector<std::filesystem::path> Entries() const {
    std::vector<std::filesystem::path> out;
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      if (e.path().filename().string().size() == 64) out.push_back(e.path());
    }
    return out;
  }
  /// Runs both kernels of kAdds, compiled with that cache, and looks at what they computed.
  void Check(CodeCache& cache) {
    CompileOptions options;
    options.cache = &cache;
    auto program = Load(kAdds, options);
    ASSERT_TRUE(program);
    auto* out = Allocate<uint32_t>(64);
    Run(*program, "add", {{1, 1, 1}, {64, 1, 1}}, out);
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i * 3 + 5);
    Run(*program, "sum", {{1, 1, 1}, {64, 1, 1}}, out);
    EXPECT_EQ(out[0], 63u - 7);
  }

  std::string folder_;
};

TEST_F(CodeOnDisk, IsTheSameCodeWithVariablesElsewhere) {
  auto first = Open();
  Check(*first);
  EXPECT_EQ(first->hits(), 0u);
  EXPECT_EQ(first->misses(), 2u);
  EXPECT_EQ(Entries().size(), 2u);
  auto second = Open();
  Check(*second);  // the variable lies elsewhere now
  EXPECT_EQ(second->hits(), 2u);
  EXPECT_EQ(second->misses(), 0u);
  // Another level is other code.
  CompileOptions options;
  options.cache = second.get();
  options.level = 0;
  auto program = Load(kAdds, options);
  ASSERT_TRUE(program->Prepare(program->FindKernel("add"), {32, 1, 1}).ok());
  EXPECT_EQ(second->misses(), 1u);
}

TEST_F(CodeOnDisk, DamagedEntriesAreNone) {
  Check(*Open());
  for (int way = 0; way < 4; ++way) {
    for (const auto& path : Entries()) {
      auto size = std::filesystem::file_size(path);
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      if (way == 0) file.seekp(static_cast<std::streamoff>(size / 2)), file.put('\x5a'), file.put('\xa5');
      if (way == 1) file.seekp(8), file.put('\x7f');
      if (way == 2) file.close(), std::filesystem::resize_file(path, size - 1);
      if (way == 3) file.close(), std::filesystem::resize_file(path, 3);
    }
    auto cache = Open();
    Check(*cache);
    EXPECT_EQ(cache->hits(), 0u) << way;
    EXPECT_EQ(cache->misses(), 2u) << way;
    auto again = Open();  // whole again
    Check(*again);
    EXPECT_EQ(again->hits(), 2u) << way;
  }
}

TEST_F(CodeOnDisk, KernelsThatDifferInWhatTheyCallAreDifferent) {
  auto cache = Open();
  CompileOptions options;
  options.cache = cache.get();
  for (uint32_t factor : {5u, 7u}) {
    auto program = Load(fmt::format(R"(
.func (.param .b32 r) f(.param .b32 n)
{{ .reg .b32 %r; ld.param.b32 %r, [n]; mul.lo.u32 %r, %r, {}; st.param.b32 [r], %r; ret; }}
.visible .entry k(.param .u64 at)
{{
  .reg .b64 %rd; .reg .b32 %r; ld.param.u64 %rd, [at];
  {{ .param .b32 a; .param .b32 b; st.param.b32 [a], 6; call.uni (b), f, (a); ld.param.b32 %r, [b]; }}
  st.global.u32 [%rd], %r; ret;
}})",
                                    factor),
                        options);
    auto* out = Allocate<uint32_t>(1);
    Run(*program, "k", {}, out);
    EXPECT_EQ(out[0], 6 * factor);
  }
  EXPECT_EQ(cache->misses(), 2u);
}

}  // namespace
}  // namespace cuplex::softcuda
