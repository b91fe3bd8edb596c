#include "ptx/passes/slice.h"

#include <gtest/gtest.h>

#include "ptx/parser.h"
#include "ptx/printer.h"

namespace cuplex::ptx {
namespace {

constexpr std::string_view kHead = ".version 8.3 .target sm_90 .address_size 64\n";

SlicedModule SliceOf(const std::string& text, std::vector<std::string_view> wanted = {}) {
  auto module = Parse(std::string(kHead) + text);
  EXPECT_TRUE(module.ok()) << module.error().sentence;
  if (!module.ok()) return {};
  auto sliced = Slice(*module, wanted);
  EXPECT_TRUE(sliced.ok()) << sliced.error().sentence;
  if (!sliced.ok()) return {};
  if (!sliced->text.empty()) {
    auto again = Parse(sliced->text);
    EXPECT_TRUE(again.ok()) << again.error().sentence << '\n' << sliced->text;
    if (again.ok()) EXPECT_EQ(Print(*again), sliced->text);
  }
  return *std::move(sliced);
}

TEST(Slice, OneAxisIsAnOffset) {
  const SlicedModule sliced =
      SliceOf(R"(.visible .entry k(.param .u64 p, .param .u32 n) .maxntid 64, 1, 1 .minnctapersm 2 {
.reg .b32 %r<4>; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ntid.x; ret; })");
  EXPECT_EQ(sliced.text, R"(.version 8.3
.target sm_90
.address_size 64

.visible .entry k(.param .u64 p, .param .u32 n, .param .align 8 .b8 cuplex_slice[32])
.maxntid 64, 1, 1
.minnctapersm 2
{
	.reg .b32 %cx0_<4>;
	ld.param.u32 %cx0_0, [cuplex_slice+4];
	ld.param.u32 %cx0_1, [cuplex_slice];
	mov.u32 %cx0_2, %ctaid.x;
	add.u32 %cx0_3, %cx0_2, %cx0_1;
	.reg .b32 %r<4>;
	mov.u32 %r1, %cx0_3;
	mov.u32 %r2, %cx0_0;
	mov.u32 %r3, %ntid.x;
	ret;
}
)");
  ASSERT_EQ(sliced.kernels.size(), 1u);
  const SlicedKernel& kernel = sliced.kernels[0];
  EXPECT_EQ(kernel.name, "k");
  EXPECT_EQ(kernel.refusal, "");
  EXPECT_EQ(kernel.axes, 1u);
  EXPECT_EQ(kernel.arguments_offset, 16u);  // after 12 bytes, aligned to 8
  EXPECT_EQ(kernel.arguments_size, 32u);
}

TEST(Slice, FunctionsAreGivenWhatTheyRead) {
  const SlicedModule sliced = SliceOf(R"(.global .u32 g[4];
.func (.param .b32 r) inner(.param .b32 a) {
.reg .b32 %r<3>; mov.u32 %r1, %ctaid.y; ld.global.u32 %r2, [g+8]; st.param.b32 [r], %r1; ret; }
.visible .func outer { .reg .b32 %r<2>; .param .b32 a; .param .b32 r; call (r), inner, (a); ret; }
.func other { ret; }
.entry k() { call outer; call other; ret; })");
  EXPECT_EQ(sliced.text, R"(.version 8.3
.target sm_90
.address_size 64

.func outer(.reg .b32 %cx0_, .reg .b64 %cx1_);
.func other();
.func (.param .b32 r) inner(.param .b32 a, .reg .b32 %cx0_, .reg .b64 %cx1_);
.entry k(.param .align 8 .b8 cuplex_slice[40])
{
	.reg .b64 %cx1_<1>;
	.reg .b32 %cx0_<8>;
	ld.param.u32 %cx0_0, [cuplex_slice];
	mov.u32 %cx0_1, %ctaid.x;
	add.u32 %cx0_2, %cx0_1, %cx0_0;
	ld.param.u32 %cx0_3, [cuplex_slice+16];
	ld.param.u32 %cx0_4, [cuplex_slice+20];
	add.u32 %cx0_5, %cx0_2, %cx0_2;
	mul.hi.u32 %cx0_6, %cx0_5, %cx0_3;
	shr.u32 %cx0_7, %cx0_6, %cx0_4;
	ld.param.u64 %cx1_0, [cuplex_slice+32];
	call outer, (%cx0_7, %cx1_0);
	call other;
	ret;
}
.func outer(.reg .b32 %cx0_, .reg .b64 %cx1_)
{
	.reg .b32 %r<2>;
	.param .b32 a;
	.param .b32 r;
	call (r), inner, (a, %cx0_, %cx1_);
	ret;
}
.func other()
{
	ret;
}
.func (.param .b32 r) inner(.param .b32 a, .reg .b32 %cx0_, .reg .b64 %cx1_)
{
	.reg .b32 %r<3>;
	mov.u32 %r1, %cx0_;
	ld.global.u32 %r2, [%cx1_+8];
	st.param.b32 [r], %r1;
	ret;
}
)");
  ASSERT_EQ(sliced.kernels.size(), 1u);
  EXPECT_EQ(sliced.kernels[0].axes, 2u);
  EXPECT_EQ(sliced.kernels[0].arguments_offset, 0u);
  EXPECT_EQ(sliced.kernels[0].arguments_size, 40u);
  EXPECT_EQ(sliced.kernels[0].globals, std::vector<std::string>{"g"});
}

TEST(Slice, ReadsInEveryFormAreReplaced) {
  const SlicedModule sliced = SliceOf(
      R"(.entry k() { .reg .v4 .u32 v; .reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred p;
setp.eq.u32 p, 0, 0; mov.v4.u32 v, %ctaid; @p mov.u16 %h1, %ctaid.y; mov.b32 {%h1, %h2}, %nctaid.z; mov.u32 %r1, %ctaid.w;
cvt.u64.u32 %rd1, %ctaid.z; cvt.u32.u16 %r2, %ctaid.x; ret; })");
  EXPECT_EQ(sliced.text.find("%nctaid"), std::string::npos) << sliced.text;
  EXPECT_EQ(sliced.text.find("%ctaid"), sliced.text.rfind("%ctaid"));  // the launch's own alone
  EXPECT_NE(sliced.text.find("@p cvt.u16.u32 %h1, %cx0_"), std::string::npos) << sliced.text;
  EXPECT_NE(sliced.text.find("mov.u32 %r1, 0;"), std::string::npos) << sliced.text;
  EXPECT_NE(sliced.text.find("mov.v4.u32 v, {%cx0_"), std::string::npos) << sliced.text;
  EXPECT_EQ(sliced.kernels.at(0).axes, 3u);
}

