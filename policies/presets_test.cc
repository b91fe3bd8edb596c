// Presets against a table of what the systems that they are named after document, and the terms of a tenant
// on each device.
#include "policies/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/policy_table.h"

namespace cuplex::policies {
namespace {

using testing::ElementsAre;

class NoAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string&) const override { return std::nullopt; }
  std::optional<uint32_t> Gid(const std::string&) const override { return std::nullopt; }
};

Policy Parse(const std::string& text) {
  auto policy = ParsePolicy("version: 1\n" + text, "p", NoAccounts());
  EXPECT_TRUE(policy.ok()) << policy.error().sentence << "\n" << text;
  return policy.ok() ? *policy : Policy{};
}

std::string Told(const std::string& text) {
  auto policy = ParsePolicy("version: 1\n" + text, "p", NoAccounts());
  return policy.ok() ? "" : policy.error().sentence;
}

const DeviceTerms& On(const Policy& policy, std::string_view tenant, const DeviceName& device) {
  static const DeviceTerms kNone;
  const Tenant* found = policy.Find(tenant);
  EXPECT_NE(found, nullptr) << tenant;
  return found ? found->On([&](const DeviceName& name) { return name == device; }) : kNone;
}

// Two tenants, of which one says a guarantee of 20% and the other one of 50% where `own`, on one device.
// Written by hand from the documentation of the systems:
//   cGPU 0  a fixed slice of 1/max_inst for each            cGPU 3  a fixed percentage for each
//   cGPU 1  1/(those there are) for each                    cGPU 4  the same as 1, with a weaker wall
//   cGPU 2  in proportion to weights                        cGPU 5  what the driver does
//   qGPU, mGPU  best-effort: whoever comes; fixed-share: a quota, also when others rest; burst-share: a
//   quota, and what others leave vGPU    best effort: round robin; equal share: 1/(vGPUs there are), also
//   when others rest; fixed share: 1/(vGPUs that could be) Kubernetes  replicas without any isolation of
//   memory, time in turn
struct Row {
  const char* preset;
  const char* device_keys;
  bool own;
  DeviceMode mode;
  double guarantee_a, guarantee_b, limit_a, limit_b;
  uint64_t max_slice_ns;
};

constexpr auto kTurns = DeviceMode::kTimeslice;

class PresetOfADevice : public testing::TestWithParam<Row> {};

