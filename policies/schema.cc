// The YAML schema: from a document's tree to a Policy, with every fault on the way.
//
// Tenants are read as they are written first; their terms on each device come of it when all are known.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/host_port.h"
#include "policies/fields.h"
#include "policies/identity.h"
#include "policies/presets.h"
#include "policies/quantity.h"
#include "policies/resolve.h"

namespace cuplex::policies {
namespace {

constexpr std::string_view kFileKeys[] = {"version",  "server",  "devices",
                                          "profiles", "tenants", "default_tenant"};
constexpr std::string_view kServerKeys[] = {"run_dir", "socket", "control", "metrics"};
constexpr std::string_view kDeviceKeys[] = {"index",  "uuid",     "mode",   "max_slice", "min_slice",
                                            "preset", "replicas", "shares", "memory"};
constexpr std::string_view kSeenKeys[] = {"index", "uuid",   "preset",   "memory",   "guarantee",
                                          "limit", "weight", "priority", "partition"};
constexpr std::string_view kProfileKeys[] = {"preset", "memory",   "guarantee", "limit",
                                             "weight", "priority", "partition", "max_kernel_time",
                                             "on_oom", "oom_wait", "devices"};
constexpr std::string_view kTenantKeys[] = {"name",      "profile",         "match",  "socket",   "preset",
                                            "memory",    "guarantee",       "limit",  "weight",   "priority",
                                            "partition", "max_kernel_time", "on_oom", "oom_wait", "devices"};
constexpr std::string_view kModes[] = {"timeslice", "concurrent", "partition"};
constexpr std::string_view kOnOom[] = {"fail", "wait"};
constexpr std::string_view kTimeSlicing = "time-slicing";

constexpr int64_t kMostWeight = 10000;
constexpr int64_t kMostPriority = 10;
constexpr int64_t kMostReplicas = 128;
constexpr uint64_t kLeastSliceNs = 100'000, kMostSliceNs = 100'000'000;
constexpr uint64_t kLeastPieceNs = 10'000;
constexpr uint64_t kLeastKernelNs = 1'000'000, kMostKernelNs = 86'400'000'000'000;
constexpr uint64_t kLeastWaitNs = 1'000'000, kMostWaitNs = 3'600'000'000'000;
constexpr uint64_t kDefaultWaitNs = 10'000'000'000;
constexpr std::string_view kScheme = "ipc://";  // of the control endpoint
constexpr uint32_t kOpenToAll = 0666;

/// What profiles and tenants can both say.
struct Written {
  WrittenTerms terms;
  std::optional<uint64_t> max_kernel_ns;
  std::optional<bool> waits;  // for memory
  std::optional<uint64_t> wait_ns;
  std::optional<std::vector<Seen>> devices;

  /// Stands in for what could not be read, so that its absence is not a second fault.
  static Written AtFault() {
    Written written;
    written.terms.at_fault = true;
    return written;
  }
};

std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

class Schema {
 public:
  Schema(const Accounts& accounts, std::string_view run_dir, Faults& faults)
      : fields_(accounts, faults), run_dir_(run_dir), faults_(faults) {}

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
  bool ReadVersion(const Table& top) {
    const Entry* entry = top.Find("version");
    if (entry == nullptr) {
      faults_.Add(top.at(), "The policy has no `version`; `version: 1` was expected.");
      return false;
    }
    if (entry->value.kind == Node::Kind::kScalar && entry->value.text == "1") return true;
    fields_.Expected("version", entry->value, "1, the one version this program reads,");
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
      auto path = fields_.Text(*dir, IsSocketPath, kPathForm);
      if (path && run_dir_.empty()) server.run_dir = *path;
    }
    server.socket = server.run_dir + "/cuplex.sock";
    std::string control = server.run_dir + "/control.sock";
    Mark socket_at = table.at(), control_at = table.at();
    if (const Entry* socket = table.Find("socket")) {
      socket_at = socket->value.at;
      if (auto path = fields_.Text(*socket, IsSocketPath, kPathForm)) server.socket = *path;
    }
    if (const Entry* where = table.Find("control")) {
      control_at = where->value.at;
      auto is_endpoint = [](std::string_view text) {
        return text.starts_with(kScheme) && IsSocketPath(text.substr(kScheme.size()));
      };
      if (auto endpoint =
              fields_.Text(*where, is_endpoint, "ipc:// and an absolute path of at most 107 bytes")) {
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
      auto address =
          fields_.Text(*metrics, is_address, "ADDRESS:PORT such as 127.0.0.1:9400 or [::1]:9400, or off,");
      if (address) server.metrics = *address == "off" ? "" : *address;
    }
  }