TEST(Slice, VariablesAreThoseOfTheOriginal) {
  const SlicedModule sliced =
      SliceOf(R"(.visible .global .u32 a[4]; .global .u32 b; .const .u32 c = 7; .const .u64 d = generic(a);
.shared .u32 s; .global .u32 unused; .const .u32 unused_too;
.entry k() { .reg .b64 %rd<9>; .reg .b32 %r<9>;
mov.u64 %rd1, b; mov.u64 %rd2, a+4; cvta.global.u64 %rd3, a; ld.const.u32 %r1, [c]; ld.const.u64 %rd4, [d]; st.shared.u32 [s], %r1;
atom.global.add.u32 %r2, [a+8], 1; ret; })");
  for (const char* line : {".const .u32 c = 7;\n", ".const .u64 d;\n", ".shared .u32 s;\n",
                           "mov.u64 %rd1, %cx1_1;\n", "add.s64 %cx1_2, %cx1_0, 4;\n\tmov.u64 %rd2, %cx1_2;\n",
                           "cvta.global.u64 %rd3, %cx1_0;\n", "atom.global.add.u32 %r2, [%cx1_0+8], 1;\n"}) {
    std::string text = sliced.text;
    for (size_t at; (at = text.find("%cx0_")) != text.npos;)
      text[at + 3] = '1';  // whichever range they are in
    EXPECT_NE(text.find(line), std::string::npos) << line << sliced.text;
  }
  EXPECT_EQ(sliced.text.find(".global .u32"), std::string::npos);
  EXPECT_EQ(sliced.text.find("unused"), std::string::npos);
  ASSERT_EQ(sliced.kernels.size(), 1u);
  EXPECT_EQ(sliced.kernels[0].globals, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sliced.kernels[0].constants, (std::vector<std::string>{"c", "d"}));
}

TEST(Slice, TakesTheKernelsAskedFor) {
  const std::string text = ".entry a() { ret; } .entry b() { ret; } .func f { ret; }";
  const SlicedModule sliced = SliceOf(text, {"b"});
  ASSERT_EQ(sliced.kernels.size(), 1u);
  EXPECT_EQ(sliced.kernels[0].name, "b");
  EXPECT_EQ(sliced.text.find(" a("), std::string::npos);
  auto module = Parse(std::string(kHead) + text);
  ASSERT_TRUE(module.ok());
  for (std::string_view name : {"c", "f"}) {
    auto none = Slice(*module, std::vector<std::string_view>{name});
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().sentence, "the module has no kernel `" + std::string(name) + "`");
  }
}

TEST(Slice, CallsThroughAnAliasReachWhatItStandsFor) {
  const SlicedModule sliced = SliceOf(R"(.visible .func f { .reg .b32 r; mov.u32 r, %ctaid.x; ret; }
.visible .func g; .alias g, f; .entry k() { call g; ret; })");
  EXPECT_NE(sliced.text.find("call f, (%cx0_"), std::string::npos) << sliced.text;
}

