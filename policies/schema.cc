// The YAML schema: from a document's tree to a Policy, with every fault on the way.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/host_port.h"
#include "policies/document.h"
#include "policies/nearest.h"
#include "policies/policy.h"
#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 6> kFileKeys = {"version",  "server",  "devices",
                                                       "profiles", "tenants", "default_tenant"};
constexpr std::array<std::string_view, 4> kServerKeys = {"run_dir", "socket", "control", "metrics"};
constexpr std::array<std::string_view, 4> kDeviceKeys = {"index", "uuid", "mode", "max_slice"};
constexpr std::array<std::string_view, 9> kProfileKeys = {
    "memory", "guarantee", "limit", "weight", "priority", "max_kernel_time", "on_oom", "oom_wait", "devices"};
constexpr std::array<std::string_view, 13> kTenantKeys = {
    "name",   "profile",  "match",           "socket", "memory",   "guarantee", "limit",
    "weight", "priority", "max_kernel_time", "on_oom", "oom_wait", "devices"};
constexpr std::array<std::string_view, 5> kMatchKeys = {"uid", "user", "gid", "group", "cgroup"};
constexpr std::array<std::string_view, 4> kSocketKeys = {"path", "mode", "owner", "group"};
constexpr std::array<std::string_view, 1> kModes = {"timeslice"};
constexpr std::array<std::string_view, 2> kOnOom = {"fail", "wait"};

constexpr uint64_t kLeastMemory = uint64_t{1} << 20;
constexpr uint64_t kMostMemory = uint64_t{1} << 50;
constexpr int64_t kMostWeight = 10000;
constexpr int64_t kMostPriority = 10;
constexpr int64_t kMostIndex = 255;
constexpr uint64_t kLeastSliceNs = 100'000, kMostSliceNs = 100'000'000;
constexpr uint64_t kLeastKernelNs = 1'000'000, kMostKernelNs = 86'400'000'000'000;
constexpr uint64_t kLeastWaitNs = 1'000'000, kMostWaitNs = 3'600'000'000'000;
constexpr uint64_t kDefaultWaitNs = 10'000'000'000;
constexpr int64_t kMostId = 4294967294;         // (uid_t)-1 means "nobody in particular" to the kernel
constexpr size_t kLongestSocketPath = 107;      // sockaddr_un without its final NUL
constexpr std::string_view kScheme = "ipc://";  // of the control endpoint
constexpr uint32_t kOpenToAll = 0666;
constexpr size_t kNamesInSentence = 16;

constexpr std::string_view kNameForm =
    "a name of 1 to 63 characters of a-z, 0-9 and -, not beginning or ending with -,";
constexpr std::string_view kPathForm =
    "an absolute path of at most 107 bytes without empty, . or .. components";

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !hex : text[i] != kShape[i]) return false;
  }
  return true;
}

/// "/a/b", nothing that would give one place two names.
bool IsPlainPath(std::string_view text) {
  if (text.size() < 2 || text.front() != '/' || text.find('\0') != std::string_view::npos) return false;
  while (!text.empty()) {
    text.remove_prefix(1);
    std::string_view component = text.substr(0, text.find('/'));
    if (component.empty() || component == "." || component == "..") return false;
    text.remove_prefix(component.size());
  }
  return true;
}

bool IsSocketPath(std::string_view text) { return text.size() <= kLongestSocketPath && IsPlainPath(text); }

/// "a", "one of a, b", "one of a, ... (20 in all)".
std::string OneOf(Words words) {
  if (words.size() == 1) return std::string(words[0]);
  std::string out = "one of ";
  for (size_t i = 0; i < words.size() && i < kNamesInSentence; ++i) {
    if (i > 0) out += ", ";
    out += words[i];
  }
  if (words.size() > kNamesInSentence) out += fmt::format(", ... ({} in all)", words.size());
  return out;
}

