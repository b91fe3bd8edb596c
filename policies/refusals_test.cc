// Bad policy files, and every line the operator is told about each.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "policies/policy.h"

namespace cuplex::policies {
namespace {

class FixedAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string& user) const override {
    return user == "alice" ? std::optional(1000u) : std::nullopt;
  }
  std::optional<uint32_t> Gid(const std::string& group) const override {
    return group == "video" ? std::optional(44u) : std::nullopt;
  }
};

/// What a reader of `text` called "p" is told, one line each; empty for a good file.
std::vector<std::string> Told(std::string_view text) {
  auto policy = ParsePolicy(text, "p", FixedAccounts());
  std::vector<std::string> lines;
  if (policy.ok()) return lines;
  EXPECT_EQ(policy.error().blame, Blame::kCaller);
  std::string_view rest = policy.error().sentence;
  while (true) {
    size_t end = rest.find('\n');
    lines.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return lines;
    rest.remove_prefix(end + 1);
  }
}

struct Case {
  const char* name;
  std::string text;
  std::vector<std::string> told;
};

// A good tenant on one line, to end a file whose fault is elsewhere.
constexpr std::string_view kGood = "tenants: [{name: a, memory: 1GiB}]\n";
std::string With(std::string_view lines) { return fmt::format("version: 1\n{}{}", lines, kGood); }
// One tenant named "a" with 1 GiB, and more keys of it.
std::string Tenant(std::string_view keys) {
  return fmt::format("version: 1\ntenants:\n- name: a\n  memory: 1GiB\n{}", keys);
}

