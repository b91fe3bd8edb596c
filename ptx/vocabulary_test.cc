#include "ptx/vocabulary.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace cuplex::ptx {
namespace {

TEST(Vocabulary, NamesAndFindsTheSameWord) {
  for (uint32_t id = 0; id < static_cast<uint32_t>(Mod::kCount); ++id) {
    std::string_view text = Text(static_cast<Mod>(id));
    ASSERT_FALSE(text.empty()) << id;
    EXPECT_EQ(FindMod(text), static_cast<Mod>(id)) << text << " is spelled twice";
  }
  for (uint32_t id = 0; id < static_cast<uint32_t>(Opcode::kCount); ++id) {
    EXPECT_EQ(FindOpcode(Text(static_cast<Opcode>(id))), static_cast<Opcode>(id));
  }
  for (uint32_t id = 0; id < static_cast<uint32_t>(Special::kCount); ++id) {
    EXPECT_EQ(FindSpecial(Text(static_cast<Special>(id)).substr(1)), static_cast<Special>(id));
  }
}

TEST(Vocabulary, KnowsTypesAndSpaces) {
  EXPECT_EQ(TypeOf(*FindMod("u32")), Type::kU32);
  EXPECT_EQ(TypeOf(*FindMod("pred")), Type::kPred);
  EXPECT_EQ(TypeOf(*FindMod("surfref")), Type::kSurfref);
  EXPECT_EQ(TypeOf(*FindMod("global")), Type::kNone);
  EXPECT_EQ(SpaceOf(*FindMod("reg")), Space::kReg);
  EXPECT_EQ(SpaceOf(*FindMod("param::func")), Space::kParamFunc);
  EXPECT_EQ(SpaceOf(*FindMod("rn")), Space::kNone);
  EXPECT_EQ(ModOf(Type::kU32), Mod::kTypeU32);
  EXPECT_EQ(ModOf(Space::kShared), Mod::kSpaceShared);
  EXPECT_EQ(BitsOf(Type::kF16x2), 32u);
  EXPECT_EQ(BitsOf(Type::kB128), 128u);
  EXPECT_EQ(BitsOf(Type::kNone), 0u);
  EXPECT_EQ(Text(Type::kBf16), "bf16");
  EXPECT_EQ(Text(Space::kSharedCta), "shared::cta");
}

TEST(Vocabulary, KnowsNumberedSpecialRegisters) {
  EXPECT_EQ(FindSpecial("envreg0"), Special::kEnvreg0);
  EXPECT_EQ(Text(*FindSpecial("envreg31")), "%envreg31");
  EXPECT_EQ(Text(*FindSpecial("pm7_64")), "%pm7_64");
  EXPECT_FALSE(FindSpecial("envreg32"));
  EXPECT_FALSE(FindSpecial("tid.x"));
}

TEST(Vocabulary, DoesNotKnowEverything) {
  EXPECT_FALSE(FindMod("frobnicate"));
  EXPECT_FALSE(FindOpcode("frobnicate"));
  EXPECT_TRUE(Text(Mod::kNone).empty());
  EXPECT_TRUE(Text(Opcode::kFirstUnknown).empty());
}

}  // namespace
}  // namespace cuplex::ptx
