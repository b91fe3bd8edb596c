// cuplexctl: asks a running cuplexd how it stands, to read its policy again, or to stop.
//
// Exit status: 0 done; 1 the server refuses, does not answer, or answers nonsense; 2 the command line is not
// understood.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/program_options.hpp>

#include "tools/control_ask.h"
#include "tools/record_print.h"
#include "tools/status_print.h"

namespace cuplex::tools {
namespace {

namespace options = boost::program_options;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr const char* kDefaultControl = "ipc:///run/cuplex/control.sock";

constexpr const char* kHeading = R"(cuplexctl COMMAND [OPTIONS]

  status           tenants, sessions, memory and device time
  record           what clients ask of the devices from now on, as CSV on standard output, for
                   cuplex-simulate; ends after --seconds, or by Ctrl-C
  reload           read the policy file again; a faulty one changes nothing
  stop             end the server: no new sessions, then those that are left are ended

Options)";

struct Line {
  std::string command;
  ControlPlace place;
  bool json = false;
  std::optional<double> watch;  // seconds between two looks
  uint32_t seconds = 10;
};

int Say(const Error& error) {
  std::cerr << "cuplexctl: " << error.sentence << '\n';
  return kFailed;
}

/// Writes and says whether it was taken: a reader that went away ends a watch.
bool Write(const std::string& text) {
  return fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
}

void Pause(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec pause{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  nanosleep(&pause, nullptr);
}

int ShowStatus(const Line& line) {
  std::optional<StatusAnswer> before;
  const bool terminal = isatty(STDOUT_FILENO);
  while (true) {
    auto now = AskStatus(line.place);
    if (!now.ok()) return Say(now.error());
    std::string text = line.json ? PrintJson(**now) : PrintTable(**now, before ? &**before : nullptr);
    if (line.watch && !line.json) text = terminal ? "\x1b[H\x1b[2J" + text : text + "\n";
    if (!Write(text)) return kFailed;
    if (!line.watch) return kDone;
    before = *std::move(now);
    Pause(*line.watch);
  }
}

volatile std::sig_atomic_t interrupted = 0;

int RecordLoad(const Line& line) {
  struct sigaction on_interrupt{};
  on_interrupt.sa_handler = [](int) { interrupted = 1; };  // without SA_RESTART: it ends a pause
  (void)sigaction(SIGINT, &on_interrupt, nullptr);
  const uint64_t recorder = uint64_t{std::random_device()()} << 32 | std::random_device()();
  const auto began = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  if (!Write("at_ns,device,tenant,device_ns,sliceable\n")) return kFailed;
  uint64_t rows = 0, lost = 0;
  while (true) {
    const bool last = interrupted || passed() >= line.seconds;
    bool more = true;
    while (more) {
      auto record = AskRecord(line.place, recorder);
      if (!record.ok()) return Say(record.error());
      if (!Write(PrintRecord(**record))) return kFailed;
      rows += (*record)->work() ? (*record)->work()->size() : 0;
      lost = (*record)->lost();
      more = (*record)->more();
    }
    if (last) break;
    Pause(std::min(0.2, std::max(0.001, line.seconds - passed())));
  }
  std::cerr << fmt::format("cuplexctl: {} kernels and copies in {:.1f} s", rows, passed());
  if (lost)
    std::cerr << fmt::format("; {} more are lost, since they came faster than they were fetched", lost);
  std::cerr << ".\n";
  return kDone;
}

options::options_description Options(Line* line) {
  options::options_description all(kHeading);
  const char* from_environment = std::getenv("CUPLEX_CONTROL");
  all.add_options()("help,h", "this text")(
      "control,c",
      options::value(&line->place.endpoint)
          ->value_name("ENDPOINT")
          ->default_value(from_environment && *from_environment ? from_environment : kDefaultControl),
      "where the server answers, as `server: control` of its policy says; CUPLEX_CONTROL if that is set")(
      "timeout", options::value<double>()->value_name("SECONDS")->default_value(5, "5"),
      "how long to wait for an answer")("json", options::bool_switch(&line->json),
                                        "status: as one JSON object a line")(
      "watch,w", options::value<double>()->value_name("SECONDS")->implicit_value(1, "1"),
      "status: again and again, that far apart, with rates; --watch=0.5")(
      "seconds", options::value<int64_t>()->value_name("N")->default_value(10),
      "stop: how long sessions may go on, 0 .. 86400; record: for how long, 1 .. 86400");
  return all;
}

/// The command line, or a sentence. Boost's exceptions end here.
Result<Line> ReadLine(int argc, char** argv, bool* help, std::string* usage) {
  Line line;
  const options::options_description shown = Options(&line);
  std::ostringstream text;
  text << shown;
  *usage = text.str();
  options::options_description all;
  all.add(shown).add_options()("command", options::value<std::vector<std::string>>());
  options::positional_options_description words;
  words.add("command", -1);
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc, argv).options(all).positional(words).run(), given);
    options::notify(given);
  } catch (const options::error& e) {
    return Fail(Blame::kCaller, "{}.", e.what());
  }
  *help = given.count("help") != 0;
  if (*help) return line;

  const auto commands =
      given.count("command") ? given["command"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (commands.size() != 1)
    return Fail(Blame::kCaller,
                "{} commands were given, one of status, record, reload and stop was expected.",
                commands.size());
  line.command = commands[0];
  if (line.command != "status" && line.command != "record" && line.command != "reload" &&
      line.command != "stop")
    return Fail(Blame::kCaller, "\"{}\" is no command; status, record, reload or stop was expected.",
                line.command);

  const auto only_for = [&](const char* option, const char* command) -> Status {
    if (given.count(option) && !given[option].defaulted() && line.command != command)
      return Fail(Blame::kCaller, "--{} goes with {}, not with {}.", option, command, line.command);
    return {};
  };
  if (line.json) TRY(only_for("json", "status"));
  TRY(only_for("watch", "status"));
  if (line.command != "record") TRY(only_for("seconds", "stop"));

  const double timeout = given["timeout"].as<double>();
  if (!(timeout >= 0.001 && timeout <= 3600))
    return Fail(Blame::kCaller, "--timeout is {}; 0.001 to 3600 seconds were expected.", timeout);
  line.place.timeout_ms = static_cast<int>(timeout * 1000);
  if (given.count("watch")) {
    line.watch = given["watch"].as<double>();
    if (!(*line.watch >= 0.05 && *line.watch <= 3600))
      return Fail(Blame::kCaller, "--watch is {}; 0.05 to 3600 seconds were expected.", *line.watch);
  }
  const int64_t seconds = given["seconds"].as<int64_t>();
  const int64_t least = line.command == "record" ? 1 : 0;
  if (seconds < least || seconds > 86400)
    return Fail(Blame::kCaller, "--seconds is {}; {} to 86400 were expected.", seconds, least);
  line.seconds = static_cast<uint32_t>(seconds);
  return line;
}

int Run(int argc, char** argv) {
  (void)signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of Write
  bool help = false;
  std::string usage;
  auto line = ReadLine(argc, argv, &help, &usage);
  if (!line.ok()) {
    std::cerr << "cuplexctl: " << line.error().sentence << "\n`cuplexctl --help` lists what it knows.\n";
    return kUsage;
  }
  if (help) return Write(usage) ? kDone : kFailed;
  if (line->command == "status") return ShowStatus(*line);
  if (line->command == "record") return RecordLoad(*line);
  const Status done =
      line->command == "reload" ? AskReload(line->place) : AskStop(line->place, line->seconds);
  return done.ok() ? kDone : Say(done.error());
}

}  // namespace
}  // namespace cuplex::tools

int main(int argc, char** argv) { return cuplex::tools::Run(argc, argv); }
