#include "softcuda/jit/code_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cuplex::softcuda {
namespace {

class CodeCaches : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string form = (std::filesystem::temp_directory_path() / "code_cache.XXXXXX").string();
    ASSERT_TRUE(mkdtemp(form.data()));
    folder_ = form + "/below/it";
    root_ = form;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<CodeCache> Open(uint64_t most = 1 << 20) {
    auto cache = CodeCache::Open(folder_, most);
    EXPECT_TRUE(cache.ok()) << cache.error().sentence;
    return cache.ok() ? *std::move(cache) : nullptr;
  }
  static Digest Key(uint64_t n) {
    Digester d;
    d.Add(n);
    return d.Finish();
  }
  /// Bytes that only entry n has.
  static std::vector<std::byte> Code(uint64_t n, size_t bytes) {
    std::vector<std::byte> out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(n * 31 + i * i);
    return out;
  }
  uint64_t BytesOnDisk() const {
    uint64_t total = 0;
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      if (e.path().filename() != "size") total += (e.file_size() + 4095) / 4096 * 4096;
    }
    return total;
  }

  std::string root_, folder_;
};

TEST_F(CodeCaches, GiveBackWhatTheyKept) {
  auto cache = Open();
  EXPECT_FALSE(cache->Find(Key(1)));
  const std::vector<uint32_t> facts = {7, 0, 9};
  cache->Keep(Key(1), facts, Code(1, 5000));
  auto found = Open()->Find(Key(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->facts, facts);
  EXPECT_EQ(found->code, Code(1, 5000));
  EXPECT_FALSE(cache->Find(Key(2)));
  struct stat s;
  ASSERT_EQ(stat(folder_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(CodeCaches, SequencesAreNotTheirConcatenation) {
  Digester a, b;
  a.Add("ab"), a.Add("c");
  b.Add("a"), b.Add("bc");
  EXPECT_NE(a.Finish(), b.Finish());
}

TEST_F(CodeCaches, StayWithinTheirBound) {
  auto cache = Open(64 << 10);  // sixteen pages
  for (uint64_t n = 0; n < 100; ++n) {
    cache->Keep(Key(n), {}, Code(n, 6000));  // two pages each
    EXPECT_LE(BytesOnDisk(), 64u << 10);
    EXPECT_TRUE(cache->Find(Key(n))) << "the newest is there";
  }
  EXPECT_FALSE(cache->Find(Key(0)));
  cache->Keep(Key(200), {}, Code(200, 70 << 10));
  EXPECT_FALSE(cache->Find(Key(200))) << "larger than all of it";
  EXPECT_TRUE(cache->Find(Key(99)));
}

TEST_F(CodeCaches, LetGoWhatWasNotUsedForLongest) {
  auto cache = Open(64 << 10);
  for (uint64_t n = 0; n < 8; ++n) {
    cache->Keep(Key(n), {}, Code(n, 6000));
    // Far enough apart for any file system's clock.
    timespec t[2] = {{1000 + static_cast<time_t>(n), 0}, {1000 + static_cast<time_t>(n), 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ + "/" + Hexadecimal(Key(n))).c_str(), t, 0), 0);
  }
  EXPECT_TRUE(cache->Find(Key(0)));  // used now
  cache->Keep(Key(8), {}, Code(8, 6000));
  EXPECT_TRUE(cache->Find(Key(0)));
  EXPECT_FALSE(cache->Find(Key(1)));
  EXPECT_TRUE(cache->Find(Key(8)));
}

TEST_F(CodeCaches, ALostCountIsMadeAnew) {
  auto cache = Open(64 << 10);
  for (uint64_t n = 0; n < 6; ++n) cache->Keep(Key(n), {}, Code(n, 6000));
  std::ofstream(folder_ + "/size") << "nonsense";
  for (uint64_t n = 10; n < 30; ++n) {
    cache->Keep(Key(n), {}, Code(n, 6000));
    EXPECT_LE(BytesOnDisk(), 64u << 10);
  }
}

TEST_F(CodeCaches, ServeManyProcessesAtOnce) {
  Open(256 << 10);
  std::vector<pid_t> children;
  for (uint64_t c = 0; c < 4; ++c) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
      auto cache = CodeCache::Open(folder_, 256 << 10);
      bool good = cache.ok();
      // All write and read the same forty keys, more than fit.
      for (uint64_t i = 0; good && i < 120; ++i) {
        uint64_t n = (i * 7 + c * 13) % 40;
        if (auto found = (*cache)->Find(Key(n))) {
          good = found->code == Code(n, 5000 + n * 100) && found->facts == std::vector<uint32_t>{uint32_t(n)};
        } else {
          const uint32_t fact = static_cast<uint32_t>(n);
          (*cache)->Keep(Key(n), {&fact, 1}, Code(n, 5000 + n * 100));
        }
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(BytesOnDisk(), 256u << 10);
  EXPECT_GT(BytesOnDisk(), 0u);
}

TEST_F(CodeCaches, UseNoFolderThatOthersMayWriteTo) {
  Open();
  ASSERT_EQ(chmod(folder_.c_str(), 0770), 0);
  auto cache = CodeCache::Open(folder_, 1 << 20);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().blame, Blame::kRefused);
  EXPECT_FALSE(CodeCache::Open("relative", 1 << 20).ok());
  std::ofstream(root_ + "/file") << "x";
  EXPECT_FALSE(CodeCache::Open(root_ + "/file", 1 << 20).ok());
}

TEST_F(CodeCaches, ForeignLinksAreNotFollowed) {
  auto cache = Open();
  cache->Keep(Key(1), {}, Code(1, 100));
  std::filesystem::rename(folder_ + "/" + Hexadecimal(Key(1)), root_ + "/moved");
  std::filesystem::create_symlink(root_ + "/moved", folder_ + "/" + Hexadecimal(Key(1)));
  EXPECT_FALSE(cache->Find(Key(1)));
}

TEST(CodeCacheFolder, ComesFromTheEnvironment) {
  EXPECT_EQ(CodeCache::DefaultFolder("/a", "/b", "/c"), "/a");
  EXPECT_EQ(CodeCache::DefaultFolder("off", "/b", "/c"), "");
  EXPECT_EQ(CodeCache::DefaultFolder(nullptr, "/b", "/c"), "/b/cuplex/softcuda");
  EXPECT_EQ(CodeCache::DefaultFolder("", "b", "/c"), "/c/.cache/cuplex/softcuda");
  EXPECT_EQ(CodeCache::DefaultFolder(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace cuplex::softcuda
