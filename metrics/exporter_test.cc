// Scrapes over HTTP on loopback, with sockets of the test's own.
#include "metrics/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "metrics/exposition.h"

namespace cuplex::metrics {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr size_t kH2D = static_cast<size_t>(Direction::kHostToDevice);

Metrics OneDevice() { return Metrics("1.2.3", "softcuda", {{"0", "GPU-1", "Soft \"GPU\"", 4096}}); }

/// The whole answer to GET `target`, head and body.
std::string Get(int port, const std::string& target) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return "no connection";
  std::string request = "GET " + target + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char block[4096];
  while (true) {
    ssize_t n = recv(fd.get(), block, sizeof block, 0);
    if (n <= 0) return answer;
    answer.append(block, static_cast<size_t>(n));
  }
}

std::vector<ExposedFamily> Scrape(const Exporter& exporter) {
  std::string answer = Get(exporter.port(), "/metrics");
  EXPECT_THAT(answer, HasSubstr(" 200 OK\r\n"));
  size_t head = answer.find("\r\n\r\n");
  EXPECT_NE(head, std::string::npos) << answer;
  auto families = ParseExposition(std::string_view(answer).substr(head == std::string::npos ? 0 : head + 4));
  EXPECT_TRUE(families.ok()) << families.error().sentence;
  return families.ok() ? *families : std::vector<ExposedFamily>{};
}

std::unique_ptr<Exporter> Listen(const Metrics& metrics, const std::string& address = "127.0.0.1:0") {
  auto exporter = Exporter::Listen(address, metrics);
  EXPECT_TRUE(exporter.ok()) << exporter.error().sentence;
  return std::move(*exporter);
}

TEST(Exporter, AnswersWithWhatWasCounted) {
  Metrics metrics = OneDevice();
  auto a = *metrics.Tenant("a", {0});
  a->sessions.Set(2);
  a->Refuse(Refusal::kHandle);
  TenantDeviceCounters& on = a->device(0);
  on.memory_used_bytes.Set(100);
  on.memory_limit_bytes.Set(536870912);
  on.queue_depth.Set(7);
  on.device_ns.Add(1'500'000'000);
  on.launches.Add(3);
  on.Copy(Direction::kHostToDevice, 64);
  on.Copy(Direction::kHostToDevice, 36);
  on.out_of_memory.Add();
  metrics.server().Reject(Rejection::kUnknown);
  metrics.server().policy_loads.Add();

  auto exporter = Listen(metrics);
  auto series = Series(Scrape(*exporter));
  const std::pair<const char*, double> expected[] = {
      {"cuplex_server_info{driver=\"softcuda\",version=\"1.2.3\"}", 1},
      {"cuplex_server_rejected_clients_total{reason=\"unknown\"}", 1},
      {"cuplex_server_rejected_clients_total{reason=\"busy\"}", 0},
      {"cuplex_server_policy_loads_total{result=\"taken\"}", 1},
      {"cuplex_server_policy_loads_total{result=\"refused\"}", 0},
      {"cuplex_device_info{device=\"0\",name=\"Soft \"GPU\"\",uuid=\"GPU-1\"}", 1},
      {"cuplex_device_memory_bytes{device=\"0\"}", 4096},
      {"cuplex_tenant_sessions{tenant=\"a\"}", 2},
      {"cuplex_tenant_refusals_total{reason=\"handle\",tenant=\"a\"}", 1},
      {"cuplex_tenant_refusals_total{reason=\"frame\",tenant=\"a\"}", 0},
      {"cuplex_tenant_memory_used_bytes{device=\"0\",tenant=\"a\"}", 100},
      {"cuplex_tenant_memory_limit_bytes{device=\"0\",tenant=\"a\"}", 536870912},
      {"cuplex_tenant_queue_depth{device=\"0\",tenant=\"a\"}", 7},
      {"cuplex_tenant_device_seconds_total{device=\"0\",tenant=\"a\"}", 1.5},
      {"cuplex_tenant_launches_total{device=\"0\",tenant=\"a\"}", 3},
      {"cuplex_tenant_copies_total{device=\"0\",direction=\"host_to_device\",tenant=\"a\"}", 2},
      {"cuplex_tenant_copied_bytes_total{device=\"0\",direction=\"host_to_device\",tenant=\"a\"}", 100},
      {"cuplex_tenant_copies_total{device=\"0\",direction=\"device_to_host\",tenant=\"a\"}", 0},
      {"cuplex_tenant_out_of_memory_total{device=\"0\",tenant=\"a\"}", 1},
      {"cuplex_tenant_kernel_faults_total{device=\"0\",tenant=\"a\"}", 0},
  };
  for (auto [name, value] : expected) {
    ASSERT_TRUE(series.contains(name)) << name;
    EXPECT_EQ(series[name], value) << name;
  }
}

TEST(Exporter, KeepsToTheConventions) {
  Metrics metrics = OneDevice();
  auto a = *metrics.Tenant("a", {0});
  auto b = *metrics.Tenant("b", {0});
  auto exporter = Listen(metrics);
  Scrape(*exporter);  // so that the exporter's own series are there too
  EXPECT_THAT(Lint(Scrape(*exporter)), IsEmpty());
}

TEST(Exporter, ATenantsSeriesGoWhenItGoes) {
  Metrics metrics = OneDevice();
  auto exporter = Listen(metrics);
  auto mentions = [&](std::string_view tenant) {
    int n = 0;
    for (const auto& family : Scrape(*exporter)) {
      for (const auto& sample : family.samples) {
        auto at = sample.labels.find("tenant");
        n += at != sample.labels.end() && at->second == tenant;
      }
    }
    return n;
  };
  EXPECT_EQ(mentions("a"), 0);
  auto a = *metrics.Tenant("a", {0});
  auto b = *metrics.Tenant("b", {0});
  EXPECT_GT(mentions("a"), 10);
  a.reset();
  EXPECT_EQ(mentions("a"), 0);
  EXPECT_GT(mentions("b"), 10);
}

TEST(Exporter, CountersNeverRunBackwardsUnderLoad) {
  Metrics metrics = OneDevice();
  auto a = *metrics.Tenant("a", {0});
  auto exporter = Listen(metrics);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> done = 0;
  std::thread reactor([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      TenantDeviceCounters& on = a->device(0);
      on.device_ns.Add(12345);
      on.launches.Add();
      on.Copy(Direction::kHostToDevice, 3);
      on.queue_depth.Set(done % 5);
      auto passing = *metrics.Tenant("passing", {0});  // comes and goes while scrapes are under way
      passing->sessions.Add();
      done.fetch_add(1);
    }
  });
  std::map<std::string, double> last;
  for (int scrape = 0; scrape < 50; ++scrape) {
    uint64_t before = done.load();
    auto families = Scrape(*exporter);
    uint64_t after = done.load();
    EXPECT_THAT(Lint(families), IsEmpty());
    for (const auto& family : families) {
      if (family.type != "counter" || !family.name.starts_with("cuplex_tenant")) continue;
      for (const auto& [name, value] : Series({family})) {
        if (name.find("passing") != std::string::npos) continue;
        EXPECT_GE(value, last[name]) << name;
        last[name] = value;
      }
    }
    double launches = last["cuplex_tenant_launches_total{device=\"0\",tenant=\"a\"}"];
    EXPECT_GE(launches, static_cast<double>(before));
    EXPECT_LE(launches, static_cast<double>(after + 1));
  }
  stop = true;
  reactor.join();
  EXPECT_EQ(a->device(0).launches.value(), done.load());
  EXPECT_EQ(a->device(0).copied_bytes[kH2D].value(), 3 * done.load());
}

