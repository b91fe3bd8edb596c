// Hostile: what every case with a lying client begins and ends with. Run by tests/e2e/through_server.py.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/raw_session.h"

namespace cuplex::fault {

inline constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
inline constexpr uint64_t kMiB = 1 << 20;

inline std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

inline RawSession Attached(const std::string& path) {
  auto session = RawSession::Attach(path);
  if (!session.ok()) throw std::runtime_error(session.error().sentence);
  return *std::move(session);
}

inline std::string SocketOf(const std::string& tenant) {
  return Environment("CUPLEX_TEST_RUN_DIR") + "/" + tenant + ".sock";
}

class Hostile : public testing::Test {
 protected:
  static constexpr uint32_t kContext = 1;

  static void SetUpTestSuite() {
    ASSERT_NE(Environment("CUPLEX_TEST_RUN_DIR"), "") << "run by tests/e2e/through_server.py";
  }
  void SetUp() override {
    ASSERT_EQ(neighbour_.Begin(kContext), CUDA_SUCCESS);
    ASSERT_EQ(neighbour_.Alloc(kContext, kMiB, &theirs_), CUDA_SUCCESS);
    neighbour_.Fill(kContext, theirs_, kMiB, 0x5a);
    ASSERT_EQ(neighbour_.Synchronize(kContext), CUDA_SUCCESS);
    descriptors_ = Descriptors();
  }
  void TearDown() override {
    ASSERT_EQ(kill(std::atoi(Environment("CUPLEX_TEST_SERVER_PID").c_str()), 0), 0) << "the server is gone";
    std::vector<std::byte> bytes(64 << 10);
    for (uint64_t at = 0; at < kMiB; at += bytes.size()) {
      ASSERT_EQ(neighbour_.Read(kContext, theirs_ + at, bytes), CUDA_SUCCESS);
      ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0x5a}; }))
          << "a neighbour's memory was written";
    }
    RawSession fresh = Attached(Path());
    uint64_t at = 0;
    EXPECT_EQ(fresh.Begin(kContext), CUDA_SUCCESS);
    EXPECT_EQ(fresh.Alloc(kContext, 4096, &at), CUDA_SUCCESS);
  }

  static std::string Path() { return SocketOf("tenant"); }
  static size_t Descriptors() {
    namespace fs = std::filesystem;
    const fs::path folder = "/proc/" + Environment("CUPLEX_TEST_SERVER_PID") + "/fd";
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
  }

  /// A session with a context and 1 MiB.
  RawSession Client() {
    RawSession session = Attached(Path());
    EXPECT_EQ(session.Begin(kContext), CUDA_SUCCESS);
    EXPECT_EQ(session.Alloc(kContext, kMiB, &mine_), CUDA_SUCCESS);
    return session;
  }

  RawSession neighbour_ = Attached(SocketOf("other"));
  uint64_t theirs_ = 0;
  uint64_t mine_ = 0;
  size_t descriptors_ = 0;
};

}  // namespace cuplex::fault
