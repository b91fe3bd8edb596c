#include "policies/policy.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FixedAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string& user) const override {
    return user == "alice" ? std::optional(1000u) : user == "bob" ? std::optional(1001u) : std::nullopt;
  }
  std::optional<uint32_t> Gid(const std::string& group) const override {
    return group == "video" ? std::optional(44u) : std::nullopt;
  }
};

Policy Parse(std::string_view text, std::string_view run_dir = {}) {
  auto policy = ParsePolicy(text, "p.yaml", FixedAccounts(), run_dir);
  EXPECT_TRUE(policy.ok()) << policy.error().sentence;
  return policy.ok() ? *policy : Policy{};
}

Policy Sample(const std::string& name) {
  auto policy = LoadPolicy(std::string(SOURCE_ROOT) + "/policies/samples/" + name, FixedAccounts());
  EXPECT_TRUE(policy.ok()) << policy.error().sentence;
  return policy.ok() ? *policy : Policy{};
}

TEST(Policy, TheLeastFileHasDefaultsForEverythingElse) {
  Policy policy = Sample("minimal.yaml");
  EXPECT_EQ(policy.server, (ServerSettings{.run_dir = "/run/cuplex",
                                           .socket = "/run/cuplex/cuplex.sock",
                                           .control = "ipc:///run/cuplex/control.sock",
                                           .metrics = "127.0.0.1:9400"}));
  EXPECT_THAT(policy.devices, IsEmpty());
  EXPECT_EQ(policy.default_tenant, std::nullopt);
  EXPECT_THAT(policy.notes, IsEmpty());
  Tenant main{.name = "main",
              .matches = {},
              .socket = {.path = "/run/cuplex/main.sock", .mode = 0600, .owner = {}, .group = {}},
              .terms = {.time = {.guarantee = 0, .limit = 1, .weight = 100, .priority = 0},
                        .memory_bytes = uint64_t{2} << 30,
                        .part = {}},
              .devices = {},
              .on = {}};
  EXPECT_THAT(policy.tenants, ElementsAre(main));
}

TEST(Policy, UsersAreMatchedByNumbersRangesAndNames) {
  Policy policy = Sample("two-users.yaml");
  ASSERT_EQ(policy.tenants.size(), 2u);
  EXPECT_THAT(policy.tenants[0].matches, ElementsAre(Match{{{1000, 1000}}, {}, {}}));
  EXPECT_THAT(policy.tenants[1].matches, ElementsAre(Match{{{1001, 1001}, {2000, 2099}}, {}, {}}));
  EXPECT_EQ(policy.tenants[0].socket.mode, 0666u) << "the match decides, so everybody may connect";

  policy = Parse(
      "version: 1\n"
      "tenants:\n"
      "  - name: a\n"
      "    memory: 1GiB\n"
      "    match: {user: [alice, bob], group: video, gid: 7}\n"
      "    socket: {owner: alice, group: \"12\"}\n");
  EXPECT_THAT(policy.tenants.at(0).matches,
              ElementsAre(Match{{{1000, 1000}, {1001, 1001}}, {{7, 7}, {44, 44}}, {}}));
  EXPECT_EQ(policy.tenants[0].socket,
            (Socket{.path = "/run/cuplex/a.sock", .mode = 0666, .owner = 1000, .group = 12}));
}

TEST(Policy, AKeyOfATenantGoesBeforeItsProfile) {
  Policy policy = Sample("profiles.yaml");
  auto terms = [&policy](std::string_view name) {
    const Tenant* tenant = policy.Find(name);
    return tenant ? std::tuple(PrintSize(tenant->terms.memory_bytes), tenant->terms.time.weight,
                               tenant->terms.time.priority)
                  : std::tuple(std::string("no such tenant"), 0.0, 0);
  };
  EXPECT_EQ(terms("notebook-1"), std::tuple("4GiB", 400.0, 5));
  EXPECT_EQ(terms("notebook-2"), std::tuple("6GiB", 400.0, 5));
  EXPECT_EQ(terms("training"), std::tuple("16GiB", 100.0, -5));
  EXPECT_EQ(terms("nightly"), std::tuple("16GiB", 50.0, -5));
  EXPECT_EQ(policy.Find("batch"), nullptr);
}

