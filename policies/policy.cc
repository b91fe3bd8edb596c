#include "policies/policy.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.h"
#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

/// Calls one of the get*nam_r family with a buffer that grows until the entry fits.
template <typename Entry, typename Lookup>
std::optional<Entry> LookUp(const std::string& name, std::vector<char>& buffer, Lookup lookup) {
  Entry entry;
  Entry* found = nullptr;
  for (size_t size = 1024; size <= (size_t{1} << 20); size *= 4) {
    buffer.resize(size);
    int error = lookup(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (error == 0 && found != nullptr) return entry;
    break;
  }
  return std::nullopt;
}

Result<std::string> ReadFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno(errno, fmt::format("The policy file {} cannot be opened", path));
  std::string text;
  char block[1 << 14];
  while (true) {
    ssize_t n = read(fd.get(), block, sizeof block);
    if (n == 0) return text;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(errno, fmt::format("The policy file {} cannot be read", path));
    text.append(block, static_cast<size_t>(n));
    if (text.size() > kLongestPolicy) {
      return Fail(Blame::kCaller, "The policy file {} is longer than {}, the most a policy may have.", path,
                  PrintSize(kLongestPolicy));
    }
  }
}

}  // namespace

std::string PrintDeviceName(const DeviceName& name) {
  if (const int* index = std::get_if<int>(&name)) return fmt::format("{}", *index);
  return std::get<std::string>(name);
}

bool Tenant::Sees(const DeviceName& device) const {
  return devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
}

const Tenant* Policy::Find(std::string_view tenant_name) const {
  for (const Tenant& tenant : tenants) {
    if (tenant.name == tenant_name) return &tenant;
  }
  return nullptr;
}

std::optional<uint32_t> SystemAccounts::Uid(const std::string& user) const {
  std::vector<char> buffer;
  auto entry = LookUp<passwd>(user, buffer, getpwnam_r);
  return entry ? std::optional(entry->pw_uid) : std::nullopt;
}

std::optional<uint32_t> SystemAccounts::Gid(const std::string& name) const {
  std::vector<char> buffer;
  auto entry = LookUp<group>(name, buffer, getgrnam_r);
  return entry ? std::optional(entry->gr_gid) : std::nullopt;
}

Result<Policy> LoadPolicy(const std::string& path, const Accounts& accounts, std::string_view run_dir) {
  TRY(std::string text, ReadFile(path));
  return ParsePolicy(text, path, accounts, run_dir);
}

}  // namespace cuplex::policies