/// A mapping of the file with the keys it may have.
class Table {
 public:
  /// Adds a fault for a node that is no mapping and for each key that is not among `keys`. `what` names the
  /// mapping in sentences: "a tenant".
  Table(const Node& node, std::string_view what, Words keys, Faults& faults) : node_(node) {
    if (node.kind != Node::Kind::kMapping) {
      faults.Add(node.at, fmt::format("{} was given for {}; a mapping with keys of {} was expected.",
                                      Capital(Given(node)), what, Listed(keys)));
      return;
    }
    is_mapping_ = true;
    for (const Entry& entry : node.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
      std::string_view meant = Nearest(entry.key, keys);
      faults.Add(entry.at, meant.empty()
                               ? fmt::format("The key \"{}\" is not known in {}; {} was expected.", entry.key,
                                             what, OneOf(keys))
                               : fmt::format("The key \"{}\" is not known in {}; did you mean \"{}\"?",
                                             entry.key, what, meant));
    }
  }

  bool is_mapping() const { return is_mapping_; }
  Mark at() const { return node_.at; }
  const Entry* Find(std::string_view key) const {
    for (const Entry& entry : node_.entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

 private:
  static std::string Capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }
  static std::string Listed(Words keys) {
    std::string out;
    for (std::string_view key : keys) out += (out.empty() ? "" : ", ") + std::string(key);
    return out;
  }

  const Node& node_;
  bool is_mapping_ = false;
};

/// What profiles and tenants can both say.
struct TenantTerms {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> weight;
  std::optional<int> priority;
  std::optional<uint32_t> guarantee;
  std::optional<uint32_t> limit;
  std::optional<uint64_t> max_kernel_ns;
  std::optional<bool> waits;  // for memory
  std::optional<uint64_t> wait_ns;
  std::optional<std::vector<DeviceName>> devices;
  bool names_memory = false;  // also where its value was at fault

  /// Stands in for terms that could not be read, so that their absence is not a second fault.
  static TenantTerms AtFault() {
    TenantTerms terms;
    terms.names_memory = true;
    return terms;
  }
};

class Schema {
 public:
  Schema(const Accounts& accounts, std::string_view run_dir, Faults& faults)
      : accounts_(accounts), run_dir_(run_dir), faults_(faults) {}

  Policy Read(const Node& root) {
    Table top(root, "the policy", kFileKeys, faults_);
    if (!top.is_mapping() || !ReadVersion(top)) return std::move(policy_);
    ReadServer(top);
    ReadDevices(top);
    ReadProfiles(top);
    ReadTenants(top);
    ReadDefaultTenant(top);
    return std::move(policy_);
  }

 private:
  void Expected(std::string_view key, const Node& given, std::string_view form) {
    faults_.Add(given.at, fmt::format("`{}` is {}; {} was expected.", key, Given(given), form));
  }

  // Each of these gives the value, or adds a fault and gives nullopt.

  std::optional<int64_t> Integer(const Entry& entry, int64_t least, int64_t most) {
    std::optional<int64_t> n;
    if (entry.value.kind == Node::Kind::kScalar) n = ParseInteger(entry.value.text);
    if (n && *n >= least && *n <= most) return n;
    Expected(entry.key, entry.value, fmt::format("a whole number from {} to {}", least, most));
    return std::nullopt;
  }

  std::optional<std::string> Text(const Entry& entry, bool (*accepts)(std::string_view),
                                  std::string_view form) {
    const Node& node = entry.value;
    if (node.kind == Node::Kind::kScalar && accepts(node.text)) return node.text;
    Expected(entry.key, node, form);
    return std::nullopt;
  }

  std::optional<uint64_t> Memory(const Entry& entry) {
    std::optional<uint64_t> bytes;
    if (entry.value.kind == Node::Kind::kScalar) bytes = ParseSize(entry.value.text);
    if (!bytes) {
      Expected(entry.key, entry.value, kSizeForm);
      return std::nullopt;
    }
    if (*bytes >= kLeastMemory && *bytes <= kMostMemory) return bytes;
    Expected(entry.key, entry.value,
             fmt::format("a size from {} to {}", PrintSize(kLeastMemory), PrintSize(kMostMemory)));
    return std::nullopt;
  }