const std::string kLongDirectory = "/" + std::string(110, 'd');

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      // The text itself.
      {"Empty", "", {"p:1:1: The file is empty; a mapping with `version` and `tenants` was expected."}},
      {"OnlyComments",
       "# nothing\n",
       {"p:1:1: The file is empty; a mapping with `version` and `tenants` was expected."}},
      {"UnclosedList",
       "version: 1\ntenants: [\n",
       {"p:3:1: This is not well-formed YAML: end of sequence flow not found."}},
      {"TabIndent",
       "version: 1\ntenants:\n\t- name: a\n",
       {"p:3:1: The line begins with a tab; spaces were expected."}},
      {"ControlCharacter",
       "version: 1\nx: \x04\n",
       {"p:2:4: The control character 0x04 was given; plain text was expected."}},
      {"Latin1",
       "version: 1\n# caf\xe9\n",
       {"p:2:6: The byte 0xe9 is not UTF-8 here; UTF-8 text was expected."}},
      {"TwoDocuments",
       With("") + "---\nversion: 1\n",
       {"p:4:1: A second document begins here; one document was expected."}},
      {"Alias",
       "version: 1\nprofiles: {x: &x {memory: 1GiB}, y: *x}\n",
       {"p:2:37: An alias (*name) was given; values are shared through `profiles:` instead."}},
      {"Tag",
       "version: !!int 1\n",
       {"p:1:10: The tag tag:yaml.org,2002:int was given; a value without a tag was expected."}},
      {"ListAsKey", "[a, b]: 1\n", {"p:1:1: The key of a mapping is a list; a word was expected."}},
      {"Deep",
       std::string(40, '[') + std::string(40, ']'),
       {"p:1:17: Lists and mappings nest more than 16 deep; a policy needs no more."}},
      {"KeyTwice",
       "version: 1\nversion: 1\n" + std::string(kGood),
       {"p:2:1: The key \"version\" is given twice, first on line 1; once was expected."}},
      {"KeyTwiceInATenant",
       Tenant("  weight: 5\n  memory: 2GiB\n"),
       {"p:6:3: The key \"memory\" is given twice, first on line 4; once was expected."}},

      // The top.
      {"AListAtTheTop",
       "- version: 1\n",
       {"p:1:1: A list was given for the policy; a mapping with keys of version, server, devices, profiles, "
        "tenants, default_tenant was expected."}},
      {"NoVersion", std::string(kGood), {"p:1:1: The policy has no `version`; `version: 1` was expected."}},
      {"AnotherVersion",
       "version: 2\nnovelty: true\n",
       {"p:1:10: `version` is \"2\"; 1, the one version this program reads, was expected.",
        "p:2:1: The key \"novelty\" is not known in the policy; one of version, server, devices, profiles, "
        "tenants, default_tenant was expected."}},
      {"NoTenants",
       "version: 1\n",
       {"p:1:1: The policy has no `tenants`; a list of at least one was expected."}},
      {"EmptyTenants",
       "version: 1\ntenants: []\n",
       {"p:2:10: `tenants` is an empty list; a list of at least one tenant was expected."}},
      {"TenantsAsMapping",
       "version: 1\ntenants: {a: {memory: 1GiB}}\n",
       {"p:2:10: `tenants` is a mapping; a list of at least one tenant was expected."}},
      {"MisspeltTopKey",
       With("tennants: 3\n"),
       {"p:2:1: The key \"tennants\" is not known in the policy; did you mean \"tenants\"?"}},

      // Names.
      {"TenantWithoutAName",
       "version: 1\ntenants:\n- memory: 1GiB\n",
       {"p:3:3: The tenant has no `name`; a name of 1 to 63 characters of a-z, 0-9 and -, not beginning or "
        "ending "
        "with -, was expected."}},
      {"NameWithCapitals",
       "version: 1\ntenants:\n- name: Alpha\n  memory: 1GiB\n",
       {"p:3:9: `name` is \"Alpha\"; a name of 1 to 63 characters of a-z, 0-9 and -, not beginning or ending "
        "with "
        "-, was expected."}},
      {"NameTwice",
       Tenant("- name: b\n  memory: 1GiB\n- name: a\n  memory: 2GiB\n"),
       {"p:7:9: The tenant \"a\" is given twice, first on line 3; once was expected."}},
      {"ATenantThatIsAWord",
       "version: 1\ntenants: [a]\n",
       {"p:2:11: \"a\" was given for a tenant; a mapping with keys of name, profile, match, socket, preset, "
        "memory, "
        "guarantee, limit, weight, priority, partition, max_kernel_time, on_oom, oom_wait, devices was "
        "expected."}},

      // Memory.
      {"NoMemory",
       "version: 1\ntenants:\n- name: a\n",
       {"p:3:3: The tenant has no `memory`, itself or by its profile; a size such as 512MiB or 8GiB (a whole "
        "number of KiB, MiB, GiB or TiB) was expected."}},
      {"MemoryWithoutUnit",
       "version: 1\ntenants: [{name: a, memory: 512}]\n",
       {"p:2:29: `memory` is \"512\"; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or TiB) "
        "was "
        "expected."}},
      {"DecimalMemory",
       "version: 1\ntenants: [{name: a, memory: 1GB}]\n",
       {"p:2:29: `memory` is \"1GB\"; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or TiB) "
        "was "
        "expected."}},
      {"NegativeMemory",
       "version: 1\ntenants: [{name: a, memory: -1GiB}]\n",
       {"p:2:29: `memory` is \"-1GiB\"; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or "
        "TiB) "
        "was expected."}},
      {"TooLittleMemory",
       "version: 1\ntenants: [{name: a, memory: 1023KiB}]\n",
       {"p:2:29: `memory` is \"1023KiB\"; a size from 1MiB to 1024TiB was expected."}},
      {"MemoryOfNothing",
       "version: 1\ntenants:\n- name: a\n  memory:\n",
       {"p:5:1: `memory` is nothing; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or TiB) "
        "was "
        "expected."}},

      // Weight and priority.
      {"WeightZero",
       Tenant("  weight: 0\n"),
       {"p:5:11: `weight` is \"0\"; a whole number from 1 to 10000 was expected."}},
      {"WeightTooLarge",
       Tenant("  weight: 10001\n"),
       {"p:5:11: `weight` is \"10001\"; a whole number from 1 to 10000 was expected."}},
      {"WeightAsFraction",
       Tenant("  weight: 1.5\n"),
       {"p:5:11: `weight` is \"1.5\"; a whole number from 1 to 10000 was expected."}},
      {"PriorityOutOfRange",
       Tenant("  priority: -11\n"),
       {"p:5:13: `priority` is \"-11\"; a whole number from -10 to 10 was expected."}},

      // Shares and times.
      {"GuaranteeWithoutPercent",
       Tenant("  guarantee: 30\n"),
       {"p:5:14: `guarantee` is \"30\"; a whole percentage such as 30% from 1% to 100% was expected."}},
      {"GuaranteeOfNothing",
       Tenant("  guarantee: 0%\n"),
       {"p:5:14: `guarantee` is \"0%\"; a whole percentage such as 30% from 1% to 100% was expected."}},
      {"LimitAsFraction",
       Tenant("  limit: 2.5%\n"),
       {"p:5:10: `limit` is \"2.5%\"; a whole percentage such as 30% from 1% to 100% was expected."}},
      {"LimitAboveAll",
       Tenant("  limit: 101%\n"),
       {"p:5:10: `limit` is \"101%\"; a whole percentage such as 30% from 1% to 100% was expected."}},
      {"GuaranteeAboveTheLimit",
       Tenant("  guarantee: 50%\n  limit: 40%\n"),
       {"p:3:3: The tenant's `guarantee` is 50% and its `limit` 40%; a guarantee not above the limit was "
        "expected."}},
      {"MoreGuaranteesThanTime",
       Tenant("  guarantee: 70%\n- name: b\n  memory: 1GiB\n  guarantee: 31%\n"),
       {"p:2:1: The guarantees on the device 0 are 101% together (a 70%, b 31%); at most 100% was "
        "expected."}},
      {"MoreGuaranteesThanTimeOfOneDevice",
       "version: 1\ndevices: [{index: 0}, {index: 1}]\ntenants:\n- {name: a, memory: 1GiB, guarantee: 60%, "
       "devices: "
       "[0]}\n- {name: b, memory: 1GiB, guarantee: 60%, devices: [1]}\n- {name: c, memory: 1GiB, guarantee: "
       "41%, "
       "devices: [1]}\n",
       {"p:3:1: The guarantees on the device 1 are 101% together (b 60%, c 41%); at most 100% was "
        "expected."}},
      {"KernelTimeWithoutUnit",
       Tenant("  max_kernel_time: 5\n"),
       {"p:5:20: `max_kernel_time` is \"5\"; a time such as 500us, 2ms, 10s or 5min (a whole number of us, "
        "ms, s, "
        "min or h) was expected."}},
      {"KernelTimeTooShort",
       Tenant("  max_kernel_time: 999us\n"),
       {"p:5:20: `max_kernel_time` is \"999us\"; a time from 1ms to 24h was expected."}},
      {"UnknownOnOom",
       Tenant("  on_oom: retry\n"),
       {"p:5:11: `on_oom` is \"retry\"; one of fail, wait was expected."}},
      {"WaitForEver",
       Tenant("  on_oom: wait\n  oom_wait: 2h\n"),
       {"p:6:13: `oom_wait` is \"2h\"; a time from 1ms to 1h was expected."}},
      {"SliceTooShort",
       With("devices: [{index: 0, max_slice: 50us}]\n"),
       {"p:2:33: `max_slice` is \"50us\"; a time from 100us to 100ms was expected."}},
      {"PieceTooShort",
       With("devices: [{index: 0, min_slice: 5us}]\n"),
       {"p:2:33: `min_slice` is \"5us\"; a time from 10us to 100ms was expected."}},
      {"PieceLongerThanHalfASlice",
       With("devices: [{index: 0, max_slice: 1ms, min_slice: 501us}]\n"),
       {"p:2:49: `min_slice` is \"501us\" and `max_slice` 1ms; at most half of it was expected."}},
      {"MisspeltTenantKey",
       Tenant("  wieght: 5\n"),
       {"p:5:3: The key \"wieght\" is not known in a tenant; did you mean \"weight\"?"}},

      // Match.
      {"EmptyMatch",
       Tenant("  match: {}\n"),
       {"p:5:10: The match is empty; at least one of uid, user, gid, group, cgroup was expected."}},
      {"MatchAsWord",
       Tenant("  match: alice\n"),
       {"p:5:10: `match` is \"alice\"; a mapping with keys of uid, user, gid, group, cgroup, or a list of "
        "such "
        "mappings, was expected."}},
      {"UnknownUserAndGroup",
       Tenant("  match: {user: [alice, mallory], group: wheel}\n"),
       {"p:5:25: `user` is \"mallory\"; the name of a user of this machine was expected.",
        "p:5:42: `group` is \"wheel\"; the name of a group of this machine was expected."}},
      {"UidsThatAreNone",
       Tenant("  match:\n    uid: [-1, 4294967295, 9-5, x, [1]]\n"),
       {"p:6:11: `uid` is \"-1\"; a whole number from 0 to 4294967294, or a range such as 100000-165535, was "
        "expected.",
        "p:6:15: `uid` is \"4294967295\"; a whole number from 0 to 4294967294, or a range such as "
        "100000-165535, was "
        "expected.",
        "p:6:27: `uid` is \"9-5\"; a whole number from 0 to 4294967294, or a range such as 100000-165535, "
        "was "
        "expected.",
        "p:6:32: `uid` is \"x\"; a whole number from 0 to 4294967294, or a range such as 100000-165535, was "
        "expected.",
        "p:6:35: `uid` is a list; a whole number from 0 to 4294967294, or a range such as 100000-165535, was "
        "expected."}},
      {"NoUids",
       Tenant("  match: {uid: []}\n"),
       {"p:5:16: `uid` is an empty list; a whole number from 0 to 4294967294, or a range such as "
        "100000-165535, or "
        "a list of them, was expected."}},
      {"RelativeCgroup",
       Tenant("  match: {cgroup: [/ok, docker/x, /a/../b]}\n"),
       {"p:5:25: `cgroup` is \"docker/x\"; an absolute cgroup path, in which * and ? may stand for parts of "
        "a "
        "component, was expected.",
        "p:5:35: `cgroup` is \"/a/../b\"; an absolute cgroup path, in which * and ? may stand for parts of a "
        "component, was expected."}},

      // Sockets.
      {"RelativeSocket",
       Tenant("  socket: a.sock\n"),
       {"p:5:11: `socket` is \"a.sock\"; an absolute path of at most 107 bytes without empty, . or .. "
        "components "
        "was expected."}},
      {"SocketModeAndOwner",
       Tenant("  socket: {mode: rw, owner: mallory, pth: /x}\n"),
       {"p:5:18: `mode` is \"rw\"; three octal digits such as 0660 was expected.",
        "p:5:29: `owner` is \"mallory\"; the name of a user of this machine was expected.",
        "p:5:38: The key \"pth\" is not known in `socket`; did you mean \"path\"?"}},
      {"SocketTwice",
       Tenant("  socket: /run/x.sock\n- {name: b, memory: 1GiB, socket: /run/x.sock}\n"),
       {"p:6:35: The socket of tenant \"b\" would be at /run/x.sock, as is the socket of tenant \"a\"; a "
        "path of "
        "its own was expected."}},
      {"SocketTakenByTheServer",
       "version: 1\ntenants: [{name: control, memory: 1GiB}]\n",
       {"p:2:18: The socket of tenant \"control\" would be at /run/cuplex/control.sock, as is the control "
        "socket; a "
        "path of its own was expected."}},

      // The server.
      {"LongRunDir",
       With("server: {run_dir: " + kLongDirectory + "}\n"),
       {"p:2:19: `run_dir` is \"" + kLongDirectory +
        "\"; an absolute path of at most 107 bytes without empty, . or .. components was expected."}},
      {"RunDirTooLongForASocket",
       With("server: {run_dir: /" + std::string(100, 'd') + ", socket: /s, control: ipc:///c}\n"),
       {"p:3:18: The path of the socket of tenant \"a\" is 108 bytes long (/" + std::string(100, 'd') +
        "/a.sock); at most 107 were expected."}},
      {"ControlOverTcp",
       With("server: {control: tcp://0.0.0.0:1}\n"),
       {"p:2:19: `control` is \"tcp://0.0.0.0:1\"; ipc:// and an absolute path of at most 107 bytes was "
        "expected."}},
      {"MetricsOnAName",
       With("server: {metrics: localhost:9400}\n"),
       {"p:2:19: `metrics` is \"localhost:9400\"; ADDRESS:PORT such as 127.0.0.1:9400 or [::1]:9400, or off, "
        "was "
        "expected."}},

      // Devices.
      {"UnknownMode",
       With("devices: [{index: 0, mode: timeslise}]\n"),
       {"p:2:28: `mode` is \"timeslise\"; one of timeslice, concurrent, partition was expected."}},
      {"DeviceWithBothNames",
       With("devices:\n- {index: 0, uuid: GPU-6f2f0a51-3c44-4f1b-9a71-0d9c5a1e7b20}\n- mode: timeslice\n"),
       {"p:3:3: The device has both `index` and `uuid`; exactly one of `index` and `uuid` was expected.",
        "p:4:3: The device has neither `index` nor `uuid`; exactly one of `index` and `uuid` was expected."}},
      {"DeviceTwiceAndBadNames",
       With("devices: [{index: 0}, {index: 0}, {index: 256}, {uuid: GPU-0}]\n"),
       {"p:2:23: The device 0 is given twice; once was expected.",
        "p:2:43: `index` is \"256\"; a whole number from 0 to 255 was expected.",
        "p:2:56: `uuid` is \"GPU-0\"; GPU- and a UUID in lower-case hex digits was expected."}},
      {"NoDevices",
       With("devices: []\n"),
       {"p:2:10: `devices` is an empty list; a list of mappings with `index` or `uuid`, and `mode`, was "
        "expected."}},
      {"ATenantOnDevicesThereAreNot",
       "version: 1\ndevices: [{index: 0}, {index: 2}]\ntenants: [{name: a, memory: 1GiB, devices: [0, 1, 0, "
       "one]}]\n",
       {"p:3:48: `devices` is \"1\"; one of 0, 2, as the `devices` of this file name them, was expected.",
        "p:3:51: The device 0 is given twice; once was expected.",
        "p:3:54: `devices` is \"one\"; the index or UUID of a device was expected."}},

      // Profiles and the default tenant.
      {"UnknownProfile",
       "version: 1\nprofiles: {big: {memory: 1GiB}}\ntenants: [{name: a, profile: bag}]\n",
       {"p:3:30: `profile` is \"bag\"; big, as named under `profiles`, was expected."}},
      {"ProfileWhereThereAreNone",
       Tenant("  profile: big\n"),
       {"p:5:12: `profile` is \"big\"; the name of an entry of `profiles`, of which the file has none, was "
        "expected."}},
      {"AProfilesFaultIsToldOnce",
       "version: 1\nprofiles:\n  x: {memory: 5, name: x}\ntenants: [{name: a, profile: x}, {name: b, "
       "profile: x}]\n",
       {"p:3:15: `memory` is \"5\"; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or TiB) "
        "was "
        "expected.",
        "p:3:18: The key \"name\" is not known in a profile; one of preset, memory, guarantee, limit, "
        "weight, priority, partition, "
        "max_kernel_time, on_oom, oom_wait, devices was expected."}},
      {"UnknownDefaultTenant",
       With("default_tenant: b\n"),
       {"p:2:17: `default_tenant` is \"b\"; the name of a tenant of this file (a) was expected."}},

      // Everything at once.
      {"EveryFaultOfAFile",
       "version: 1\n"
       "server:\n"
       "  metrics: 9400\n"
       "profiles:\n"
       "  Big: {memory: 1GiB}\n"
       "tenants:\n"
       "  - name: a\n"
       "    memory: lots\n"
       "    weight: 0\n"
       "  - name: a\n"
       "    profile: none\n"
       "    colour: red\n",
       {"p:3:12: `metrics` is \"9400\"; ADDRESS:PORT such as 127.0.0.1:9400 or [::1]:9400, or off, was "
        "expected.",
        "p:5:3: The name of a profile is \"Big\"; a name of 1 to 63 characters of a-z, 0-9 and -, not "
        "beginning or "
        "ending with -, was expected.",
        "p:8:13: `memory` is \"lots\"; a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or "
        "TiB) was "
        "expected.",
        "p:9:13: `weight` is \"0\"; a whole number from 1 to 10000 was expected.",
        "p:10:11: The tenant \"a\" is given twice, first on line 7; once was expected.",
        "p:11:14: `profile` is \"none\"; Big, as named under `profiles`, was expected.",
        "p:12:5: The key \"colour\" is not known in a tenant; one of name, profile, match, socket, preset, "
        "memory, "
        "guarantee, limit, weight, priority, partition, max_kernel_time, on_oom, oom_wait, devices was "
        "expected."}},
  };
  return cases;
}

class Refusals : public testing::TestWithParam<Case> {};

TEST_P(Refusals, TellsEveryFault) { EXPECT_EQ(Told(GetParam().text), GetParam().told) << GetParam().text; }

INSTANTIATE_TEST_SUITE_P(Files, Refusals, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

TEST(Refusals, TheFilesTheyAreMadeFromAreGood) {
  EXPECT_TRUE(Told(With("")).empty());
  EXPECT_TRUE(Told(Tenant("")).empty());
}

TEST(Refusals, AFileTooLongIsRefusedUnread) {
  EXPECT_EQ(
      Told(std::string(kLongestPolicy + 1, '[')),
      std::vector<std::string>{"p:1:1: The file is 1048577 bytes long; at most 1048576 were expected."});
}

TEST(Refusals, FaultsBeyondTheThousandthAreCounted) {
  std::string text = "version: 1\n";
  for (int i = 0; i < 1234; ++i) text += fmt::format("unknown{}: x\n", i);
  auto told = Told(text + std::string(kGood));
  ASSERT_EQ(told.size(), 1001u);
  EXPECT_EQ(told.back(), "p: 234 more faults are not shown.");
}

}  // namespace
}  // namespace cuplex::policies
