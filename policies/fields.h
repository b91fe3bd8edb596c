// Fields: the values in a policy's mappings, read one by one, with a fault for each that is not what was
// expected. Pure, but for names of accounts; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "policies/document.h"
#include "policies/policy.h"

namespace cuplex::policies {

using Words = std::span<const std::string_view>;

inline constexpr std::string_view kNameForm =
    "a name of 1 to 63 characters of a-z, 0-9 and -, not beginning or ending with -,";
inline constexpr std::string_view kPathForm =
    "an absolute path of at most 107 bytes without empty, . or .. components";
inline constexpr std::string_view kUuidForm = "GPU- and a UUID in lower-case hex digits";
inline constexpr size_t kLongestSocketPath = 107;  // sockaddr_un without its final NUL
inline constexpr int64_t kMostIndex = 255;         // of a device

bool IsName(std::string_view text);
bool IsUuid(std::string_view text);
/// "/a/b", nothing that would give one place two names.
bool IsPlainPath(std::string_view text);
bool IsSocketPath(std::string_view text);

/// "a", "one of a, b", "one of a, ... (20 in all)".
std::string OneOf(Words words);

/// A mapping of the file with the keys it may have. The node must outlive it.
class Table {
 public:
  /// Adds a fault for a node that is no mapping and for each key that is not among `keys`. `what` names the
  /// mapping in sentences: "a tenant".
  Table(const Node& node, std::string_view what, Words keys, Faults& faults);

  bool is_mapping() const { return is_mapping_; }
  Mark at() const { return node_.at; }
  const Entry* Find(std::string_view key) const;

 private:
  const Node& node_;
  bool is_mapping_ = false;
};

class Fields {
 public:
  Fields(const Accounts& accounts, Faults& faults) : accounts_(accounts), faults_(faults) {}

  Faults& faults() { return faults_; }
  const Accounts& accounts() const { return accounts_; }
  /// "`KEY` is GIVEN; FORM was expected."
  void Expected(std::string_view key, const Node& given, std::string_view form);

  // Each of these gives the value, or adds a fault and gives nullopt.

  std::optional<int64_t> Integer(const Entry& entry, int64_t least, int64_t most);
  std::optional<std::string> Text(const Entry& entry, bool (*accepts)(std::string_view),
                                  std::string_view form);
  /// Bytes; kAllMemory for "all".
  std::optional<uint64_t> Memory(const Entry& entry);
  std::optional<double> Percent(const Entry& entry);  // 0.01 to 1
  std::optional<uint64_t> Duration(const Entry& entry, uint64_t least_ns, uint64_t most_ns);
  bool IsOneOf(const Entry& entry, Words words);
  using LookUp = std::optional<uint32_t> (Accounts::*)(const std::string&) const;
  std::optional<uint32_t> Account(std::string_view key, const Node& node, std::string_view kind,
                                  LookUp look_up);
  /// A name or a number.
  std::optional<uint32_t> AccountOrId(const Entry& entry, std::string_view kind, LookUp look_up);
  /// The device that `index` or `uuid` names; exactly one of them is to be there.
  std::optional<DeviceName> NameOfDevice(const Table& table);

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

 private:
  const Accounts& accounts_;
  Faults& faults_;
};

}  // namespace cuplex::policies
