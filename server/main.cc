// cuplexd: reads the policy, opens a driver, and serves until it is told to stop.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "metrics/exporter.h"
#include "policies/policy.h"
#include "policies/policy_table.h"
#include "protocol/control_socket.h"
#include "server/control.h"
#include "server/driver_choice.h"
#include "server/options.h"
#include "server/policy_watch.h"
#include "server/reactor.h"

namespace cuplex::server {
namespace {

constexpr int kOk = 0, kFailed = 1, kWrong = 2;

/// The signals that the server answers, blocked in all threads and readable on a descriptor.
Result<UniqueFd> TakeSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGHUP, SIGTERM, SIGINT}) sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return FailErrno(errno, "cannot block signals");
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return FailErrno(errno, "cannot make a signalfd");
  signal(SIGPIPE, SIG_IGN);
  return fd;
}

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Fail(Blame::kSystem, "cannot make the run folder \"{}\": {}.", path, error.message());
  return {};
}

/// Contexts of the server's own, to fill memory with zeros in.
Status MakeZeroContexts(House& house) {
  for (size_t d = 0; d < house.devices.size(); ++d) {
    TRY(Context::Parts parts, Context::Make(house.cu, house.clock, house.devices[d].handle));
    house.zero_in[d] = parts.driver;
  }
  return {};
}

/// Has the driver give the text of kernels to the house, as long as it lives; where the driver can.
class TextReceiver {
 public:
  TextReceiver(const Driver& driver, DeviceTexts& texts)
      : give_(reinterpret_cast<GiveDeviceText*>(driver.Find(kGiveDeviceText))) {
    if (give_) give_(&DeviceTexts::Receive, &texts);
  }
  ~TextReceiver() {
    if (give_) give_(nullptr, nullptr);
  }
  TextReceiver(const TextReceiver&) = delete;
  TextReceiver& operator=(const TextReceiver&) = delete;

 private:
  GiveDeviceText* const give_;
};

