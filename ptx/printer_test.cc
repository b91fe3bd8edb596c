#include "ptx/printer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "ptx/parser.h"

namespace cuplex::ptx {
namespace {

std::string TextOfFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Printer, WritesWhatItSays) {
  auto module = Parse(R"(.version 8.3 .target sm_90 .address_size 64
.visible .global .align 8 .v2 .f32 g[2] = {{0f3F800000,-1},{}}; .extern .shared .b8 d[];
.func (.param .b32 r)f(.param .align 8 .b8 a[16]);
.entry k(.param .u64 .ptr .global .align 4 p).maxntid 32,1,1{.reg .pred q;.reg .b64 %rd<3>;.reg .v4 .b32 v;
@!q ld.global.u32 v.y,[%rd1+-4];mov.b64 %rd2,g+8;st.global.u64[g+16],-9223372036854775808;
L:{.param .b32 r0;call(r0),f,(v);}@q bra L;shfl.sync.idx.b32 v.x|q,v.y,0,31,-1;
tex.2d.v4.f32.f32{v.x,v.y,v.z,_},[%rd1,{v.x,v.y}];})");
  ASSERT_TRUE(module.ok()) << module.error().sentence;
  EXPECT_EQ(Print(*module), R"(.version 8.3
.target sm_90
.address_size 64

.visible .global .align 8 .v2 .f32 g[2] = {{0f3F800000, -1}, {}};
.extern .shared .b8 d[];
.func (.param .b32 r) f(.param .align 8 .b8 a[16]);
.entry k(.param .u64 .ptr .global .align 4 p)
.maxntid 32, 1, 1
{
	.reg .pred q;
	.reg .b64 %rd<3>;
	.reg .v4 .b32 v;
	@!q ld.global.u32 v.y, [%rd1+-4];
	mov.b64 %rd2, g+8;
	st.global.u64 [g+16], 0x8000000000000000;
L:
	{
		.param .b32 r0;
		call (r0), f, (v);
	}
	@q bra L;
	shfl.sync.idx.b32 v.x|q, v.y, 0, 31, -1;
	tex.2d.v4.f32.f32 {v.x, v.y, v.z, _}, [%rd1, {v.x, v.y}];
}
)");
}

TEST(Printer, PrintsAddedRegistersUnderFreshNames) {
  auto module = Parse(R"(.version 8.3 .target sm_90 .global .b32 %cx1_0;
.entry k() { .reg .b32 %cx0_1, a; mov.b32 a, 0; { .reg .b32 %cx2_<7>; mov.b32 %cx2_1, %cx1_0; } })");
  ASSERT_TRUE(module.ok()) << module.error().sentence;
  Function& k = module->functions[0];
  EXPECT_EQ(module->AddRegisters(k, Type::kB64, 2), 9u);
  EXPECT_EQ(module->AddRegisters(k, Type::kPred, 1), 11u);
  EXPECT_EQ(k.TypeOfRegister(10), Type::kB64);
  EXPECT_EQ(k.TypeOfRegister(11), Type::kPred);
  k.instructions[0].operands[1] = Operand::Register(10);
  auto again = Parse(Print(*module));
  ASSERT_TRUE(again.ok()) << again.error().sentence << Print(*module);
  const Function& back = again->functions[0];
  EXPECT_EQ(back.register_count, 12u);
  EXPECT_EQ(back.NameOfRegister(back.instructions[0].operands[0].id), "a");
  EXPECT_EQ(back.TypeOfRegister(back.instructions[0].operands[1].id), Type::kB64);
  EXPECT_EQ(back.instructions[1].operands[1].symbol, SymbolKind::kGlobalVariable);
}

class Testdata : public testing::TestWithParam<const char*> {};

TEST_P(Testdata, ComesBackFromPrintTheSame) {
  auto module = Parse(TextOfFile(std::filesystem::path(CUPLEX_PTX_TESTDATA) / GetParam()));
  ASSERT_TRUE(module.ok()) << module.error().sentence;
  EXPECT_TRUE(module->words.empty()) << "not in the vocabulary: " << module->words[0];
  std::string text = Print(*module);
  auto again = Parse(text);
  ASSERT_TRUE(again.ok()) << again.error().sentence;
  EXPECT_TRUE(*again == *module);
  EXPECT_EQ(Print(*again), text);
}

TEST_P(Testdata, AssemblesAfterPrint) {
  std::string ptxas = CUPLEX_PTXAS;
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas on this machine";
  auto module = Parse(TextOfFile(std::filesystem::path(CUPLEX_PTX_TESTDATA) / GetParam()));
  ASSERT_TRUE(module.ok()) << module.error().sentence;
  std::string directory = testing::TempDir() + "/cuplex_ptx_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  std::ofstream(directory + "/printed.ptx") << Print(*module);
  std::string command = "'" + ptxas + "' -arch=" + module->target.at(0) + " -o '" + directory + "/out' '" +
                        directory + "/printed.ptx'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(Files, Testdata,
                         testing::Values("dialects_sm75.ptx", "dialects_sm90.ptx", "dialects_sm120.ptx",
                                         "dialects_minified.ptx", "language.ptx"));

// One program in four spellings is one program.
TEST(Dialects, MinifiedTextIsTheSameModule) {
  auto wide = Parse(TextOfFile(CUPLEX_PTX_TESTDATA "/dialects_sm90.ptx"));
  auto minified = Parse(TextOfFile(CUPLEX_PTX_TESTDATA "/dialects_minified.ptx"));
  ASSERT_TRUE(wide.ok() && minified.ok());
  EXPECT_TRUE(*wide == *minified);
}

}  // namespace
}  // namespace cuplex::ptx