  std::optional<uint32_t> Percent(const Entry& entry) {
    std::optional<uint32_t> percent;
    if (entry.value.kind == Node::Kind::kScalar) percent = ParsePercent(entry.value.text);
    if (!percent) Expected(entry.key, entry.value, fmt::format("{} from 1% to 100%", kPercentForm));
    return percent;
  }

  std::optional<uint64_t> Duration(const Entry& entry, uint64_t least_ns, uint64_t most_ns) {
    std::optional<uint64_t> ns;
    if (entry.value.kind == Node::Kind::kScalar) ns = ParseDuration(entry.value.text);
    if (!ns) {
      Expected(entry.key, entry.value, kDurationForm);
      return std::nullopt;
    }
    if (*ns >= least_ns && *ns <= most_ns) return ns;
    Expected(entry.key, entry.value,
             fmt::format("a time from {} to {}", PrintDuration(least_ns), PrintDuration(most_ns)));
    return std::nullopt;
  }

  bool IsOneOf(const Entry& entry, Words words) {
    const bool known = entry.value.kind == Node::Kind::kScalar &&
                       std::find(words.begin(), words.end(), entry.value.text) != words.end();
    if (!known) Expected(entry.key, entry.value, OneOf(words));
    return known;
  }

  std::optional<uint32_t> Account(std::string_view key, const Node& node, std::string_view kind,
                                  std::optional<uint32_t> (Accounts::*look_up)(const std::string&) const) {
    if (node.kind == Node::Kind::kScalar && !node.text.empty()) {
      if (auto id = (accounts_.*look_up)(node.text)) return id;
    }
    Expected(key, node, fmt::format("the name of a {} of this machine", kind));
    return std::nullopt;
  }

  /// A name or a number.
  std::optional<uint32_t> AccountOrId(const Entry& entry, std::string_view kind,
                                      std::optional<uint32_t> (Accounts::*look_up)(const std::string&)
                                          const) {
    if (entry.value.kind == Node::Kind::kScalar && ParseInteger(entry.value.text)) {
      auto id = Integer(entry, 0, kMostId);
      return id ? std::optional(static_cast<uint32_t>(*id)) : std::nullopt;
    }
    return Account(entry.key, entry.value, kind, look_up);
  }

  /// Calls `each` for the value, or for each item where it is a list.
  template <typename F>
  void ForEach(const Entry& entry, std::string_view form, F each) {
    if (entry.value.kind == Node::Kind::kScalar) {
      each(entry.value);
    } else if (entry.value.kind == Node::Kind::kList && !entry.value.items.empty()) {
      for (const Node& item : entry.value.items) each(item);
    } else {
      if (form.ends_with(',')) form.remove_suffix(1);
      Expected(entry.key, entry.value, fmt::format("{}, or a list of them,", form));
    }
  }

  bool ReadVersion(const Table& top) {
    const Entry* entry = top.Find("version");
    if (entry == nullptr) {
      faults_.Add(top.at(), "The policy has no `version`; `version: 1` was expected.");
      return false;
    }
    if (entry->value.kind == Node::Kind::kScalar && entry->value.text == "1") return true;
    Expected("version", entry->value, "1, the one version this program reads,");
    return false;
  }