Status Serve(const Options& options, policies::Policy policy, UniqueFd signals) {
  const policies::SystemAccounts accounts;
  const SteadyClock clock;
  const int64_t started_ns = clock.NowNs();
  TRY(MakeFolder(policy.server.run_dir));
  TRY(DriverChoice choice, ChooseDriver(options.driver, options.soft_driver));
  std::vector<metrics::DeviceFacts> facts;
  for (const Device& d : choice.devices)
    facts.push_back({std::to_string(d.index), d.PrintUuid(), d.name, d.memory_bytes});
  metrics::Metrics metrics(CUPLEX_VERSION, choice.label, std::move(facts));
  TRY(std::unique_ptr<WakeUp> wake, WakeUp::Make());
  House house(choice.driver->table(), clock,
              std::make_unique<JobThreads>(options.job_threads, [&wake] { wake->Ring(); }),
              std::move(choice.devices), metrics);
  house.block_at_a_time = choice.label == "softcuda";
  TextReceiver texts(*choice.driver, house.texts);
  if (!choice.begins_zero) TRY(MakeZeroContexts(house));
  Reactor reactor(house, *wake, DefaultHostWindow());

  uint64_t stop_seconds = options.stop_seconds;
  auto reload = [&]() -> Status {
    auto next = policies::LoadPolicy(options.policy, accounts, options.run_dir);
    Status status = next.ok() ? Status() : Status(next.error());
    if (status.ok() && !(next->server == reactor.policy().server))
      status = Fail(Blame::kCaller,
                    "{}: `server` has changed, which takes a restart; the old policy stays in force.",
                    options.policy);
    if (status.ok()) {
      for (const std::string& note : next->notes) Log().warn("{}", note);
      status = reactor.Serve(std::move(*next));
    }
    if (status.ok()) {
      metrics.server().policy_loads.Add();
      Log().info("The policy \"{}\" is read again and in force.", options.policy);
    } else {
      metrics.server().policy_load_failures.Add();
      Log().error("The policy \"{}\" is refused, the old one stays in force:\n{}", options.policy,
                  status.error().sentence);
    }
    return status;
  };
  auto stop = [&](uint64_t seconds) {
    Log().info("Stopping: sessions have {} s to end.", seconds);
    reactor.Stop(static_cast<int64_t>(seconds) * kSecondNs);
  };
  Control control(house, {choice.driver->path(), options.policy, started_ns}, reload,
                  [&](uint32_t seconds) { stop(seconds); });
  TRY(auto listener, ControlListener::Open(policy.server.control, [&](std::span<const std::byte> ask) {
        return control.Answer(ask);
      }));
  std::unique_ptr<metrics::Exporter> exporter;
  if (!policy.server.metrics.empty()) {
    TRY(exporter, metrics::Exporter::Listen(policy.server.metrics, metrics));
    Log().info("Metrics are at http port {}.", exporter->port());
  }
  const std::string run_dir = policy.server.run_dir;
  const std::string control_path = policy.server.control.substr(std::string("ipc://").size());
  (void)chmod(control_path.c_str(), 0600);
  TRY(reactor.Serve(std::move(policy)));
  metrics.server().policy_loads.Add();
  TRY(reactor.Watch(listener->fd(), [&] { listener->Serve(); }));
  listener->Serve();
  TRY(reactor.Watch(signals.get(), [&] {
    signalfd_siginfo info;
    while (read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGHUP) {
        (void)reload();
      } else {
        stop(stop_seconds);
      }
    }
  }));
  auto watch = PolicyWatch::Make(options.policy);
  if (watch.ok()) {
    TRY(reactor.Watch(watch->fd(), [&] {
      if (watch->Changed()) (void)reload();
    }));
  } else {
    Log().warn("Changes of the policy take effect when they are told of: {}", watch.error().sentence);
  }
  Log().info("Serving {} tenant{} in \"{}\".", reactor.policy().tenants.size(),
             reactor.policy().tenants.size() == 1 ? "" : "s", run_dir);
  const bool all_ended = reactor.Run();
  (void)unlink(control_path.c_str());
  if (!all_ended) {
    Log().error("Sessions are left after the time to stop; the driver does not let go of them.");
    // Their jobs still use what would be destroyed here, and the kernel takes everything back.
    exporter.reset();
    _exit(kOk);
  }
  for (CUcontext context : house.zero_in)
    if (context) (void)Context::Unmake(house.cu, context);
  Log().info("Stopped.");
  return {};
}

int Main(int argc, char** argv) {
  MakeLog("cuplexd", spdlog::level::info);
  auto line = ReadCommandLine(argc, argv);
  if (!line.ok()) {
    std::fprintf(stderr, "cuplexd: %s\n", line.error().sentence.c_str());
    return kWrong;
  }
  if (!line->text.empty()) {
    std::fputs(line->text.c_str(), stdout);
    return kOk;
  }
  const Options& options = line->options;
  auto policy = policies::LoadPolicy(options.policy, policies::SystemAccounts(), options.run_dir);
  if (!policy.ok()) {
    std::fprintf(stderr, "%s\n", policy.error().sentence.c_str());
    return kWrong;
  }
  for (const std::string& note : policy->notes) Log().warn("{}", note);
  if (options.check) {
    std::printf("%s: good, %zu tenant%s\n%s", options.policy.c_str(), policy->tenants.size(),
                policy->tenants.size() == 1 ? "" : "s", policies::PrintPolicy(*policy).c_str());
    return kOk;
  }
  auto signals = TakeSignals();
  Status status =
      signals.ok() ? Serve(options, std::move(*policy), std::move(*signals)) : Status(signals.error());
  if (status.ok()) return kOk;
  Log().error("{}", status.error().sentence);
  return kFailed;
}

}  // namespace
}  // namespace cuplex::server

int main(int argc, char** argv) { return cuplex::server::Main(argc, argv); }