TEST(Policy, SharesAndTimes) {
  Policy policy = Parse(
      "version: 1\n"
      "devices: [{index: 0, max_slice: 500us, min_slice: 250us}, {index: 1}]\n"
      "profiles:\n"
      "  patient: {memory: 1GiB, on_oom: wait, oom_wait: 2min, limit: 60%, guarantee: 20 %}\n"
      "tenants:\n"
      "  - {name: a, profile: patient, guarantee: 30%, max_kernel_time: 10 s}\n"
      "  - {name: b, profile: patient, on_oom: fail}\n"
      "  - {name: c, memory: 1GiB, on_oom: wait}\n");
  EXPECT_EQ(policy.devices.at(0).max_slice_ns, 500'000u);
  EXPECT_EQ(policy.devices.at(0).min_slice_ns, 250'000u);
  EXPECT_EQ(policy.devices.at(1).min_slice_ns, 0u);
  const auto share = [](const Tenant& tenant) {
    const Terms& terms = tenant.On([](const DeviceName& name) { return name == DeviceName(0); }).time;
    return std::pair(terms.guarantee, terms.limit);
  };
  const Tenant& a = policy.tenants.at(0);
  EXPECT_EQ(share(a), std::pair(0.3, 0.6));
  EXPECT_EQ(std::tuple(a.max_kernel_ns, a.oom_wait_ns), std::tuple(10'000'000'000u, 120'000'000'000u));
  const Tenant& b = policy.tenants.at(1);
  EXPECT_EQ(share(b), std::pair(0.2, 0.6));
  EXPECT_EQ(std::tuple(b.max_kernel_ns, b.oom_wait_ns), std::tuple(0u, 0u));
  const Tenant& c = policy.tenants.at(2);
  EXPECT_EQ(share(c), std::pair(0.0, 1.0));
  EXPECT_EQ(c.oom_wait_ns, 10'000'000'000u);
}

TEST(Policy, SocketsAndDefaultTenant) {
  Policy policy = Sample("containers.yaml");
  EXPECT_EQ(policy.default_tenant, "guest");
  EXPECT_THAT(policy.Find("pods")->matches,
              ElementsAre(Match{{}, {}, {"/kubepods.slice/kubepods-burstable.slice"}},
                          Match{{{100000, 165535}}, {}, {"/kubepods.slice/kubepods-besteffort.slice"}}));
  EXPECT_EQ(policy.Find("video")->socket,
            (Socket{.path = "/run/cuplex/video/cuda.sock", .mode = 0660, .owner = 0, .group = 44}));
}

TEST(Policy, DevicesByIndexAndUuid) {
  Policy policy = Sample("devices.yaml");
  const std::string uuid = "GPU-6f2f0a51-3c44-4f1b-9a71-0d9c5a1e7b20";
  std::vector<DeviceName> names;
  for (const Device& device : policy.devices) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre(DeviceName(0), DeviceName(1), DeviceName(uuid)));
  EXPECT_EQ(policy.server.metrics, "[::1]:9400");
  EXPECT_TRUE(policy.Find("rendering")->Sees(1));
  EXPECT_FALSE(policy.Find("rendering")->Sees(uuid));
  EXPECT_TRUE(policy.Find("simulation")->Sees(uuid));
  EXPECT_TRUE(Sample("minimal.yaml").Find("main")->Sees(7)) << "no list means every device";
}

TEST(Policy, EverySampleIsGood) {
  int samples = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(SOURCE_ROOT) + "/policies/samples")) {
    auto policy = LoadPolicy(entry.path(), FixedAccounts());
    EXPECT_TRUE(policy.ok()) << policy.error().sentence;
    ++samples;
  }
  EXPECT_GE(samples, 5);
}