  void ReadServer(const Table& top) {
    ServerSettings& server = policy_.server;
    server.run_dir = run_dir_.empty() ? kDefaultRunDir : run_dir_;
    server.metrics = kDefaultMetrics;
    const Entry* entry = top.Find("server");
    const Node none(Node::Kind::kMapping);
    Table table(entry ? entry->value : none, "`server`", kServerKeys, faults_);

    if (const Entry* dir = table.Find("run_dir")) {
      auto path = Text(*dir, IsSocketPath, kPathForm);
      if (path && run_dir_.empty()) server.run_dir = *path;
    }
    server.socket = server.run_dir + "/cuplex.sock";
    std::string control = server.run_dir + "/control.sock";
    Mark socket_at = table.at(), control_at = table.at();
    if (const Entry* socket = table.Find("socket")) {
      socket_at = socket->value.at;
      if (auto path = Text(*socket, IsSocketPath, kPathForm)) server.socket = *path;
    }
    if (const Entry* where = table.Find("control")) {
      control_at = where->value.at;
      auto is_endpoint = [](std::string_view text) {
        return text.starts_with(kScheme) && IsSocketPath(text.substr(kScheme.size()));
      };
      if (auto endpoint = Text(*where, is_endpoint, "ipc:// and an absolute path of at most 107 bytes")) {
        control = endpoint->substr(kScheme.size());
      }
    }
    server.control = "ipc://" + control;
    TakePath(server.socket, socket_at, "the shared socket");
    TakePath(control, control_at, "the control socket");

    if (const Entry* metrics = table.Find("metrics")) {
      auto is_address = [](std::string_view text) {
        return text == "off" || ParseHostPort(text).has_value();
      };
      auto address = Text(*metrics, is_address, "ADDRESS:PORT such as 127.0.0.1:9400 or [::1]:9400, or off,");
      if (address) server.metrics = *address == "off" ? "" : *address;
    }
  }

  void ReadDevices(const Table& top) {
    const Entry* entry = top.Find("devices");
    if (entry == nullptr) return;
    if (entry->value.kind != Node::Kind::kList || entry->value.items.empty()) {
      Expected("devices", entry->value, "a list of mappings with `index` or `uuid`, and `mode`,");
      devices_at_fault_ = true;
      return;
    }
    size_t before = faults_.size();
    for (const Node& item : entry->value.items) ReadDevice(item);
    devices_at_fault_ = faults_.size() != before;
  }

  void ReadDevice(const Node& node) {
    Table table(node, "a device", kDeviceKeys, faults_);
    if (!table.is_mapping()) return;
    Device device;
    const Entry* index = table.Find("index");
    const Entry* uuid = table.Find("uuid");
    std::optional<DeviceName> name;
    if ((index != nullptr) == (uuid != nullptr)) {
      faults_.Add(table.at(),
                  fmt::format("The device has {}; exactly one of `index` and `uuid` was expected.",
                              index ? "both `index` and `uuid`" : "neither `index` nor `uuid`"));
    } else if (index != nullptr) {
      if (auto n = Integer(*index, 0, kMostIndex)) name = static_cast<int>(*n);
    } else {
      if (auto text = Text(*uuid, IsUuid, "GPU- and a UUID in lower-case hex digits")) name = *text;
    }
    if (const Entry* mode = table.Find("mode")) (void)IsOneOf(*mode, kModes);  // one mode, and the default
    if (const Entry* slice = table.Find("max_slice"))
      device.max_slice_ns = Duration(*slice, kLeastSliceNs, kMostSliceNs).value_or(device.max_slice_ns);
    if (!name) return;
    device.name = *name;
    for (const Device& other : policy_.devices) {
      if (other.name != device.name) continue;
      faults_.Add(table.at(), fmt::format("The device {} is given twice; once was expected.",
                                          PrintDeviceName(device.name)));
      return;
    }
    policy_.devices.push_back(device);
  }