TEST_P(PresetOfADevice, IsWhatItsNameMeans) {
  const Row& row = GetParam();
  const Policy policy = Parse(fmt::format(
      "devices: [{{index: 0, preset: {}{}}}]\ntenants:\n- {{name: a, memory: 1GiB{}}}\n- {{name: b, memory: "
      "1GiB{}}}\n",
      row.preset, row.device_keys, row.own ? ", guarantee: 20%" : "", row.own ? ", guarantee: 50%" : ""));
  ASSERT_EQ(policy.devices.size(), 1u);
  EXPECT_EQ(policy.devices[0].mode, row.mode);
  EXPECT_EQ(policy.devices[0].max_slice_ns, row.max_slice_ns);
  EXPECT_EQ(policy.devices[0].preset, row.preset);
  const Terms a = On(policy, "a", 0).time, b = On(policy, "b", 0).time;
  EXPECT_EQ(a, (Terms{row.guarantee_a, row.limit_a, 100, 0}));
  EXPECT_EQ(b, (Terms{row.guarantee_b, row.limit_b, 100, 0}));
  EXPECT_EQ(On(policy, "a", 0).memory_bytes, uint64_t{1} << 30);
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(All, PresetOfADevice, testing::Values(
    //  preset               more of the device   shares  mode                      guarantees   limits      max slice
    Row{"average",           "",                  false,  kTurns,                   0.5,  0.5,   0.5,  0.5,  2'000'000},
    Row{"average",           ", shares: 8",       false,  kTurns,                   0.125, 0.125, 0.125, 0.125, 2'000'000},
    Row{"preemptive",        "",                  false,  kTurns,                   0,    0,     1,    1,    2'000'000},
    Row{"weighted",          "",                  false,  kTurns,                   0,    0,     1,    1,    2'000'000},
    Row{"fixed",             "",                  true,   kTurns,                   0.2,  0.5,   0.2,  0.5,  2'000'000},
    Row{"weak",              "",                  false,  kTurns,                   0,    0,     1,    1,    20'000'000},
    Row{"weak",              ", max_slice: 5ms",  false,  kTurns,                   0,    0,     1,    1,    5'000'000},
    Row{"native",            "",                  false,  DeviceMode::kConcurrent,  0,    0,     1,    1,    2'000'000},
    Row{"best-effort",       "",                  false,  kTurns,                   0,    0,     1,    1,    2'000'000},
    Row{"fixed-share",       "",                  true,   kTurns,                   0.2,  0.5,   0.2,  0.5,  2'000'000},
    Row{"burst-share",       "",                  true,   kTurns,                   0.2,  0.5,   1,    1,    2'000'000},
    Row{"vgpu-best-effort",  "",                  false,  kTurns,                   0,    0,     1,    1,    2'000'000},
    Row{"vgpu-equal-share",  "",                  false,  kTurns,                   0.5,  0.5,   0.5,  0.5,  2'000'000},
    Row{"vgpu-fixed-share",  ", shares: 4",       false,  kTurns,                   0.25, 0.25,  0.25, 0.25, 2'000'000},
    Row{"time-slicing",      "",                  false,  kTurns,                   0,    0,     1,    1,    2'000'000}));
// clang-format on

TEST(Presets, AllAreInTheTableAbove) {
  std::vector<std::string> names;
  for (const Preset& preset : Presets()) names.emplace_back(preset.name);
  EXPECT_THAT(names, ElementsAre("average", "preemptive", "weighted", "fixed", "weak", "native",
                                 "best-effort", "fixed-share", "burst-share", "vgpu-best-effort",
                                 "vgpu-equal-share", "vgpu-fixed-share", "time-slicing"));
}

TEST(Presets, ThirdsAreExact) {
  const Policy policy = Parse(
      "devices: [{index: 0, preset: average}]\n"
      "tenants: [{name: a, memory: 1GiB}, {name: b, memory: 1GiB}, {name: c, memory: 1GiB}]\n");
  EXPECT_DOUBLE_EQ(On(policy, "b", 0).time.limit, 1.0 / 3);
  EXPECT_EQ(PrintShare(1.0 / 3), "33.33%");
}

TEST(Presets, ATenantsOwnKeysGoBeforeThem) {
  const Policy policy = Parse(
      "devices: [{index: 0, preset: weighted}, {index: 1, preset: average, shares: 4}, {index: 2}]\n"
      "profiles: {reserved: {memory: 1GiB, preset: fixed-share, guarantee: 20%}}\n"
      "tenants:\n"
      "- {name: a, memory: 1GiB, weight: 300, priority: 2, devices: [0]}\n"
      "- {name: b, memory: 1GiB, guarantee: 10%, devices: [1]}\n"
      "- {name: c, memory: 1GiB, limit: 60%, devices: [1]}\n"
      "- {name: d, profile: reserved}\n"
      "- {name: e, profile: reserved, limit: 30%, guarantee: 30%, devices: [2]}\n");
  EXPECT_EQ(On(policy, "a", 0).time, (Terms{0, 1, 300, 2}));
  EXPECT_EQ(On(policy, "b", 1).time, (Terms{0.1, 0.25, 100, 0}));
  EXPECT_EQ(On(policy, "c", 1).time, (Terms{0.25, 0.6, 100, 0}));
  for (int device : {0, 1, 2}) EXPECT_EQ(On(policy, "d", device).time, (Terms{0.2, 0.2, 100, 0})) << device;
  EXPECT_EQ(On(policy, "e", 2).time, (Terms{0.3, 0.3, 100, 0}));
}

TEST(Presets, ReplicasAreEqualSlotsOfADevice) {
  const Policy policy = Parse(
      "server: {run_dir: /run/k}\n"
      "devices:\n"
      "- {index: 3, preset: time-slicing, replicas: 2}\n"
      "- {uuid: GPU-6f2f0a51-3c44-4f1b-9a71-0d9c5a1e7b20, preset: time-slicing, replicas: 1, memory: "
      "4GiB}\n");
  ASSERT_EQ(policy.tenants.size(), 3u);
  const std::vector<std::pair<std::string, uint64_t>> expected = {
      {"gpu3-1", kAllMemory}, {"gpu3-2", kAllMemory}, {"gpu-6f2f0a51-1", uint64_t{4} << 30}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tenant& slot = policy.tenants[i];
    EXPECT_EQ(slot.name, expected[i].first);
    EXPECT_EQ(slot.socket.path, "/run/k/" + slot.name + ".sock");
    EXPECT_EQ(slot.socket.mode, 0666u);
    EXPECT_TRUE(slot.matches.empty());
    EXPECT_THAT(slot.devices, ElementsAre(policy.devices[i / 2].name));
    EXPECT_EQ(On(policy, slot.name, policy.devices[i / 2].name), (DeviceTerms{{}, expected[i].second, {}}));
  }
}

TEST(DeviceTerms, ADevicesEntryGoesBeforeTheTenantAndItsProfile) {
  const Policy policy = Parse(
      "devices: [{index: 0}, {index: 1}, {index: 2, mode: partition}]\n"
      "profiles: {p: {memory: 2GiB, weight: 50, limit: 80%}}\n"
      "tenants:\n"
      "- name: a\n"
      "  profile: p\n"
      "  guarantee: 10%\n"
      "  partition: 1of4\n"
      "  devices:\n"
      "  - 0\n"
      "  - {index: 1, guarantee: 60%, memory: 8GiB, weight: 200, priority: -3}\n"
      "  - {index: 2, partition: 3of4}\n"
      "- {name: b, memory: all, partition: 1of4}\n");
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(On(policy, "a", 0), (DeviceTerms{{0.1, 0.8, 50, 0}, 2 * kGiB, {}}));
  EXPECT_EQ(On(policy, "a", 1), (DeviceTerms{{0.6, 0.8, 200, -3}, 8 * kGiB, {}}));
  EXPECT_EQ(On(policy, "a", 2), (DeviceTerms{{0, 0.8, 50, 0}, 2 * kGiB, {3, 4}}));
  EXPECT_EQ(On(policy, "b", 1), (DeviceTerms{{}, kAllMemory, {}}));
  EXPECT_EQ(On(policy, "b", 2), (DeviceTerms{{}, kAllMemory, {1, 4}}));
  EXPECT_THAT(policy.Find("b")->devices, ElementsAre(DeviceName(0), DeviceName(1), DeviceName(2)))
      << "those of the file are all there are";
}

TEST(PolicyTable, TellsWhatEverybodyHas) {
  EXPECT_EQ(PrintPolicy(Parse(
                "devices: [{index: 0, preset: fixed-share}, {index: 1, mode: partition}]\n"
                "tenants:\n"
                "- {name: research, memory: 8GiB, limit: 30%, partition: 2of7}\n"
                "- {name: teaching, memory: all, limit: 70%, partition: 4of7, weight: 7, priority: 1}\n")),
            "device 0: timeslice, slices of 2ms, preset fixed-share\n"
            "  tenant                       memory  guarantee    limit   weight  priority     part\n"
            "  research                       8GiB        30%      30%      100         0        -\n"
            "  teaching                        all        70%      70%        7         1        -\n"
            "device 1: partition\n"
            "  tenant                       memory  guarantee    limit   weight  priority     part\n"
            "  research                       8GiB          -      30%        -         -     2of7\n"
            "  teaching                        all          -      70%        -         -     4of7\n");
  EXPECT_EQ(
      PrintPolicy(Parse("tenants:\n- {name: a, memory: 8GiB}\n- {name: b, memory: 512MiB, devices: [1]}\n")),
      "device 1: timeslice, slices of 2ms\n"
      "  tenant                       memory  guarantee    limit   weight  priority     part\n"
      "  a                              8GiB          -        -      100         0        -\n"
      "  b                            512MiB          -        -      100         0        -\n"
      "every other device: timeslice, slices of 2ms\n"
      "  tenant                       memory  guarantee    limit   weight  priority     part\n"
      "  a                              8GiB          -        -      100         0        -\n");
}

struct Contradiction {
  const char* name;
  std::string text;
  std::string told;
};

class Contradictions : public testing::TestWithParam<Contradiction> {};

TEST_P(Contradictions, AreRefusedWithBothNames) { EXPECT_EQ(Told(GetParam().text), GetParam().told); }

std::string One(const std::string& device, const std::string& tenant) {
  return fmt::format("devices: [{{index: 0{}}}]\ntenants: [{{name: a, memory: 1GiB{}}}]\n", device, tenant);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Contradictions,
    testing::Values(
        Contradiction{"Weight", One(", preset: preemptive", ", weight: 300"),
                      "p:3:11: The tenant \"a\" says `weight`, for which the preset \"preemptive\" of the "
                      "device 0 leaves "
                      "no room; the preset weighted or no `weight` was expected."},
        Contradiction{"BestEffortGuarantee", One("", ", preset: best-effort, guarantee: 5%"),
                      "p:3:11: The tenant \"a\" says `guarantee`, for which the preset \"best-effort\" of "
                      "its own leaves "
                      "no room; the preset burst-share or no `guarantee` was expected."},
        Contradiction{"NativeLimit", One(", preset: native", ", limit: 50%"),
                      "p:3:11: The tenant \"a\" says `limit`, for which the preset \"native\" of the device "
                      "0 leaves no "
                      "room; the mode concurrent without a preset or no `limit` was expected."},
        Contradiction{"TwoPresets", One(", preset: native", ", preset: fixed-share, limit: 5%"),
                      "p:3:11: The tenant \"a\" says `limit`, for which the preset \"native\" of the device "
                      "0 leaves no "
                      "room; the mode concurrent without a preset or no `limit` was expected."},
        Contradiction{"NativeAndBestEffort", One(", preset: native", ", preset: best-effort"),
                      "p:3:11: The preset \"best-effort\" of the tenant \"a\" and the preset \"native\" of "
                      "the device 0 "
                      "contradict each other; one of them was expected."},
        Contradiction{
            "Mode", One(", preset: average, mode: concurrent", ""),
            "p:2:39: The preset \"average\" of the device 0 means the mode timeslice, and its `mode` is "
            "concurrent; one of them was expected."},
        Contradiction{
            "NoShare", One(", preset: fixed", ""),
            "p:3:11: The tenant \"a\" has no share, which the preset \"fixed\" of the device 0 needs; a "
            "`guarantee` or a `limit` such as 30% was expected."},
        Contradiction{
            "NoGuarantee", One("", ", preset: burst-share, limit: 50%"),
            "p:3:11: The tenant \"a\" has no share, which the preset \"burst-share\" of its own needs; a "
            "`guarantee` such as 30% was expected."},
        Contradiction{
            "TwoShares", One(", preset: fixed-share", ", guarantee: 20%, limit: 30%"),
            "p:3:11: The tenant \"a\" has a `guarantee` of 20% and a `limit` of 30%, which the preset "
            "\"fixed-share\" of the device 0 makes one share; the same for both, or one of them, was "
            "expected."},
        Contradiction{
            "SharesOfNothing", One(", preset: fixed, shares: 4", ", limit: 5%"),
            "p:2:37: `shares` is given for the preset \"fixed\" of the device 0; it goes with the presets "
            "average and vgpu-fixed-share."},
        Contradiction{"SharesMissing", One(", preset: vgpu-fixed-share", ""),
                      "p:2:11: The preset \"vgpu-fixed-share\" of the device 0 needs `shares`; the number of "
                      "equal parts "
                      "was expected."},
        Contradiction{
            "ReplicasOfNothing", One(", replicas: 4", ""),
            "p:2:22: `replicas` is given for the device 0, which has no preset; it goes with the preset "
            "time-slicing."},
        Contradiction{
            "MoreTenantsThanShares",
            "devices: [{index: 0, preset: average, shares: 1}]\ntenants: [{name: a, memory: 1GiB}, {name: b, "
            "memory: 1GiB}]\n",
            "p:3:1: The guarantees on the device 0 are 200% together (a 100%, b 100%); at most 100% was "
            "expected."},
        Contradiction{
            "GuaranteesOfOneDevice",
            "devices: [{index: 0}, {index: 1}]\ntenants:\n- {name: a, memory: 1GiB, guarantee: 50%}\n- "
            "{name: "
            "b, memory: 1GiB, devices: [{index: 0, guarantee: 50%}, {index: 1, guarantee: 51%}]}\n",
            "p:3:1: The guarantees on the device 1 are 101% together (a 50%, b 51%); at most 100% was "
            "expected."},
        Contradiction{
            "PresetNotOfATenant", One("", ", preset: native"),
            "p:3:43: `preset` is \"native\"; one of fixed, best-effort, fixed-share, burst-share was "
            "expected."},
        Contradiction{"APartWithoutTheMode", One("", ", partition: 2of7"),
                      "p:3:11: The tenant \"a\" has the `partition` 2of7 and sees no device in mode "
                      "partition; one under "
                      "`devices` was expected."},
        Contradiction{
            "APartOfADeviceInTurns", One("", ", devices: [{index: 0, partition: 2of7}]"),
            "p:3:45: The tenant \"a\" has the `partition` 2of7 of the device 0, whose mode is timeslice; the "
            "mode partition was expected."},
        Contradiction{"NoPart", One(", mode: partition", ""),
                      "p:3:11: The tenant \"a\" has no `partition`, and the mode of the device 0 is "
                      "partition; a part of "
                      "the device such as 2of7 (of at most 64) was expected."},
        Contradiction{
            "BadPart", One(", mode: partition", ", partition: 8of7"),
            "p:3:46: `partition` is \"8of7\"; a part of the device such as 2of7 (of at most 64) was "
            "expected."},
        Contradiction{"TurnsInAPart",
                      One(", mode: partition", ", devices: [{index: 0, partition: 2of7, weight: 5}]"),
                      "p:3:45: The tenant \"a\" has a `weight` of the device 0, whose mode is partition and "
                      "which it has "
                      "a part of all the time; none was expected."},
        Contradiction{
            "TooManyParts",
            "devices: [{index: 0, mode: partition}]\ntenants: [{name: a, memory: 1GiB, partition: 4of7}, "
            "{name: "
            "b, memory: 1GiB, partition: 4of7}]\n",
            "p:3:1: The device 0 cannot be divided so. The tenants together want 8 parts of one device (a "
            "4of7, b 4of7); at most 7 were expected."},
        Contradiction{
            "SlotsTakeATenantsName",
            "devices: [{index: 0, preset: time-slicing, replicas: 1}]\ntenants: [{name: gpu0-1, memory: "
            "1GiB}]\n",
            "p:2:11: The tenant \"gpu0-1\" is given twice, first on line 3; once was expected."}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace cuplex::policies
