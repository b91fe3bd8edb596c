#include "policies/fields.h"

#include <algorithm>

#include "policies/nearest.h"
#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr uint64_t kLeastMemory = uint64_t{1} << 20;
constexpr uint64_t kMostMemory = uint64_t{1} << 50;
constexpr int64_t kMostId = 4294967294;  // (uid_t)-1 means "nobody in particular" to the kernel
constexpr size_t kNamesInSentence = 16;

std::string Capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string Listed(Words keys) {
  std::string out;
  for (std::string_view key : keys) out += (out.empty() ? "" : ", ") + std::string(key);
  return out;
}

}  // namespace

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

Table::Table(const Node& node, std::string_view what, Words keys, Faults& faults) : node_(node) {
  if (node.kind != Node::Kind::kMapping) {
    faults.Add(node.at, fmt::format("{} was given for {}; a mapping with keys of {} was expected.",
                                    Capital(Given(node)), what, Listed(keys)));
    return;
  }
  is_mapping_ = true;
  for (const Entry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
    std::string_view meant = Nearest(entry.key, keys);
    faults.Add(
        entry.at,
        meant.empty()
            ? fmt::format("The key \"{}\" is not known in {}; {} was expected.", entry.key, what, OneOf(keys))
            : fmt::format("The key \"{}\" is not known in {}; did you mean \"{}\"?", entry.key, what, meant));
  }
}

const Entry* Table::Find(std::string_view key) const {
  for (const Entry& entry : node_.entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

void Fields::Expected(std::string_view key, const Node& given, std::string_view form) {
  faults_.Add(given.at, fmt::format("`{}` is {}; {} was expected.", key, Given(given), form));
}

std::optional<int64_t> Fields::Integer(const Entry& entry, int64_t least, int64_t most) {
  std::optional<int64_t> n;
  if (entry.value.kind == Node::Kind::kScalar) n = ParseInteger(entry.value.text);
  if (n && *n >= least && *n <= most) return n;
  Expected(entry.key, entry.value, fmt::format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::string> Fields::Text(const Entry& entry, bool (*accepts)(std::string_view),
                                        std::string_view form) {
  const Node& node = entry.value;
  if (node.kind == Node::Kind::kScalar && accepts(node.text)) return node.text;
  Expected(entry.key, node, form);
  return std::nullopt;
}

std::optional<uint64_t> Fields::Memory(const Entry& entry) {
  std::optional<uint64_t> bytes;
  if (entry.value.kind == Node::Kind::kScalar && entry.value.text == "all") return kAllMemory;
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

std::optional<double> Fields::Percent(const Entry& entry) {
  std::optional<uint32_t> percent;
  if (entry.value.kind == Node::Kind::kScalar) percent = ParsePercent(entry.value.text);
  if (!percent) Expected(entry.key, entry.value, fmt::format("{} from 1% to 100%", kPercentForm));
  return percent ? std::optional(*percent / 100.0) : std::nullopt;
}

std::optional<uint64_t> Fields::Duration(const Entry& entry, uint64_t least_ns, uint64_t most_ns) {
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

bool Fields::IsOneOf(const Entry& entry, Words words) {
  const bool known = entry.value.kind == Node::Kind::kScalar &&
                     std::find(words.begin(), words.end(), entry.value.text) != words.end();
  if (!known) Expected(entry.key, entry.value, OneOf(words));
  return known;
}

std::optional<uint32_t> Fields::Account(std::string_view key, const Node& node, std::string_view kind,
                                        LookUp look_up) {
  if (node.kind == Node::Kind::kScalar && !node.text.empty()) {
    if (auto id = (accounts_.*look_up)(node.text)) return id;
  }
  Expected(key, node, fmt::format("the name of a {} of this machine", kind));
  return std::nullopt;
}

std::optional<uint32_t> Fields::AccountOrId(const Entry& entry, std::string_view kind, LookUp look_up) {
  if (entry.value.kind == Node::Kind::kScalar && ParseInteger(entry.value.text)) {
    auto id = Integer(entry, 0, kMostId);
    return id ? std::optional(static_cast<uint32_t>(*id)) : std::nullopt;
  }
  return Account(entry.key, entry.value, kind, look_up);
}

std::optional<DeviceName> Fields::NameOfDevice(const Table& table) {
  const Entry* index = table.Find("index");
  const Entry* uuid = table.Find("uuid");
  if ((index != nullptr) == (uuid != nullptr)) {
    faults_.Add(table.at(), fmt::format("The device has {}; exactly one of `index` and `uuid` was expected.",
                                        index ? "both `index` and `uuid`" : "neither `index` nor `uuid`"));
  } else if (index != nullptr) {
    if (auto n = Integer(*index, 0, kMostIndex)) return static_cast<int>(*n);
  } else if (auto text = Text(*uuid, IsUuid, kUuidForm)) {
    return *text;
  }
  return std::nullopt;
}

}  // namespace cuplex::policies
