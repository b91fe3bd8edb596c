// The tool as an operator runs it: the real program, in front of a listener that answers what the test says.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/control_generated.h"
#include "protocol/control_socket.h"
#include "tools/status_print.h"

namespace cuplex::tools {
namespace {

using flatbuffers::FlatBufferBuilder;
using testing::HasSubstr;
using testing::Not;

struct Numbers {
  uint64_t uptime_ns = 3'725'000'000'000;
  uint64_t device_ns = 2'500'000'000;
  uint64_t launches = 1200;
  int pid = 4242;
};

std::vector<std::byte> Bytes(const FlatBufferBuilder& b) {
  const auto* first = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {first, first + b.GetSize()};
}

std::vector<std::byte> StatusReply(const Numbers& n) {
  FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<control::Session>> sessions = {
      control::CreateSessionDirect(b, 77, "train\x1b[2J.py", 3 << 20, 5)};
  std::vector<flatbuffers::Offset<control::TenantDevice>> devices = {
      control::CreateTenantDevice(b, 0, 3 << 20, 512ull << 20, n.device_ns, n.launches, 9, 4096, 5)};
  std::vector<flatbuffers::Offset<control::Tenant>> tenants = {
      control::CreateTenantDirect(b, "research", &sessions, 2, &devices),
      control::CreateTenantDirect(b, "idle")};
  std::vector<flatbuffers::Offset<control::DeviceStatus>> all = {
      control::CreateDeviceStatusDirect(b, 0, "A \"GPU\"", 8ull << 30)};
  const auto status = control::CreateStatusDirect(b, "1.2.3", n.pid, "/lib/libcuda.so.1", "/etc/p.yaml",
                                                  n.uptime_ns, &all, &tenants);
  b.Finish(control::CreateReply(b, control::ReplyBody::Status, status.Union()));
  return Bytes(b);
}

std::vector<std::byte> DoneReply() {
  FlatBufferBuilder b;
  const auto done = control::CreateDone(b).Union();
  b.Finish(control::CreateReply(b, control::ReplyBody::Done, done));
  return Bytes(b);
}

std::vector<std::byte> FailureReply(const char* sentence) {
  FlatBufferBuilder b;
  const auto failure = control::CreateFailureDirect(b, sentence).Union();
  b.Finish(control::CreateReply(b, control::ReplyBody::Failure, failure));
  return Bytes(b);
}

const control::Status& StatusOf(const std::vector<std::byte>& bytes) {
  return *flatbuffers::GetRoot<control::Reply>(bytes.data())->body_as_Status();
}

/// The first line with `word` in it.
std::string LineWith(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(word) != std::string::npos) return line;
  return "";
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(StatusTable, ShowsEachTenantAndSession) {
  const auto bytes = StatusReply({});
  const std::string table = PrintTable(StatusOf(bytes), nullptr);
  EXPECT_THAT(table, HasSubstr("pid 4242, up 1 h 2 min, policy /etc/p.yaml, driver /lib/libcuda.so.1"));
  EXPECT_THAT(table, HasSubstr("device 0: A \"GPU\", 8192 MiB"));
  EXPECT_THAT(Words(LineWith(table, "512.0")), testing::ElementsAre("research", "0", "1", "3.0", "/", "512.0",
                                                                    "2.50", "-", "1200", "-", "9", "5", "2"));
  EXPECT_THAT(Words(LineWith(table, "idle")), testing::ElementsAre("idle", "-", "0"));
  EXPECT_THAT(Words(LineWith(table, "train")),
              testing::ElementsAre("research", "77", "3.0", "5", "train?[2J.py"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b"))) << "a program's name must not act on the terminal";
}

TEST(StatusTable, ShowsRatesSinceAnEarlierLook) {
  const auto then = StatusReply({});
  // Two seconds later, one of them spent on the device, with 500 launches.
  const auto now = StatusReply({3'727'000'000'000, 3'500'000'000, 1700, 4242});
  const auto words = Words(LineWith(PrintTable(StatusOf(now), &StatusOf(then)), "512.0"));
  EXPECT_EQ(words[7], "50");
  EXPECT_EQ(words[9], "250");
  // Another server's numbers, and a look at the same instant, say nothing of a rate.
  const auto other = StatusReply({3'725'000'000'000, 2'500'000'000, 1200, 4243});
  EXPECT_EQ(Words(LineWith(PrintTable(StatusOf(now), &StatusOf(other)), "512.0"))[7], "-");
  EXPECT_EQ(Words(LineWith(PrintTable(StatusOf(now), &StatusOf(now)), "512.0"))[7], "-");
}

TEST(StatusJson, QuotesWhatNeedsIt) {
  EXPECT_EQ(PrintJsonString("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
  EXPECT_EQ(PrintJsonString("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
  // A lone lead byte, a bare continuation, an overlong slash, a surrogate, beyond the last plane.
  EXPECT_EQ(PrintJsonString("\xc3"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(PrintJsonString("\x80x"), "\"\xef\xbf\xbdx\"");
  EXPECT_EQ(PrintJsonString("\xe0\x80\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(PrintJsonString("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(PrintJsonString("\xf4\x90\x80\x80").size(), 2 + 4 * 3);
}

TEST(StatusJson, HoldsEveryField) {
  const auto bytes = StatusReply({});
  EXPECT_EQ(
      PrintJson(StatusOf(bytes)),
      R"({"server_version": "1.2.3", "pid": 4242, "driver": "/lib/libcuda.so.1", "policy": "/etc/p.yaml", )"
      R"("uptime_ns": 3725000000000, "devices": [{"index": 0, "name": "A \"GPU\"", "total_memory": 8589934592}], )"
      R"("tenants": [{"name": "research", "refusals": 2, "sessions": [{"pid": 77, "program": "train\u001b[2J.py", )"
      R"("memory_used": 3145728, "queue_depth": 5}], "devices": [{"device": 0, "memory_used": 3145728, )"
      R"("memory_limit": 536870912, "device_ns": 2500000000, "launches": 1200, "copies": 9, "copied_bytes": 4096, )"
      R"("queue_depth": 5}]}, {"name": "idle", "refusals": 0, "sessions": [], "devices": []}]})"
      "\n");
}

/// A server that answers each ask with `reply` and remembers the last one.
class Listener {
 public:
  explicit Listener(std::vector<std::byte> reply) {
    char folder[] = "/tmp/cuplexctl-XXXXXX";
    folder_ = mkdtemp(folder);
    auto listening =
        ControlListener::Open("ipc://" + folder_ + "/control", [this, reply](std::span<const std::byte> ask) {
          std::scoped_lock hold(lock_);
          ask_.assign(ask.begin(), ask.end());
          return reply;
        });
    EXPECT_TRUE(listening.ok()) << listening.error().sentence;
    if (!listening.ok()) return;
    listener_ = *std::move(listening);
    thread_ = std::thread([this] {
      while (!stop_) {
        pollfd p{listener_->fd(), POLLIN, 0};
        poll(&p, 1, 10);
        listener_->Serve();
      }
    });
  }
  ~Listener() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string endpoint() const { return "ipc://" + folder_ + "/control"; }
  /// The last ask; null where it is none.
  const control::Ask* ask() {
    std::scoped_lock hold(lock_);
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(ask_.data()), ask_.size());
    return verifier.VerifyBuffer<control::Ask>(nullptr) ? flatbuffers::GetRoot<control::Ask>(ask_.data())
                                                        : nullptr;
  }

 private:
  std::string folder_;
  std::unique_ptr<ControlListener> listener_;
  std::mutex lock_;
  std::vector<std::byte> ask_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

struct Ran {
  int status = -1;
  std::string out, err;
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

Ran RunTool(std::vector<std::string> words) {
  char folder[] = "/tmp/cuplexctl-run-XXXXXX";
  const std::string at = mkdtemp(folder);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, (at + "/out").c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (at + "/err").c_str(), O_WRONLY | O_CREAT, 0600);
  words.insert(words.begin(), "cuplexctl");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Ran ran;
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, CUPLEXCTL, &files, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  waitpid(pid, &status, 0);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = ReadFile(at + "/out");
  ran.err = ReadFile(at + "/err");
  std::filesystem::remove_all(at);
  return ran;
}

TEST(Cuplexctl, ShowsTheStatus) {
  Listener server(StatusReply({}));
  const Ran table = RunTool({"status", "--control", server.endpoint()});
  EXPECT_EQ(table.status, 0) << table.err;
  const auto bytes = StatusReply({});
  EXPECT_EQ(table.out, PrintTable(StatusOf(bytes), nullptr));
  ASSERT_TRUE(server.ask());
  EXPECT_EQ(server.ask()->body_type(), control::AskBody::StatusAsk);
  EXPECT_EQ(server.ask()->protocol(), 1);
  EXPECT_EQ(RunTool({"status", "--json", "-c", server.endpoint()}).out, PrintJson(StatusOf(bytes)));
}

TEST(Cuplexctl, AsksToReloadAndToStop) {
  Listener server(DoneReply());
  EXPECT_EQ(RunTool({"reload", "--control", server.endpoint()}).status, 0);
  ASSERT_TRUE(server.ask());
  EXPECT_EQ(server.ask()->body_type(), control::AskBody::ReloadAsk);
  EXPECT_EQ(RunTool({"stop", "--seconds", "3", "--control", server.endpoint()}).status, 0);
  ASSERT_TRUE(server.ask());
  ASSERT_TRUE(server.ask()->body_as_StopAsk());
  EXPECT_EQ(server.ask()->body_as_StopAsk()->seconds(), 3u);
  // Done is no answer to a question for the status.
  const Ran status = RunTool({"status", "--control", server.endpoint()});
  EXPECT_EQ(status.status, 1);
  EXPECT_THAT(status.err, HasSubstr("Done, Status was expected"));
}

std::vector<std::byte> RecordReply(std::vector<std::string> tenants, uint64_t lost, bool more) {
  FlatBufferBuilder b;
  const std::vector<control::RecordedWork> work = {{1'000, 2'000'000, 0, 1, true}, {2'500, 70, 3, 0, false}};
  const auto names = b.CreateVectorOfStrings(tenants);
  const auto rows = b.CreateVectorOfStructs(work);
  const auto record = control::CreateRecord(b, names, rows, lost, more);
  b.Finish(control::CreateReply(b, control::ReplyBody::Record, record.Union()));
  return Bytes(b);
}

TEST(Cuplexctl, RecordsALoad) {
  Listener server(RecordReply({"research", "video"}, 0, false));
  const Ran ran = RunTool({"record", "--seconds", "1", "--control", server.endpoint()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("at_ns,device,tenant,device_ns,sliceable\n"
                                           "1000,0,video,2000000,yes\n"
                                           "2500,3,research,70,no\n"
                                           "1000,0,video,2000000,yes\n"));
  EXPECT_THAT(ran.err, testing::MatchesRegex("cuplexctl: [0-9]+ kernels and copies in [1-9]\\.[0-9] s\\.\n"));
  ASSERT_TRUE(server.ask());
  ASSERT_TRUE(server.ask()->body_as_RecordAsk());
  EXPECT_EQ(RunTool({"record", "--seconds", "0", "--control", server.endpoint()}).status, 2);
}

TEST(Cuplexctl, SaysWhatARecordLacks) {
  Listener losing(RecordReply({"a", "b"}, 12, false));
  EXPECT_THAT(RunTool({"record", "--seconds", "1", "-c", losing.endpoint()}).err,
              HasSubstr("12 more are lost"));
  Listener wrong(RecordReply({"a"}, 0, false));
  const Ran ran = RunTool({"record", "--seconds", "1", "-c", wrong.endpoint()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("names tenant 1 of 1"));
  Listener refusing(FailureReply("Somebody else is recording."));
  EXPECT_THAT(RunTool({"record", "-c", refusing.endpoint()}).err, HasSubstr("Somebody else is recording."));
}

TEST(Cuplexctl, SaysWhatTheServerSays) {
  Listener server(FailureReply("p.yaml:3:5: the old policy stays in force."));
  const Ran ran = RunTool({"reload", "--control", server.endpoint()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err, "cuplexctl: p.yaml:3:5: the old policy stays in force.\n");
}

TEST(Cuplexctl, RefusesNonsenseFromTheServer) {
  Listener server(std::vector<std::byte>(64, std::byte{0xff}));
  const Ran ran = RunTool({"status", "--control", server.endpoint()});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("64 bytes that are no reply"));
}

TEST(Cuplexctl, SaysThatNobodyAnswers) {
  const Ran ran = RunTool({"status", "--timeout", "0.05", "--control", "ipc:///nonexistent/cuplex"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("ipc:///nonexistent/cuplex"));
}

TEST(Cuplexctl, ToldNonsenseSaysWhatWasExpected) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{}, "0 commands"},
      {{"status", "stop"}, "2 commands"},
      {{"restart"}, "\"restart\" is no command; status, record, reload or stop"},
      {{"status", "--nonsense"}, "nonsense"},
      {{"reload", "--json"}, "--json goes with status, not with reload"},
      {{"status", "--seconds", "3"}, "--seconds goes with stop"},
      {{"stop", "--seconds", "-1"}, "0 to 86400"},
      {{"stop", "--watch"}, "--watch goes with status"},
      {{"status", "--watch=0"}, "0.05 to 3600"},
      {{"status", "--timeout", "nan"}, "0.001 to 3600"},
  };
  for (const auto& [words, expected] : cases) {
    const Ran ran = RunTool(words);
    EXPECT_EQ(ran.status, 2) << expected;
    EXPECT_THAT(ran.err, HasSubstr(expected));
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(RunTool({"--help"}).status, 0);
}

}  // namespace
}  // namespace cuplex::tools
