#include "protocol/session_socket.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cuplex {
namespace {

std::span<const std::byte> Bytes(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

class SessionSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "cuplexXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/s.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_, path_;
};

TEST_F(SessionSocketTest, CarriesMessagesDescriptorsAndCredentials) {
  auto listening = ListenSession(path_, 0600);
  ASSERT_TRUE(listening.ok()) << listening.error().sentence;
  auto client = ConnectSession(path_);
  ASSERT_TRUE(client.ok()) << client.error().sentence;
  auto server = AcceptSession(listening->get());
  ASSERT_TRUE(server.ok());
  auto peer = SessionPeer(server->get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, getuid());

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(SendPacket(server->get(), Bytes("take this"), std::span(&ends[1], 1)).ok());
  close(ends[1]);
  auto got = ReceivePacket(client->get(), 1000);
  ASSERT_TRUE(got.ok()) << got.error().sentence;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(got->bytes.data()), got->bytes.size()), "take this");
  ASSERT_EQ(got->fds.size(), 1u);
  ASSERT_EQ(write(got->fds[0].get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(read(ends[0], &c, 1), 1);
  EXPECT_EQ(c, 'x');
  close(ends[0]);
}

TEST_F(SessionSocketTest, TellsSilenceFromGone) {
  auto listening = ListenSession(path_, 0600);
  auto client = ConnectSession(path_);
  auto server = AcceptSession(listening->get());
  auto silent = ReceivePacket(client->get(), 1);
  ASSERT_FALSE(silent.ok());
  EXPECT_NE(silent.error().blame, Blame::kGone);
  server->reset();
  auto gone = ReceivePacket(client->get(), 1000);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().blame, Blame::kGone);
  auto sent = SendPacket(client->get(), Bytes("hello?"), {});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().blame, Blame::kGone);
}

TEST_F(SessionSocketTest, TakesOverAStaleSocketButNoLiveOneAndNoFile) {
  {
    auto left_behind = ListenSession(path_, 0600);
  }
  struct stat st;
  ASSERT_EQ(stat(path_.c_str(), &st), 0);
  auto again = ListenSession(path_, 0660);
  ASSERT_TRUE(again.ok()) << again.error().sentence;
  ASSERT_EQ(stat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0660u);
  auto second = ListenSession(path_, 0600);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().sentence, "another server listens on \"" + path_ + "\".");
  const std::string file = folder_ + "/precious";
  std::ofstream(file) << "data";
  EXPECT_FALSE(ListenSession(file, 0600).ok());
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(SessionSocketTest, SaysWhatIsWrongWithAPath) {
  EXPECT_FALSE(ConnectSession(std::string(200, 'a')).ok());
  auto nobody = ConnectSession(path_);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().sentence,
            "cannot reach a cuplex server at \"" + path_ + "\": No such file or directory");
}

}  // namespace
}  // namespace cuplex
