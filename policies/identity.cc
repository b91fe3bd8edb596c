#include "policies/identity.h"

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr std::string_view kMatchKeys[] = {"uid", "user", "gid", "group", "cgroup"};
constexpr std::string_view kSocketKeys[] = {"path", "mode", "owner", "group"};
constexpr int64_t kMostId = 4294967294;  // (uid_t)-1 means "nobody in particular" to the kernel
constexpr uint32_t kOpenToAll = 0666;

void ReadIds(const Entry& entry, Fields& fields, std::vector<IdRange>& ids) {
  constexpr std::string_view kForm = "a whole number from 0 to 4294967294, or a range such as 100000-165535,";
  fields.ForEach(entry, kForm, [&](const Node& item) {
    std::optional<int64_t> first, last;
    if (item.kind == Node::Kind::kScalar) {
      size_t dash = item.text.find('-');
      first = ParseInteger(std::string_view(item.text).substr(0, dash));
      last = dash == std::string::npos ? first : ParseInteger(std::string_view(item.text).substr(dash + 1));
    }
    if (!first || !last || *first < 0 || *last > kMostId || *first > *last) {
      return fields.Expected(entry.key, item, kForm);
    }
    ids.push_back({static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)});
  });
}

void ReadAccounts(const Entry& entry, std::string_view kind, Fields::LookUp look_up, Fields& fields,
                  std::vector<IdRange>& ids) {
  fields.ForEach(entry, fmt::format("the name of a {} of this machine", kind), [&](const Node& item) {
    if (auto id = fields.Account(entry.key, item, kind, look_up)) ids.push_back({*id, *id});
  });
}

void ReadMatch(const Node& node, Fields& fields, std::vector<Match>& matches) {
  Table table(node, "a match", kMatchKeys, fields.faults());
  if (!table.is_mapping()) return;
  if (node.entries.empty()) {
    fields.faults().Add(node.at,
                        fmt::format("The match is empty; at least {} was expected.", OneOf(kMatchKeys)));
    return;
  }
  Match match;
  if (const Entry* uid = table.Find("uid")) ReadIds(*uid, fields, match.uids);
  if (const Entry* gid = table.Find("gid")) ReadIds(*gid, fields, match.gids);
  if (const Entry* user = table.Find("user")) ReadAccounts(*user, "user", &Accounts::Uid, fields, match.uids);
  if (const Entry* group = table.Find("group"))
    ReadAccounts(*group, "group", &Accounts::Gid, fields, match.gids);
  if (const Entry* cgroup = table.Find("cgroup")) {
    constexpr std::string_view kForm =
        "an absolute cgroup path, in which * and ? may stand for parts of a component,";
    fields.ForEach(*cgroup, kForm, [&](const Node& item) {
      bool ok = item.kind == Node::Kind::kScalar && (item.text == "/" || IsPlainPath(item.text));
      if (!ok) return fields.Expected("cgroup", item, kForm);
      match.cgroups.push_back(item.text);
    });
  }
  matches.push_back(std::move(match));
}

}  // namespace

std::vector<Match> ReadMatches(const Entry& entry, Fields& fields) {
  std::vector<Match> matches;
  const Node& node = entry.value;
  if (node.kind == Node::Kind::kList && !node.items.empty()) {
    for (const Node& item : node.items) ReadMatch(item, fields, matches);
  } else if (node.kind == Node::Kind::kMapping) {
    ReadMatch(node, fields, matches);
  } else {
    fields.Expected("match", node,
                    "a mapping with keys of uid, user, gid, group, cgroup, or a list of such mappings,");
  }
  return matches;
}

std::optional<Socket> ReadSocket(const Entry* entry, bool has_matches, Fields& fields, Mark& path_at) {
  Socket socket;
  // Where the matches decide who comes in, everybody may knock.
  socket.mode = has_matches ? kOpenToAll : 0600;
  if (entry != nullptr && entry->value.kind == Node::Kind::kScalar) {
    path_at = entry->value.at;
    auto path = fields.Text(*entry, IsSocketPath, kPathForm);
    if (!path) return std::nullopt;
    socket.path = *path;
  } else if (entry != nullptr) {
    Table table(entry->value, "`socket`", kSocketKeys, fields.faults());
    if (!table.is_mapping()) return std::nullopt;
    if (const Entry* mode = table.Find("mode")) {
      std::optional<uint32_t> bits;
      if (mode->value.kind == Node::Kind::kScalar) bits = ParsePermissions(mode->value.text);
      if (!bits) fields.Expected("mode", mode->value, "three octal digits such as 0660");
      socket.mode = bits.value_or(socket.mode);
    }
    if (const Entry* owner = table.Find("owner"))
      socket.owner = fields.AccountOrId(*owner, "user", &Accounts::Uid);
    if (const Entry* group = table.Find("group"))
      socket.group = fields.AccountOrId(*group, "group", &Accounts::Gid);
    if (const Entry* path = table.Find("path")) {
      path_at = path->value.at;
      auto text = fields.Text(*path, IsSocketPath, kPathForm);
      if (!text) return std::nullopt;
      socket.path = *text;
    }
  }
  return socket;
}

}  // namespace cuplex::policies
