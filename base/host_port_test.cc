#include "base/host_port.h"

#include <gtest/gtest.h>

namespace cuplex {
namespace {

TEST(HostPort, ParsesAndPrintsBothFamilies) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:9400"), (HostPort{"127.0.0.1", false, 9400}));
  EXPECT_EQ(ParseHostPort("[::1]:0"), (HostPort{"::1", true, 0}));
  EXPECT_EQ(PrintHostPort({"127.0.0.1", false, 9400}), "127.0.0.1:9400");
  EXPECT_EQ(PrintHostPort({"::1", true, 65535}), "[::1]:65535");
}

TEST(HostPort, RefusesWhatIsNotBoth) {
  for (std::string_view text : {"", ":", "9400", ":9400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                "127.0.0.1:-1", "127.0.0.1: 1", "127.0.0.1:1x", "localhost:9400", "::1:9400",
                                "[::1]", "[127.0.0.1]:1", "1.2.3:4", "[::1:9400"}) {
    EXPECT_EQ(ParseHostPort(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseHostPort(std::string_view("127.0.0.1\0:80", 13)), std::nullopt);
}

}  // namespace
}  // namespace cuplex