  std::optional<std::vector<DeviceName>> ReadSeen(const Entry& entry) {
    std::vector<DeviceName> seen;
    if (entry.value.kind == Node::Kind::kScalar && entry.value.text == "all") return seen;
    constexpr std::string_view kForm = "the index or UUID of a device";
    if (entry.value.kind != Node::Kind::kList || entry.value.items.empty()) {
      Expected("devices", entry.value, "all, or a list of indices and UUIDs,");
      return std::nullopt;
    }
    for (const Node& item : entry.value.items) {
      DeviceName name;
      auto index = item.kind == Node::Kind::kScalar ? ParseInteger(item.text) : std::nullopt;
      if (index && *index >= 0 && *index <= kMostIndex) {
        name = static_cast<int>(*index);
      } else if (item.kind == Node::Kind::kScalar && IsUuid(item.text)) {
        name = item.text;
      } else {
        Expected("devices", item, kForm);
        continue;
      }
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        faults_.Add(item.at, fmt::format("The device {} is given twice; once was expected.", item.text));
        continue;
      }
      if (!IsListed(name)) {
        Expected("devices", item,
                 fmt::format("{}, as the `devices` of this file name them,", ListedDevices()));
        continue;
      }
      seen.push_back(name);
    }
    return seen;
  }

  bool IsListed(const DeviceName& name) const {
    if (policy_.devices.empty() || devices_at_fault_) return true;
    for (const Device& device : policy_.devices) {
      if (device.name == name) return true;
    }
    return false;
  }

  std::string ListedDevices() const {
    std::vector<std::string> names;
    names.reserve(policy_.devices.size());
    for (const Device& device : policy_.devices) names.push_back(PrintDeviceName(device.name));
    return OneOf(std::vector<std::string_view>(names.begin(), names.end()));
  }

  TenantTerms ReadTerms(const Table& table) {
    TenantTerms terms;
    if (const Entry* memory = table.Find("memory")) {
      terms.names_memory = true;
      terms.memory_bytes = Memory(*memory);
    }
    if (const Entry* weight = table.Find("weight")) {
      if (auto n = Integer(*weight, 1, kMostWeight)) terms.weight = static_cast<uint32_t>(*n);
    }
    if (const Entry* priority = table.Find("priority")) {
      if (auto n = Integer(*priority, -kMostPriority, kMostPriority)) terms.priority = static_cast<int>(*n);
    }
    if (const Entry* guarantee = table.Find("guarantee")) terms.guarantee = Percent(*guarantee);
    if (const Entry* limit = table.Find("limit")) terms.limit = Percent(*limit);
    if (const Entry* time = table.Find("max_kernel_time"))
      terms.max_kernel_ns = Duration(*time, kLeastKernelNs, kMostKernelNs);
    if (const Entry* on_oom = table.Find("on_oom"))
      if (IsOneOf(*on_oom, kOnOom)) terms.waits = on_oom->value.text == "wait";
    if (const Entry* wait = table.Find("oom_wait"))
      terms.wait_ns = Duration(*wait, kLeastWaitNs, kMostWaitNs);
    if (const Entry* devices = table.Find("devices")) terms.devices = ReadSeen(*devices);
    return terms;
  }

  void ReadProfiles(const Table& top) {
    const Entry* entry = top.Find("profiles");
    if (entry == nullptr) return;
    if (entry->value.kind != Node::Kind::kMapping) {
      Expected("profiles", entry->value, "a mapping from names to mappings");
      profiles_at_fault_ = true;
      return;
    }
    for (const Entry& profile : entry->value.entries) {
      if (!IsName(profile.key)) {
        faults_.Add(profile.at,
                    fmt::format("The name of a profile is \"{}\"; {} was expected.", profile.key, kNameForm));
      }
      Table table(profile.value, "a profile", kProfileKeys, faults_);
      profiles_[profile.key] = table.is_mapping() ? ReadTerms(table) : TenantTerms::AtFault();
    }
  }

  void ReadTenants(const Table& top) {
    const Entry* entry = top.Find("tenants");
    if (entry == nullptr) {
      faults_.Add(top.at(), "The policy has no `tenants`; a list of at least one was expected.");
      return;
    }
    if (entry->value.kind != Node::Kind::kList || entry->value.items.empty()) {
      Expected("tenants", entry->value, "a list of at least one tenant");
      return;
    }
    for (const Node& item : entry->value.items) ReadTenant(item);
    CheckGuarantees(entry->at);
  }

