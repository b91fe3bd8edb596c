#include "policies/nearest.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

constexpr std::array<std::string_view, 5> kKnown = {"memory", "weight", "priority", "devices", "uid"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(Nearest("wieght", kKnown), "weight");  // swapped neighbours
  EXPECT_EQ(Nearest("memry", kKnown), "memory");   // a letter missing
  EXPECT_EQ(Nearest("Memory", kKnown), "memory");  // letter case
  EXPECT_EQ(Nearest("prioritty", kKnown), "priority");
  EXPECT_EQ(Nearest("device", kKnown), "devices");
  EXPECT_EQ(Nearest("gid", kKnown), "uid");
}

TEST(Nearest, FindsNothingFar) {
  EXPECT_EQ(Nearest("", kKnown), "");
  EXPECT_EQ(Nearest("colour", kKnown), "");
  EXPECT_EQ(Nearest("mmry", kKnown), "memory");  // two of six letters
  EXPECT_EQ(Nearest("mrx", kKnown), "");
  EXPECT_EQ(Nearest(std::string(100000, 'm'), kKnown), "");
  EXPECT_EQ(Nearest("memory", {}), "");
}

}  // namespace
}  // namespace cuplex::policies