  void ReadDevices(const Table& top) {
    const Entry* entry = top.Find("devices");
    if (entry == nullptr) return;
    if (entry->value.kind != Node::Kind::kList || entry->value.items.empty()) {
      fields_.Expected("devices", entry->value, "a list of mappings with `index` or `uuid`, and `mode`,");
      devices_at_fault_ = true;
      return;
    }
    size_t before = faults_.size();
    for (const Node& item : entry->value.items) ReadDevice(item);
    devices_at_fault_ = faults_.size() != before;
  }

  const Preset* ReadPreset(const Entry& entry, bool of_tenant) {
    std::vector<std::string_view> names;
    for (const Preset& preset : Presets())
      if (preset.of_tenants || !of_tenant) names.push_back(preset.name);
    if (!fields_.IsOneOf(entry, names)) return nullptr;
    return FindPreset(entry.value.text);
  }

  void ReadDevice(const Node& node) {
    Table table(node, "a device", kDeviceKeys, faults_);
    if (!table.is_mapping()) return;
    Device device;
    DescribedDevice rules;
    rules.at = table.at();
    const auto name = fields_.NameOfDevice(table);
    const std::string what = name ? fmt::format("the device {}", PrintDeviceName(*name)) : "the device";
    if (const Entry* preset = table.Find("preset")) rules.preset = ReadPreset(*preset, false);
    if (rules.preset) {
      device.preset = rules.preset->name;
      device.mode = rules.preset->mode;
      device.max_slice_ns = rules.preset->max_slice_ns;
    }
    if (const Entry* mode = table.Find("mode"); mode && fields_.IsOneOf(*mode, kModes)) {
      if (rules.preset && mode->value.text != PrintMode(rules.preset->mode))
        faults_.Add(
            mode->at,
            fmt::format("The preset \"{}\" of {} means the mode {}, and its `mode` is {}; one of them was "
                        "expected.",
                        device.preset, what, PrintMode(rules.preset->mode), mode->value.text));
      device.mode = static_cast<DeviceMode>(
          std::find(std::begin(kModes), std::end(kModes), mode->value.text) - std::begin(kModes));
    }
    if (const Entry* slice = table.Find("max_slice"))
      device.max_slice_ns =
          fields_.Duration(*slice, kLeastSliceNs, kMostSliceNs).value_or(device.max_slice_ns);
    if (const Entry* piece = table.Find("min_slice")) {
      device.min_slice_ns = fields_.Duration(*piece, kLeastPieceNs, kMostSliceNs).value_or(0);
      if (2 * device.min_slice_ns > device.max_slice_ns)
        faults_.Add(piece->value.at,
                    fmt::format("`min_slice` is \"{}\" and `max_slice` {}; at most half of it was expected.",
                                piece->value.text, PrintDuration(device.max_slice_ns)));
    }
    if (const Entry* memory = table.Find("memory")) rules.memory_bytes = fields_.Memory(*memory);
    ReadParts(table, what, rules);
    if (!name) return;
    device.name = *name;
    for (const Device& other : policy_.devices) {
      if (other.name != device.name) continue;
      faults_.Add(table.at(), fmt::format("The device {} is given twice; once was expected.",
                                          PrintDeviceName(device.name)));
      return;
    }
    policy_.devices.push_back(device);
    described_.push_back(rules);
  }

  void ReadParts(const Table& table, const std::string& what, DescribedDevice& rules) {
    const std::string preset = rules.preset ? fmt::format("the preset \"{}\" of {}", rules.preset->name, what)
                                            : fmt::format("{}, which has no preset", what);
    if (const Entry* shares = table.Find("shares")) {
      const auto n = fields_.Integer(*shares, 1, 100);
      if (n) rules.shares = static_cast<uint32_t>(*n);
      const Parts parts = rules.preset ? rules.preset->parts : Parts::kNone;
      if (parts != Parts::kTenantsOrSaid && parts != Parts::kSaid)
        faults_.Add(shares->at, fmt::format("`shares` is given for {}; it goes with the presets average and "
                                            "vgpu-fixed-share.",
                                            preset));
    } else if (rules.preset && rules.preset->parts == Parts::kSaid) {
      faults_.Add(table.at(),
                  fmt::format("The preset \"{}\" of {} needs `shares`; the number of equal parts was "
                              "expected.",
                              rules.preset->name, what));
    }
    if (const Entry* replicas = table.Find("replicas")) {
      const auto n = fields_.Integer(*replicas, 1, kMostReplicas);
      if (!rules.preset || rules.preset->name != kTimeSlicing)
        faults_.Add(replicas->at, fmt::format("`replicas` is given for {}; it goes with the preset {}.",
                                              preset, kTimeSlicing));
      else if (n)
        rules.replicas = static_cast<uint32_t>(*n);
    }
  }

