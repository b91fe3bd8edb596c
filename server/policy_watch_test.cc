#include "server/policy_watch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <poll.h>

#include <gtest/gtest.h>

namespace cuplex::server {
namespace {

namespace fs = std::filesystem;

class PolicyWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "cuplex-watch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static bool Readable(const PolicyWatch& watch) {
    pollfd poll_fd{watch.fd(), POLLIN, 0};
    return poll(&poll_fd, 1, 5000) == 1;
  }

  fs::path folder_;
};

TEST_F(PolicyWatchTest, TellsOfAFileWrittenAnew) {
  const fs::path file = folder_ / "policy.yaml";
  Write(file, "one");
  auto watch = PolicyWatch::Make(file.string());
  ASSERT_TRUE(watch.ok()) << watch.error().sentence;
  EXPECT_FALSE(watch->Changed());
  Write(file, "two");
  ASSERT_TRUE(Readable(*watch));
  EXPECT_TRUE(watch->Changed());
  EXPECT_FALSE(watch->Changed()) << "once";
  Write(file, "two");
  ASSERT_TRUE(Readable(*watch));
  EXPECT_FALSE(watch->Changed()) << "the same content is no change";
}

TEST_F(PolicyWatchTest, TellsOfARename) {
  const fs::path file = folder_ / "policy.yaml";
  Write(file, "one");
  auto watch = PolicyWatch::Make(file.string());
  ASSERT_TRUE(watch.ok());
  Write(folder_ / "fresh", "two");
  fs::rename(folder_ / "fresh", file);
  ASSERT_TRUE(Readable(*watch));
  EXPECT_TRUE(watch->Changed());
}

TEST_F(PolicyWatchTest, FollowsALinkThatLeadsElsewhere) {
  for (const char* each : {"a", "b"}) {
    fs::create_directory(folder_ / each);
    Write(folder_ / each / "policy.yaml", each);
  }
  fs::create_symlink("a", folder_ / "..data");
  fs::create_symlink("..data/policy.yaml", folder_ / "policy.yaml");
  auto watch = PolicyWatch::Make((folder_ / "policy.yaml").string());
  ASSERT_TRUE(watch.ok());
  fs::create_symlink("b", folder_ / "..fresh");
  fs::rename(folder_ / "..fresh", folder_ / "..data");
  ASSERT_TRUE(Readable(*watch));
  EXPECT_TRUE(watch->Changed());
  Write(folder_ / "b" / "policy.yaml", "c");
  ASSERT_TRUE(Readable(*watch));
  EXPECT_TRUE(watch->Changed());
}

TEST_F(PolicyWatchTest, AFileThatIsGoneHasNotChanged) {
  const fs::path file = folder_ / "policy.yaml";
  Write(file, "one");
  auto watch = PolicyWatch::Make(file.string());
  ASSERT_TRUE(watch.ok());
  fs::remove(file);
  EXPECT_FALSE(watch->Changed());
  Write(file, "one");
  EXPECT_FALSE(watch->Changed());
}

TEST_F(PolicyWatchTest, AFolderThatIsNotThereIsNamed) {
  auto watch = PolicyWatch::Make((folder_ / "none" / "policy.yaml").string());
  ASSERT_FALSE(watch.ok());
  EXPECT_NE(watch.error().sentence.find("none"), std::string::npos);
}

}  // namespace
}  // namespace cuplex::server
