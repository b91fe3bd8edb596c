// Snapshot: what the server says at attach. Read-only afterwards: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cuda/driver_types.h"
#include "protocol/segment.h"

namespace cuplex::client {

/// Addresses [base, base + bytes).
struct AddressRange {
  uint64_t base = 0;
  uint64_t bytes = 0;

  bool Contains(uint64_t address) const { return address - base < bytes; }
  /// Also all `count` bytes from there.
  bool Contains(uint64_t address, uint64_t count) const {
    return Contains(address) && count <= bytes - (address - base);
  }
};

/// What a launch is held against; taken out of the attributes because every launch asks.
struct LaunchLimits {
  uint32_t threads = 1024;  // of a block
  uint32_t block[3] = {1024, 1024, 64};
  uint32_t grid[3] = {0x7fffffff, 65535, 65535};
};

struct DeviceSnapshot {
  std::string name;
  std::array<char, 16> uuid{};
  std::string pci_bus_id;
  uint64_t total_memory = 0;  // bytes
  int compute_major = 0;
  int compute_minor = 0;
  int priority_least = 0;
  int priority_greatest = 0;
  std::unordered_map<int, int> attributes;
  AddressRange arena;
  LaunchLimits limits;

  std::optional<int> Attribute(CUdevice_attribute a) const {
    auto it = attributes.find(static_cast<int>(a));
    if (it == attributes.end()) return std::nullopt;
    return it->second;
  }
  int AttributeOr(CUdevice_attribute a, int otherwise) const { return Attribute(a).value_or(otherwise); }
};

struct Snapshot {
  int driver_version = 0;  // as cuDriverGetVersion gives it
  std::string server_version;
  std::string tenant;
  SegmentGeometry geometry;
  AddressRange host_window;
  std::vector<DeviceSnapshot> devices;
};

/// Reads the server's answer to Hello. A refusal becomes an error with its sentence and, as driver_code, its
/// code.
Result<Snapshot> ReadWelcome(std::span<const std::byte> packet);

/// The bytes of a Hello.
std::vector<std::byte> WriteHello(const std::string& program);

}  // namespace cuplex::client
