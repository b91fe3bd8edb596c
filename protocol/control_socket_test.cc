#include "protocol/control_socket.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>

namespace cuplex {
namespace {

std::vector<std::byte> Bytes(const std::string& s) {
  auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}

TEST(ControlSocket, AsksAreAnsweredAlsoAfterAnAskerWentAway) {
  auto listener = ControlListener::Open("tcp://127.0.0.1:0", [](std::span<const std::byte> ask) {
    std::string text(reinterpret_cast<const char*>(ask.data()), ask.size());
    return Bytes("you said " + text);
  });
  ASSERT_TRUE(listener.ok()) << listener.error().sentence;
  std::atomic<bool> stop = false;
  std::thread server([&] {
    while (!stop) {
      pollfd p{(*listener)->fd(), POLLIN, 0};
      poll(&p, 1, 10);
      (*listener)->Serve();
    }
  });
  const std::string endpoint = (*listener)->endpoint();
  (void)AskControl(endpoint, Bytes("bye"), 0);  // gives up at once
  for (int i = 0; i < 3; ++i) {
    auto reply = AskControl(endpoint, Bytes("hello"), 5000);
    ASSERT_TRUE(reply.ok()) << reply.error().sentence;
    EXPECT_EQ(*reply, Bytes("you said hello"));
  }
  stop = true;
  server.join();
}

TEST(ControlSocket, SaysThatNobodyAnswers) {
  auto reply = AskControl("ipc:///nonexistent/cuplex-control", Bytes("hello"), 50);
  ASSERT_FALSE(reply.ok());
  EXPECT_NE(reply.error().sentence.find("ipc:///nonexistent/cuplex-control"), std::string::npos);
  EXPECT_FALSE(ControlListener::Open("nonsense", nullptr).ok());
}

}  // namespace
}  // namespace cuplex
