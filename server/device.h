// Device: what the server knows of a device of its driver. A value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cuda/driver_table.h"
#include "policies/partition.h"
#include "policies/policy.h"

namespace cuplex::server {

struct Device {
  int index = 0;  // the driver's ordinal
  CUdevice handle = 0;
  std::string name;
  std::array<uint8_t, 16> uuid{};
  std::string pci_bus_id;
  uint64_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  std::vector<std::pair<int, int>> attributes;  // (CUdevice_attribute, value), of all the driver knows
  uint64_t granule = 0;                         // bytes that memory is mapped in
  policies::Multiprocessors multiprocessors;    // and in what groups a context can have some of them
  bool confines = false;                        // a context can be confined to some multiprocessors

  std::string PrintUuid() const;  // "GPU-8-4-4-4-12"
  bool Is(const policies::DeviceName& name) const;
  /// The attribute's value, 0 where the driver does not know it.
  int Attribute(CUdevice_attribute attribute) const;
};

/// All devices of a driver. Calls cuInit.
Result<std::vector<Device>> FindDevices(const DriverTable& cu);

/// How memory for a device is asked for.
CUmemAllocationProp PhysicalOn(const Device& device);

}  // namespace cuplex::server