  /// A device cannot promise more than there is of its time. Tenants that name devices differently, or see
  /// all of them, count on each that they may see.
  void CheckGuarantees(Mark at) {
    std::set<DeviceName> names;
    for (const Device& device : policy_.devices) names.insert(device.name);
    for (const Tenant& tenant : policy_.tenants) names.insert(tenant.devices.begin(), tenant.devices.end());
    if (names.empty()) names.insert(0);
    for (const DeviceName& name : names) {
      uint32_t sum = 0;
      std::string terms;
      for (const Tenant& tenant : policy_.tenants) {
        if (!tenant.guarantee_percent || !tenant.Sees(name)) continue;
        sum += tenant.guarantee_percent;
        terms += fmt::format("{}{} {}%", terms.empty() ? "" : ", ", tenant.name, tenant.guarantee_percent);
      }
      if (sum <= 100) continue;
      faults_.Add(
          at, fmt::format("The guarantees on the device {} are {}% together ({}); at most 100% was expected.",
                          PrintDeviceName(name), sum, terms));
      return;
    }
  }

  void ReadTenant(const Node& node) {
    Table table(node, "a tenant", kTenantKeys, faults_);
    if (!table.is_mapping()) return;
    Tenant tenant;
    Mark name_at = table.at();
    if (const Entry* name = table.Find("name")) {
      name_at = name->value.at;
      if (auto text = Text(*name, IsName, kNameForm)) tenant.name = *text;
    } else {
      faults_.Add(table.at(), fmt::format("The tenant has no `name`; {} was expected.", kNameForm));
    }
    if (!tenant.name.empty()) {
      auto [first, fresh] = tenant_lines_.try_emplace(tenant.name, name_at.line);
      if (!fresh) {
        faults_.Add(name_at,
                    fmt::format("The tenant \"{}\" is given twice, first on line {}; once was expected.",
                                tenant.name, first->second));
        tenant.name.clear();
      }
    }

    TenantTerms profile;
    if (const Entry* named = table.Find("profile")) profile = FindProfile(*named);
    TenantTerms own = ReadTerms(table);
    bool names_memory = own.names_memory || profile.names_memory;
    tenant.memory_bytes = own.memory_bytes.value_or(profile.memory_bytes.value_or(0));
    tenant.weight = own.weight.value_or(profile.weight.value_or(kDefaultWeight));
    tenant.priority = own.priority.value_or(profile.priority.value_or(0));
    tenant.guarantee_percent = own.guarantee.value_or(profile.guarantee.value_or(0));
    tenant.limit_percent = own.limit.value_or(profile.limit.value_or(100));
    tenant.max_kernel_ns = own.max_kernel_ns.value_or(profile.max_kernel_ns.value_or(0));
    if (own.waits.value_or(profile.waits.value_or(false)))
      tenant.oom_wait_ns = own.wait_ns.value_or(profile.wait_ns.value_or(kDefaultWaitNs));
    if (tenant.guarantee_percent > tenant.limit_percent)
      faults_.Add(
          table.at(),
          fmt::format("The tenant's `guarantee` is {}% and its `limit` {}%; a guarantee not above the "
                      "limit was expected.",
                      tenant.guarantee_percent, tenant.limit_percent));
    tenant.devices = own.devices ? *own.devices : profile.devices.value_or(std::vector<DeviceName>{});
    if (!names_memory) {
      faults_.Add(
          table.at(),
          fmt::format("The tenant has no `memory`, itself or by its profile; {} was expected.", kSizeForm));
    }

    if (const Entry* match = table.Find("match")) ReadMatches(*match, tenant);
    ReadSocket(table.Find("socket"), name_at, tenant);
    policy_.tenants.push_back(std::move(tenant));
  }

