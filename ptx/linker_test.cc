#include "ptx/linker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/parser.h"

namespace cuplex::ptx {
namespace {

const std::string kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";

Result<std::string> LinkTexts(const std::vector<std::string>& texts) {
  std::vector<LinkInput> inputs;
  for (const std::string& text : texts) {
    auto module = Parse(kHead + text);
    EXPECT_TRUE(module.ok()) << module.error().sentence;
    if (!module.ok()) return module.error();
    inputs.push_back({std::string(1, static_cast<char>('a' + inputs.size())) + ".ptx", *std::move(module)});
  }
  return Link(std::move(inputs), [](std::string_view name) { return name == "vprintf"; });
}

Module Linked(const std::vector<std::string>& texts) {
  auto text = LinkTexts(texts);
  EXPECT_TRUE(text.ok()) << text.error().sentence;
  if (!text.ok()) return {};
  auto module = Parse(*text);
  EXPECT_TRUE(module.ok()) << module.error().sentence << "\n" << *text;
  return module.ok() ? *std::move(module) : Module{};
}

std::string Refused(const std::vector<std::string>& texts) {
  auto text = LinkTexts(texts);
  EXPECT_FALSE(text.ok());
  return text.ok() ? "" : text.error().sentence;
}

constexpr char kCalls[] = R"(.extern .func (.param .b32 r) twice (.param .b32 n);
.extern .global .align 4 .u32 step;
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.global.u32 %r0, [step];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
  ld.param.u64 %rd, [p]; st.global.u32 [%rd], %r1; ret;
}
)";
constexpr char kDefines[] = R"(.visible .global .align 4 .u32 step = 21;
.visible .func (.param .b32 r) twice (.param .b32 n)
{ .reg .b32 %r; ld.param.b32 %r, [n]; add.u32 %r, %r, %r; st.param.b32 [r], %r; ret; }
)";

TEST(Linker, ResolvesAcrossModulesInAnyOrder) {
  for (bool first : {true, false}) {
    Module m = first ? Linked({kCalls, kDefines}) : Linked({kDefines, kCalls});
    const Function* twice = m.FindFunction("twice");
    ASSERT_TRUE(twice);
    EXPECT_TRUE(twice->has_body);
    const Variable* step = m.FindVariable("step");
    ASSERT_TRUE(step);
    EXPECT_EQ(step->linkage, Linkage::kVisible);
    EXPECT_EQ(m.variables.size(), 1u);
    ASSERT_TRUE(m.FindFunction("k"));
  }
}

TEST(Linker, NamesWhatIsDefinedTwiceOrNowhere) {
  EXPECT_EQ(Refused({kDefines, kCalls, kDefines}),
            "multiple definition of `twice` in `c.ptx`, first defined in `a.ptx`");
  EXPECT_EQ(Refused({kCalls, ".visible .global .align 4 .u32 step;"}),
            "undefined reference to `twice` in `a.ptx`");
  EXPECT_THAT(Refused({kCalls, ".visible .global .align 8 .u64 step;", kDefines}),
              testing::HasSubstr("`step` has 4 bytes"));
  EXPECT_THAT(Refused({kCalls, ".visible .func twice (.param .b32 n) { ret; }"}),
              testing::HasSubstr("`twice` takes or gives"));
}

TEST(Linker, WhatAModuleKeepsToItselfStaysApart) {
  const std::string one =
      ".global .u32 own = 1;\n.func f(.param .b32 a) { ret; }\n.visible .entry k1() { .reg .b64 %rd; "
      "mov.u64 %rd, own; { .param .b32 x; st.param.b32 [x], 1; call.uni f, (x); } ret; }\n";
  const std::string two =
      ".global .u32 own = 2;\n.func f() { ret; }\n.visible .entry k2() { .reg .b64 %rd; "
      "mov.u64 %rd, own; call.uni f; ret; }\n";
  Module m = Linked({one, two});
  ASSERT_EQ(m.variables.size(), 2u);
  EXPECT_EQ(m.variables[0].initializer->bits, 1u);
  EXPECT_EQ(m.variables[1].initializer->bits, 2u);
  const Function* k2 = m.FindFunction("k2");
  ASSERT_TRUE(k2);
  EXPECT_EQ(k2->instructions[0].operands[1].id, 1u) << "its own variable";
  const Operand* callee = ShapeOfCall(k2->instructions[1]).callee;
  ASSERT_TRUE(callee);
  EXPECT_TRUE(m.functions[callee->id].parameters.empty()) << "its own function";
}

TEST(Linker, AWeakDefinitionGivesWay) {
  const std::string weak = ".weak .func w() { trap; ret; }\n.visible .entry k() { call.uni w; ret; }\n";
  const std::string strong = ".visible .func w() { ret; }\n";
  for (const auto& texts : {std::vector{weak, strong}, std::vector{strong, weak}}) {
    Module m = Linked(texts);
    ASSERT_TRUE(m.FindFunction("w"));
    EXPECT_EQ(m.FindFunction("w")->instructions.size(), 1u);
  }
  Module m = Linked({weak, ".weak .func w() { ret; }\n"});
  EXPECT_EQ(m.FindFunction("w")->instructions.size(), 2u) << "the first of equals";
}

TEST(Linker, AddressesInVariablesComeAfterWhatTheyName) {
  Module m = Linked({".extern .global .u32 late;\n.visible .global .u64 pointer = late;\n",
                     ".visible .global .u32 late = 7;\n"});
  ASSERT_EQ(m.variables.size(), 2u);
  EXPECT_EQ(m.variables[0].name, "late");
}

TEST(Linker, SharedMemoryOfTheLaunchAndGivenFunctionsNeedNoDefinition) {
  const std::string a =
      ".extern .shared .align 16 .b8 room[];\n.extern .func (.param .b32 r) vprintf (.param .b64 f, .param "
      ".b64 a);\n.visible .entry k1() { .reg .b32 %r; mov.u32 %r, room; ret; }\n";
  const std::string b =
      ".extern .shared .align 16 .b8 room[];\n.visible .entry k2() { .reg .b32 %r; mov.u32 %r, room; ret; "
      "}\n";
  Module m = Linked({a, b});
  EXPECT_EQ(m.variables.size(), 1u);
  EXPECT_TRUE(m.FindFunction("k1"));
  EXPECT_TRUE(m.FindFunction("k2"));
}

}  // namespace
}  // namespace cuplex::ptx