  std::optional<std::vector<Seen>> ReadSeen(const Entry& entry) {
    std::vector<Seen> seen;
    if (entry.value.kind == Node::Kind::kScalar && entry.value.text == "all") return seen;
    if (entry.value.kind != Node::Kind::kList || entry.value.items.empty()) {
      fields_.Expected("devices", entry.value, "all, or a list of indices and UUIDs,");
      return std::nullopt;
    }
    for (const Node& item : entry.value.items) {
      Seen one{.name = 0, .terms = {}, .at = item.at};
      auto index = item.kind == Node::Kind::kScalar ? ParseInteger(item.text) : std::nullopt;
      if (item.kind == Node::Kind::kMapping) {
        Table table(item, "a device of a tenant", kSeenKeys, faults_);
        auto name = fields_.NameOfDevice(table);
        one.terms = ReadTerms(table);
        if (!name) continue;
        one.name = *name;
      } else if (index && *index >= 0 && *index <= kMostIndex) {
        one.name = static_cast<int>(*index);
      } else if (item.kind == Node::Kind::kScalar && IsUuid(item.text)) {
        one.name = item.text;
      } else {
        fields_.Expected("devices", item, "the index or UUID of a device");
        continue;
      }
      if (std::any_of(seen.begin(), seen.end(), [&](const Seen& other) { return other.name == one.name; })) {
        faults_.Add(item.at, fmt::format("The device {} is given twice; once was expected.",
                                         PrintDeviceName(one.name)));
        continue;
      }
      if (!IsListed(one.name)) {
        faults_.Add(item.at,
                    fmt::format("`devices` is {}; {}, as the `devices` of this file name them, was expected.",
                                Quoted(PrintDeviceName(one.name)), ListedDevices()));
        continue;
      }
      seen.push_back(std::move(one));
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

  WrittenTerms ReadTerms(const Table& table) {
    WrittenTerms terms;
    const size_t before = faults_.size();
    if (const Entry* preset = table.Find("preset")) terms.preset = ReadPreset(*preset, true);
    if (const Entry* memory = table.Find("memory")) terms.memory_bytes = fields_.Memory(*memory);
    if (const Entry* weight = table.Find("weight")) {
      if (auto n = fields_.Integer(*weight, 1, kMostWeight)) terms.weight = static_cast<uint32_t>(*n);
    }
    if (const Entry* priority = table.Find("priority")) {
      if (auto n = fields_.Integer(*priority, -kMostPriority, kMostPriority))
        terms.priority = static_cast<int>(*n);
    }
    if (const Entry* guarantee = table.Find("guarantee")) terms.guarantee = fields_.Percent(*guarantee);
    if (const Entry* limit = table.Find("limit")) terms.limit = fields_.Percent(*limit);
    if (const Entry* part = table.Find("partition")) {
      const Node& value = part->value;
      if (value.kind == Node::Kind::kScalar) terms.part = ParsePart(value.text);
      if (!terms.part) fields_.Expected("partition", value, kPartForm);
    }
    terms.at_fault = faults_.size() != before;
    return terms;
  }

  Written ReadWritten(const Table& table) {
    Written written;
    written.terms = ReadTerms(table);
    if (const Entry* time = table.Find("max_kernel_time"))
      written.max_kernel_ns = fields_.Duration(*time, kLeastKernelNs, kMostKernelNs);
    if (const Entry* on_oom = table.Find("on_oom"))
      if (fields_.IsOneOf(*on_oom, kOnOom)) written.waits = on_oom->value.text == "wait";
    if (const Entry* wait = table.Find("oom_wait"))
      written.wait_ns = fields_.Duration(*wait, kLeastWaitNs, kMostWaitNs);
    if (const Entry* devices = table.Find("devices")) written.devices = ReadSeen(*devices);
    return written;
  }

  void ReadProfiles(const Table& top) {
    const Entry* entry = top.Find("profiles");
    if (entry == nullptr) return;
    if (entry->value.kind != Node::Kind::kMapping) {
      fields_.Expected("profiles", entry->value, "a mapping from names to mappings");
      profiles_at_fault_ = true;
      return;
    }
    for (const Entry& profile : entry->value.entries) {
      if (!IsName(profile.key)) {
        faults_.Add(profile.at,
                    fmt::format("The name of a profile is \"{}\"; {} was expected.", profile.key, kNameForm));
      }
      Table table(profile.value, "a profile", kProfileKeys, faults_);
      profiles_[profile.key] = table.is_mapping() ? ReadWritten(table) : Written::AtFault();
    }
  }

  void ReadTenants(const Table& top) {
    const Entry* entry = top.Find("tenants");
    const bool slots = std::any_of(described_.begin(), described_.end(),
                                   [](const DescribedDevice& device) { return device.replicas > 0; });
    if (entry == nullptr && !slots) {
      faults_.Add(top.at(), "The policy has no `tenants`; a list of at least one was expected.");
      return;
    }
    if (entry && (entry->value.kind != Node::Kind::kList || entry->value.items.empty())) {
      fields_.Expected("tenants", entry->value, "a list of at least one tenant");
      return;
    }
    if (entry)
      for (const Node& item : entry->value.items) ReadTenant(item);
    for (size_t d = 0; d < policy_.devices.size(); ++d) AddSlots(policy_.devices[d].name, described_[d]);
    ResolveTerms(drafts_, described_, entry ? entry->at : top.at(), policy_, faults_);
  }

  void TakeName(Draft& draft, Mark at) {
    auto [first, fresh] = tenant_lines_.try_emplace(draft.tenant.name, at.line);
    if (fresh) return;
    faults_.Add(at, fmt::format("The tenant \"{}\" is given twice, first on line {}; once was expected.",
                                draft.tenant.name, first->second));
    draft.tenant.name.clear();
  }

  void ReadTenant(const Node& node) {
    Table table(node, "a tenant", kTenantKeys, faults_);
    if (!table.is_mapping()) return;
    Draft draft;
    draft.at = table.at();
    Tenant& tenant = draft.tenant;
    Mark name_at = table.at();
    if (const Entry* name = table.Find("name")) {
      name_at = name->value.at;
      if (auto text = fields_.Text(*name, IsName, kNameForm)) tenant.name = *text;
    } else {
      faults_.Add(table.at(), fmt::format("The tenant has no `name`; {} was expected.", kNameForm));
    }
    if (!tenant.name.empty()) TakeName(draft, name_at);

    Written profile;
    if (const Entry* named = table.Find("profile")) profile = FindProfile(*named);
    Written own = ReadWritten(table);
    draft.terms = own.terms.Over(profile.terms);
    tenant.max_kernel_ns = own.max_kernel_ns.value_or(profile.max_kernel_ns.value_or(0));
    if (own.waits.value_or(profile.waits.value_or(false)))
      tenant.oom_wait_ns = own.wait_ns.value_or(profile.wait_ns.value_or(kDefaultWaitNs));
    draft.devices = own.devices ? *own.devices : profile.devices.value_or(std::vector<Seen>{});

    if (const Entry* match = table.Find("match")) tenant.matches = ReadMatches(*match, fields_);
    Mark path_at = name_at;
    if (auto socket = ReadSocket(table.Find("socket"), table.Find("match") != nullptr, fields_, path_at)) {
      tenant.socket = *socket;
      TakeSocket(tenant, path_at);
    }
    drafts_.push_back(std::move(draft));
  }

  void TakeSocket(Tenant& tenant, Mark at) {
    if (tenant.socket.path.empty()) {
      if (tenant.name.empty()) return;  // its name was at fault, and so would be the path
      tenant.socket.path = fmt::format("{}/{}.sock", policy_.server.run_dir, tenant.name);
    }
    TakePath(tenant.socket.path, at, fmt::format("the socket of tenant \"{}\"", tenant.name));
  }

  /// The tenants without identity that a device has for `replicas`: who reaches the socket is in, as with the
  /// device's own file.
  void AddSlots(const DeviceName& device, const DescribedDevice& rules) {
    std::string base = "gpu" + PrintDeviceName(device);
    if (const auto* uuid = std::get_if<std::string>(&device)) base = "gpu-" + uuid->substr(4, 8);
    for (uint32_t k = 1; k <= rules.replicas; ++k) {
      Draft draft;
      draft.at = rules.at;
      draft.tenant.name = fmt::format("{}-{}", base, k);
      TakeName(draft, rules.at);
      draft.tenant.socket.mode = kOpenToAll;
      TakeSocket(draft.tenant, rules.at);
      draft.devices = {{device, {}, rules.at}};
      drafts_.push_back(std::move(draft));
    }
  }

  Written FindProfile(const Entry& entry) {
    const Node& node = entry.value;
    if (node.kind == Node::Kind::kScalar) {
      auto at = profiles_.find(node.text);
      if (at != profiles_.end()) return at->second;
    }
    std::vector<std::string_view> names;
    names.reserve(profiles_.size());
    for (const auto& [name, terms] : profiles_) names.push_back(name);
    if (!profiles_at_fault_) {
      fields_.Expected("profile", node,
                       names.empty() ? "the name of an entry of `profiles`, of which the file has none,"
                                     : fmt::format("{}, as named under `profiles`,", OneOf(names)));
    }
    return Written::AtFault();
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
    fields_.Expected("default_tenant", entry->value,
                     names.empty() ? "the name of a tenant of this file"
                                   : fmt::format("the name of a tenant of this file ({})", OneOf(names)));
  }

  Fields fields_;
  std::string_view run_dir_;
  Faults& faults_;
  Policy policy_;
  std::vector<DescribedDevice> described_;  // policy_.devices
  std::vector<Draft> drafts_;
  std::map<std::string, Written> profiles_;
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