  TenantTerms FindProfile(const Entry& entry) {
    const Node& node = entry.value;
    if (node.kind == Node::Kind::kScalar) {
      auto at = profiles_.find(node.text);
      if (at != profiles_.end()) return at->second;
    }
    std::vector<std::string_view> names;
    names.reserve(profiles_.size());
    for (const auto& [name, terms] : profiles_) names.push_back(name);
    if (!profiles_at_fault_) {
      Expected("profile", node,
               names.empty() ? "the name of an entry of `profiles`, of which the file has none,"
                             : fmt::format("{}, as named under `profiles`,", OneOf(names)));
    }
    return TenantTerms::AtFault();
  }

  void ReadMatches(const Entry& entry, Tenant& tenant) {
    const Node& node = entry.value;
    if (node.kind == Node::Kind::kList && !node.items.empty()) {
      for (const Node& item : node.items) ReadMatch(item, tenant);
    } else if (node.kind == Node::Kind::kMapping) {
      ReadMatch(node, tenant);
    } else {
      Expected("match", node,
               "a mapping with keys of uid, user, gid, group, cgroup, or a list of such mappings,");
    }
  }

  void ReadMatch(const Node& node, Tenant& tenant) {
    Table table(node, "a match", kMatchKeys, faults_);
    if (!table.is_mapping()) return;
    if (node.entries.empty()) {
      faults_.Add(node.at, fmt::format("The match is empty; at least {} was expected.", OneOf(kMatchKeys)));
      return;
    }
    Match match;
    if (const Entry* uid = table.Find("uid")) ReadIds(*uid, match.uids);
    if (const Entry* gid = table.Find("gid")) ReadIds(*gid, match.gids);
    if (const Entry* user = table.Find("user")) ReadAccounts(*user, "user", &Accounts::Uid, match.uids);
    if (const Entry* group = table.Find("group")) ReadAccounts(*group, "group", &Accounts::Gid, match.gids);
    if (const Entry* cgroup = table.Find("cgroup")) {
      constexpr std::string_view kForm =
          "an absolute cgroup path, in which * and ? may stand for parts of a component,";
      ForEach(*cgroup, kForm, [&](const Node& item) {
        bool ok = item.kind == Node::Kind::kScalar && (item.text == "/" || IsPlainPath(item.text));
        if (!ok) return Expected("cgroup", item, kForm);
        match.cgroups.push_back(item.text);
      });
    }
    tenant.matches.push_back(std::move(match));
  }

