#include "base/span_reader.h"

#include <array>

#include <gtest/gtest.h>

namespace cuplex {
namespace {

TEST(SpanReader, StopsAtTheEnd) {
  std::array<std::byte, 7> bytes{std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{9}};
  SpanReader r(bytes);
  EXPECT_EQ(r.Read<uint32_t>(), 1u);
  EXPECT_FALSE(r.Read<uint32_t>());
  EXPECT_EQ(r.left(), 3u);
  EXPECT_FALSE(r.Bytes(UINT64_MAX));
  EXPECT_EQ(r.Bytes(1)->front(), std::byte{9});
  EXPECT_FALSE(r.Align(8));
  EXPECT_EQ(r.left(), 2u);
}

}  // namespace
}  // namespace cuplex