TEST(Exporter, AnAddressInUseIsSaid) {
  Metrics metrics = OneDevice();
  auto first = Listen(metrics);
  std::string address = "127.0.0.1:" + std::to_string(first->port());
  auto second = Exporter::Listen(address, metrics);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().blame, Blame::kSystem);
  EXPECT_EQ(second.error().sentence, "Metrics cannot be served on " + address + ": Address already in use");
}

TEST(Exporter, AnAddressThatIsNotOursIsSaid) {
  auto exporter = Exporter::Listen("192.0.2.1:0", OneDevice());
  ASSERT_FALSE(exporter.ok());
  EXPECT_EQ(exporter.error().sentence,
            "Metrics cannot be served on 192.0.2.1:0: Cannot assign requested address");
}

TEST(Exporter, SomethingElseThanAnAddressIsSaid) {
  auto exporter = Exporter::Listen("9400", OneDevice());
  ASSERT_FALSE(exporter.ok());
  EXPECT_EQ(exporter.error().blame, Blame::kCaller);
  EXPECT_EQ(
      exporter.error().sentence,
      "\"9400\" is no address for metrics; ADDRESS:PORT was expected, as in 127.0.0.1:9400 or [::1]:9400.");
}

TEST(Exporter, OtherPathsAreNotThere) {
  Metrics metrics = OneDevice();
  auto exporter = Listen(metrics);
  EXPECT_THAT(Get(exporter->port(), "/etc/passwd"), StartsWith("HTTP/1.0 404 "));
  EXPECT_THAT(Get(exporter->port(), "/../../etc/passwd"), StartsWith("HTTP/1.0 404 "));
}

TEST(Exporter, ThePortIsFreeAgainAfterwards) {
  Metrics metrics = OneDevice();
  auto first = Listen(metrics);
  std::string address = "127.0.0.1:" + std::to_string(first->port());
  first.reset();
  EXPECT_TRUE(Exporter::Listen(address, metrics).ok());
}

}  // namespace
}  // namespace cuplex::metrics