TEST(Slice, RecursiveFunctionsPassOnWhatTheyWereGiven) {
  const SlicedModule sliced = SliceOf(R"(.func a; .func b { .reg .b32 r; mov.u32 r, %ctaid.x; call a; ret; }
.func a { call b; call a; ret; } .entry k() { call a; ret; })");
  EXPECT_NE(sliced.text.find("call b, (%cx0_);"), std::string::npos) << sliced.text;
  EXPECT_NE(sliced.text.find("call a, (%cx0_);"), std::string::npos) << sliced.text;
}

struct Refused {
  const char* text;
  const char* why;
};
class Refusal : public testing::TestWithParam<Refused> {};

TEST_P(Refusal, SaysWhy) {
  const SlicedModule sliced = SliceOf(GetParam().text);
  ASSERT_FALSE(sliced.kernels.empty());
  const SlicedKernel& kernel = sliced.kernels.back();
  EXPECT_EQ(kernel.refusal, std::string("kernel `k` cannot be sliced: ") + GetParam().why);
  EXPECT_EQ(sliced.text.find(" k("), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, Refusal,
    testing::Values(Refused{".entry k() {\n.reg .b32 r; mov.u32 r, %envreg2; ret; }",
                            "line 3 reads %envreg2, as kernels do that synchronise their whole grid"},
                    Refused{".entry k() {\n.reg .b64 r; mov.u64 r, %gridid; ret; }",
                            "line 3 reads %gridid, which differs from slice to slice"},
                    Refused{".entry k() { .reg .b32 r; mov.u32 r, %clusterid.x; ret; }",
                            "line 2 reads %clusterid, and slices are not of clusters"},
                    Refused{".func f {\n.reg .b64 r; mov.u64 r, %gridid; ret; }\n.func g { call f; ret; } "
                            ".entry k() { call g; ret; }",
                            "line 3 reads %gridid, which differs from slice to slice"},
                    Refused{"\n.entry k() .reqnctapercluster 2, 1, 1 { ret; }",
                            "line 3 declares it .reqnctapercluster, and slices are not of clusters"},
                    Refused{".extern .func launch;\n.entry k() { call launch; ret; }",
                            "line 3 calls `launch`, which the module does not define"},
                    Refused{".entry k() { .reg .b64 r; p: .callprototype _ ();\ncall r, p; ret; }",
                            "line 3 calls a function through a pointer"},
                    Refused{".func f { ret; } .entry k() { .reg .b64 r;\nmov.u64 r, f; ret; }",
                            "line 3 takes the address of `f`"},
                    Refused{".entry child() { ret; } .entry k() { .reg .b64 r;\nmov.u64 r, child; ret; }",
                            "line 3 takes the address of `child`"},
                    Refused{".func f { ret; } .entry k() {\nt: .calltargets f; ret; }",
                            "line 2 begins a function that has the call targets `t`"},
                    Refused{".global .u32 g; .entry k() {\n.shared .u64 s = g; ret; }",
                            "line 3 has the .shared variable `s` inside a function"},
                    Refused{".global .texref t; .entry k() { .reg .f32 a, b, c, d, x;\ntex.1d.v4.f32.f32 {a, "
                            "b, c, d}, [t, {x}]; ret; }",
                            "line 3 uses the texref `t`, which is bound in the module that has it"},
                    Refused{".entry k(.param .align 8 .b8 p[32760]) { ret; }",
                            "line 2 declares 32760 bytes of parameters, and with 32 more they pass 32764"},
                    Refused{".entry k(.param .align 8 .b8 cuplex_slice[32]) { ret; }",
                            "line 2 declares one that has been sliced already"}));

TEST(Slice, OldModulesHaveFourKibibytesOfParameters) {
  for (const char* head : {".version 8.0 .target sm_90 ", ".version 8.3 .target sm_61 "}) {
    auto module = Parse(
        std::string(head) +
        ".entry fits(.param .align 8 .b8 p[4064]) { ret; } .entry k(.param .align 8 .b8 p[4065]) { ret; }");
    ASSERT_TRUE(module.ok());
    auto sliced = Slice(*module);
    ASSERT_TRUE(sliced.ok());
    EXPECT_EQ(sliced->kernels.at(0).refusal, "");
    EXPECT_EQ(sliced->kernels.at(1).refusal,
              "kernel `k` cannot be sliced: line 1 declares 4065 bytes of parameters, and with 39 more they "
              "pass 4096");
  }
}

TEST(Slice, WhatIsSlicedIsNotSlicedAgain) {
  const SlicedModule once = SliceOf(".entry k() { .reg .b32 r; mov.u32 r, %ctaid.x; ret; }");
  auto module = Parse(once.text);
  ASSERT_TRUE(module.ok());
  auto twice = Slice(*module);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->text, "");
  EXPECT_EQ(twice->kernels.at(0).refusal,
            "kernel `k` cannot be sliced: line 5 declares one that has been sliced already");
}

}  // namespace
}  // namespace cuplex::ptx
