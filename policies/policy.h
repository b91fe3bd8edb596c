// Policy: what one YAML file says about devices and tenants, as a plain value, and the reading of it.
//
// Reading touches the file and, for user and group names, the accounts database; everything else is a pure
// function of the text. Any thread. A file is taken whole or refused whole; docs/policies.md has every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "policies/partition.h"
#include "policies/terms.h"

namespace cuplex::policies {

/// How a device is shared. Names in the file: timeslice, concurrent, partition.
enum class DeviceMode {
  kTimeslice,   // tenants take turns; one tenant's work is on the device at a time
  kConcurrent,  // several tenants' work is on the device at once
  kPartition,   // each tenant has multiprocessors of its own
};

/// A device as the file names it: the driver's index (0..255), or a UUID as nvidia-smi prints it
/// ("GPU-8-4-4-4-12" lower-case hex digits).
using DeviceName = std::variant<int, std::string>;
std::string PrintDeviceName(const DeviceName& name);

/// What is on a device together while others wait.
inline constexpr uint64_t kDefaultMaxSliceNs = 2'000'000;

struct Device {
  DeviceName name;
  DeviceMode mode = DeviceMode::kTimeslice;
  uint64_t max_slice_ns = kDefaultMaxSliceNs;  // 100 us..100 ms
  uint64_t min_slice_ns = 0;                   // 10 us..half of max_slice_ns; 0: as short as is wanted
  std::string preset;                          // that its terms were made from; empty: none
  bool operator==(const Device&) const = default;
};

/// Both ends belong to it.
struct IdRange {
  uint32_t first = 0;
  uint32_t last = 0;
  bool operator==(const IdRange&) const = default;
};

/// One way to recognise a client: every kind that is not empty must hold, by any one of its entries.
struct Match {
  std::vector<IdRange> uids;         // SO_PEERCRED uid
  std::vector<IdRange> gids;         // SO_PEERCRED gid, the primary group
  std::vector<std::string> cgroups;  // patterns over the cgroup path, see policies/match.h
  bool operator==(const Match&) const = default;
};

/// The socket of one tenant: who reaches it is that tenant, if `matches` (where there are any) agree.
struct Socket {
  std::string path;               // absolute, at most 107 bytes, unique among all sockets of the server
  uint32_t mode = 0600;           // permission bits; unless the file says, 0666 for a tenant with matches
  std::optional<uint32_t> owner;  // nullopt: stays the server's user
  std::optional<uint32_t> group;  // nullopt: stays the server's group
  bool operator==(const Socket&) const = default;
};

inline constexpr uint32_t kDefaultWeight = 100;
inline constexpr uint64_t kAllMemory = 0;

/// What a tenant has of one device.
struct DeviceTerms {
  Terms time;                          // those of all tenants of a device agree with each other
  uint64_t memory_bytes = kAllMemory;  // 1 MiB .. 1 PiB, or as much as the device has
  Part part;                           // of a device in mode partition, and there alone
  bool operator==(const DeviceTerms&) const = default;
};

struct Tenant {
  std::string name;                 // unique; 1..63 of a-z 0-9 and inner '-'
  std::vector<Match> matches;       // any one suffices; empty: recognised by its socket alone
  Socket socket;                    // always set
  DeviceTerms terms;                // on each device that has none of its own in `on`
  uint64_t max_kernel_ns = 0;       // what a kernel may take; 0: whatever it takes
  uint64_t oom_wait_ns = 0;         // how long an allocation waits for its budget; 0: it fails at once
  std::vector<DeviceName> devices;  // which it sees, as `Policy::devices` names them; empty: all
  std::vector<std::pair<DeviceName, DeviceTerms>> on;  // in the order of `devices`
  bool operator==(const Tenant&) const = default;

  bool Sees(const DeviceName& device) const;
  /// Its terms on the device that `is` says yes to, whatever the file calls it.
  template <typename Is>
  const DeviceTerms& On(Is is) const {
    for (const auto& [device, own] : on)
      if (is(device)) return own;
    return terms;
  }
};

struct ServerSettings {
  std::string run_dir;  // absolute; sockets live here unless they say otherwise
  std::string socket;   // the socket shared by all tenants that have matches; <run_dir>/cuplex.sock
  std::string control;  // ZeroMQ endpoint, ipc:///absolute/path; <run_dir>/control.sock
  std::string metrics;  // "ADDRESS:PORT" or "[IPV6]:PORT", port 0 for any free one; empty: no exporter
  bool operator==(const ServerSettings&) const = default;
};

struct Policy {
  ServerSettings server;
  std::vector<Device> devices;                // empty: every device of the driver, in mode timeslice
  std::vector<Tenant> tenants;                // in file order, at least one
  std::optional<std::string> default_tenant;  // names one of `tenants`; nullopt: unknown clients are refused
  /// "FILE:LINE:COLUMN: sentence": what the file asks for and this version reads but does not act on.
  std::vector<std::string> notes;

  const Tenant* Find(std::string_view tenant_name) const;
};

/// Names of users and groups to numbers.
class Accounts {
 public:
  virtual ~Accounts() = default;
  virtual std::optional<uint32_t> Uid(const std::string& user) const = 0;
  virtual std::optional<uint32_t> Gid(const std::string& group) const = 0;
};

/// What this machine knows (getpwnam_r, getgrnam_r).
class SystemAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string& user) const override;
  std::optional<uint32_t> Gid(const std::string& group) const override;
};

/// What a file may be at most; a longer one is refused unread.
inline constexpr size_t kLongestPolicy = size_t{1} << 20;
inline constexpr std::string_view kDefaultRunDir = "/run/cuplex";
inline constexpr std::string_view kDefaultMetrics = "127.0.0.1:9400";

/// The policy in `text`. `file` is the name that error lines begin with. `run_dir`, when not empty, takes the
/// place of the file's `server: run_dir`.
/// Error (Blame::kCaller): one line "FILE:LINE:COLUMN: sentence" for each fault of the file, in the order of
/// the file, joined by '\n'. Lines and columns count from 1.
Result<Policy> ParsePolicy(std::string_view text, std::string_view file, const Accounts& accounts,
                           std::string_view run_dir = {});

/// ParsePolicy of the file at `path`; Blame::kSystem where it cannot be read.
Result<Policy> LoadPolicy(const std::string& path, const Accounts& accounts, std::string_view run_dir = {});

}  // namespace cuplex::policies