  void ReadIds(const Entry& entry, std::vector<IdRange>& ids) {
    constexpr std::string_view kForm =
        "a whole number from 0 to 4294967294, or a range such as 100000-165535,";
    ForEach(entry, kForm, [&](const Node& item) {
      std::optional<int64_t> first, last;
      if (item.kind == Node::Kind::kScalar) {
        size_t dash = item.text.find('-');
        first = ParseInteger(std::string_view(item.text).substr(0, dash));
        last = dash == std::string::npos ? first : ParseInteger(std::string_view(item.text).substr(dash + 1));
      }
      if (!first || !last || *first < 0 || *last > kMostId || *first > *last) {
        return Expected(entry.key, item, kForm);
      }
      ids.push_back({static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)});
    });
  }

  void ReadAccounts(const Entry& entry, std::string_view kind,
                    std::optional<uint32_t> (Accounts::*look_up)(const std::string&) const,
                    std::vector<IdRange>& ids) {
    ForEach(entry, fmt::format("the name of a {} of this machine", kind), [&](const Node& item) {
      if (auto id = Account(entry.key, item, kind, look_up)) ids.push_back({*id, *id});
    });
  }

  void ReadSocket(const Entry* entry, Mark name_at, Tenant& tenant) {
    Socket& socket = tenant.socket;
    // Where the matches decide who comes in, everybody may knock.
    socket.mode = tenant.matches.empty() ? 0600 : kOpenToAll;
    Mark path_at = name_at;
    if (entry != nullptr && entry->value.kind == Node::Kind::kScalar) {
      path_at = entry->value.at;
      auto path = Text(*entry, IsSocketPath, kPathForm);
      if (!path) return;
      socket.path = *path;
    } else if (entry != nullptr) {
      Table table(entry->value, "`socket`", kSocketKeys, faults_);
      if (!table.is_mapping()) return;
      if (const Entry* mode = table.Find("mode")) {
        std::optional<uint32_t> bits;
        if (mode->value.kind == Node::Kind::kScalar) bits = ParsePermissions(mode->value.text);
        if (!bits) Expected("mode", mode->value, "three octal digits such as 0660");
        socket.mode = bits.value_or(socket.mode);
      }
      if (const Entry* owner = table.Find("owner"))
        socket.owner = AccountOrId(*owner, "user", &Accounts::Uid);
      if (const Entry* group = table.Find("group"))
        socket.group = AccountOrId(*group, "group", &Accounts::Gid);
      if (const Entry* path = table.Find("path")) {
        path_at = path->value.at;
        auto text = Text(*path, IsSocketPath, kPathForm);
        if (!text) return;
        socket.path = *text;
      }
    }
    if (socket.path.empty()) {
      if (tenant.name.empty()) return;  // its name was at fault, and so would be the path
      socket.path = fmt::format("{}/{}.sock", policy_.server.run_dir, tenant.name);
    }
    TakePath(socket.path, path_at, fmt::format("the socket of tenant \"{}\"", tenant.name));
  }

  /// Each socket has a path of its own, short enough to bind.
  void TakePath(const std::string& path, Mark at, std::string what) {
    if (path.size() > kLongestSocketPath) {
      faults_.Add(at, fmt::format("The path of {} is {} bytes long ({}); at most {} were expected.", what,
                                  path.size(), path, kLongestSocketPath));
    }
    auto [first, fresh] = paths_.try_emplace(path, what);
    if (fresh) return;
    faults_.Add(at, fmt::format("{} would be at {}, as is {}; a path of its own was expected.",
                                "T" + what.substr(1), path, first->second));
  }

  void ReadDefaultTenant(const Table& top) {
    const Entry* entry = top.Find("default_tenant");
    if (entry == nullptr) return;
    if (entry->value.kind == Node::Kind::kScalar && tenant_lines_.contains(entry->value.text)) {
      policy_.default_tenant = entry->value.text;
      return;
    }
    std::vector<std::string_view> names;
    for (const Tenant& tenant : policy_.tenants) {
      if (!tenant.name.empty()) names.push_back(tenant.name);
    }
    Expected("default_tenant", entry->value,
             names.empty() ? "the name of a tenant of this file"
                           : fmt::format("the name of a tenant of this file ({})", OneOf(names)));
  }

  const Accounts& accounts_;
  std::string_view run_dir_;
  Faults& faults_;
  Policy policy_;
  std::map<std::string, TenantTerms> profiles_;
  std::map<std::string, int> tenant_lines_;
  std::map<std::string, std::string> paths_;  // of sockets, and whose they are
  bool devices_at_fault_ = false;
  bool profiles_at_fault_ = false;
};

}  // namespace

Result<Policy> ParsePolicy(std::string_view text, std::string_view file, const Accounts& accounts,
                           std::string_view run_dir) {
  if (text.size() > kLongestPolicy) {
    return Fail(Blame::kCaller, "{}:1:1: The file is {} bytes long; at most {} were expected.", file,
                text.size(), kLongestPolicy);
  }
  Faults faults;
  Policy policy;
  if (auto root = ReadDocument(text, faults)) policy = Schema(accounts, run_dir, faults).Read(*root);
  if (!faults.empty()) return Error{Blame::kCaller, faults.Print(file), 0};
  return policy;
}

}  // namespace cuplex::policies
