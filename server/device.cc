#include "server/device.h"

#include <algorithm>
#include <cstring>

#include "server/driver_call.h"

namespace cuplex::server {

std::string Device::PrintUuid() const {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

bool Device::Is(const policies::DeviceName& name) const {
  if (const int* number = std::get_if<int>(&name)) return *number == index;
  return std::get<std::string>(name) == PrintUuid();
}

int Device::Attribute(CUdevice_attribute attribute) const {
  for (auto [id, value] : attributes)
    if (id == static_cast<int>(attribute)) return value;
  return 0;
}

CUmemAllocationProp PhysicalOn(const Device& device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.handle};
  return prop;
}

namespace {

Result<Device> Ask(const DriverTable& cu, int index) {
  Device d;
  d.index = index;
  CUPLEX_TRY_DRIVER(cu, cuDeviceGet, &d.handle, index);
  char text[256] = {};
  CUPLEX_TRY_DRIVER(cu, cuDeviceGetName, text, sizeof(text), d.handle);
  d.name.assign(text, strnlen(text, sizeof(text)));
  CUuuid uuid{};
  CUPLEX_TRY_DRIVER(cu, cuDeviceGetUuid_v2, &uuid, d.handle);
  std::memcpy(d.uuid.data(), &uuid, d.uuid.size());
  std::memset(text, 0, sizeof(text));
  CUPLEX_TRY_DRIVER(cu, cuDeviceGetPCIBusId, text, sizeof(text), d.handle);
  d.pci_bus_id.assign(text, strnlen(text, sizeof(text)));
  size_t bytes = 0;
  CUPLEX_TRY_DRIVER(cu, cuDeviceTotalMem_v2, &bytes, d.handle);
  d.memory_bytes = bytes;
  for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; ++a) {
    int value = 0;
    if (cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(a), d.handle) == CUDA_SUCCESS)
      d.attributes.emplace_back(a, value);
  }
  d.compute_major = d.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  d.compute_minor = d.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  size_t granule = 0;
  const CUmemAllocationProp prop = PhysicalOn(d);
  CUPLEX_TRY_DRIVER(cu, cuMemGetAllocationGranularity, &granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (granule == 0 || (granule & (granule - 1)) != 0)
    return Fail(Blame::kSystem, "the driver maps memory in pieces of {} bytes, a power of two was expected.",
                granule);
  d.granule = granule;
  d.multiprocessors.count =
      static_cast<uint32_t>(std::max(1, d.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  int confines = 0;
  d.confines = cu.cuDeviceGetExecAffinitySupport(&confines, CU_EXEC_AFFINITY_TYPE_SM_COUNT, d.handle) ==
                   CUDA_SUCCESS &&
               confines;
  CUdevResource resource{};
  if (cu.cuDeviceGetDevResource(d.handle, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS) {
    d.multiprocessors.least = std::max(1u, resource.sm.minSmPartitionSize);
    d.multiprocessors.alignment = std::max(1u, resource.sm.smCoscheduledAlignment);
  }
  return d;
}

}  // namespace

Result<std::vector<Device>> FindDevices(const DriverTable& cu) {
  CUPLEX_TRY_DRIVER(cu, cuInit, 0);
  int count = 0;
  CUPLEX_TRY_DRIVER(cu, cuDeviceGetCount, &count);
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    TRY(Device d, Ask(cu, i));
    devices.push_back(std::move(d));
  }
  return devices;
}

}  // namespace cuplex::server