TEST(Policy, WhatTheDocumentsShowIsGood) {
  auto compose = LoadPolicy(std::string(SOURCE_ROOT) + "/deploy/compose-policy.yaml", FixedAccounts());
  EXPECT_TRUE(compose.ok()) << compose.error().sentence;
  for (const char* name : {"README.md", "docs/policies.md"}) {
    std::ifstream file(std::string(SOURCE_ROOT) + "/" + name);
    std::string line, text;
    while (std::getline(file, line) && line != "    version: 1") continue;
    for (; file && (line.empty() || line.starts_with("    ")); std::getline(file, line)) text += line + "\n";
    auto policy = ParsePolicy(text, name, FixedAccounts());
    EXPECT_TRUE(policy.ok()) << policy.error().sentence << "\n" << text;
  }
}

TEST(Policy, ARunDirFromOutsideGoesBeforeTheFile) {
  Policy policy = Parse(
      "version: 1\n"
      "server: {run_dir: /run/elsewhere, metrics: off}\n"
      "tenants: [{name: a, memory: 1GiB}]\n",
      "/tmp/run");
  EXPECT_EQ(policy.server, (ServerSettings{.run_dir = "/tmp/run",
                                           .socket = "/tmp/run/cuplex.sock",
                                           .control = "ipc:///tmp/run/control.sock",
                                           .metrics = ""}));
  EXPECT_EQ(policy.tenants.at(0).socket.path, "/tmp/run/a.sock");
}

TEST(Policy, AnUnreadableFileIsTheSystemsFault) {
  auto policy = LoadPolicy("/nonexistent/p.yaml", FixedAccounts());
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().blame, Blame::kSystem);
  EXPECT_EQ(policy.error().sentence,
            "The policy file /nonexistent/p.yaml cannot be opened: No such file or directory");
}

TEST(Policy, AnEndlessFileIsRefused) {
  auto policy = LoadPolicy("/dev/zero", FixedAccounts());
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().sentence,
            "The policy file /dev/zero is longer than 1MiB, the most a policy may have.");
}

TEST(SystemAccounts, KnowsRootAndNotNobodyKnows) {
  SystemAccounts accounts;
  EXPECT_EQ(accounts.Uid("root"), 0u);
  EXPECT_EQ(accounts.Gid("root"), 0u);
  EXPECT_EQ(accounts.Uid("no-such-user-here"), std::nullopt);
  EXPECT_EQ(accounts.Gid("no-such-group-here"), std::nullopt);
}

TEST(Quantity, SizesParseAndPrint) {
  EXPECT_EQ(ParseSize("1KiB"), 1024u);
  EXPECT_EQ(ParseSize("512MiB"), 536870912u);
  EXPECT_EQ(ParseSize("512 MiB"), 536870912u);
  EXPECT_EQ(ParseSize("3TiB"), 3298534883328u);
  EXPECT_EQ(ParseSize("16777215TiB"), 18446742974197923840u);
  for (std::string_view text : {"", "5", "MiB", "512M", "512MB", "512mib", "512MiBs", "512  MiB", "-1MiB",
                                "+1MiB", "1.5GiB", "0x10MiB", "16777216TiB", "99999999999999999999KiB"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
  EXPECT_EQ(PrintSize(536870912), "512MiB");
  EXPECT_EQ(PrintSize(1536u << 20), "1536MiB");
  EXPECT_EQ(PrintSize(uint64_t{4} << 40), "4TiB");
  EXPECT_EQ(PrintSize(0), "0KiB");
  EXPECT_EQ(PrintSize(1000), "1000 bytes");
}

TEST(Quantity, PermissionsAreThreeOctalDigits) {
  EXPECT_EQ(ParsePermissions("0640"), 0640u);
  EXPECT_EQ(ParsePermissions("640"), 0640u);
  for (std::string_view text : {"", "0", "64", "1640", "00640", "680", "u+rw", "0o640", "-64"}) {
    EXPECT_EQ(ParsePermissions(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cuplex::policies
