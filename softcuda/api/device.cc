// Devices: what they are called and what they can do.
#include <cstring>
#include <string>

#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.DeviceAt(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.devices.size());
    return CUDA_SUCCESS;
  });
}

namespace {

// As much of the text as fits, and always a NUL.
CUresult PutText(char* to, int size, const std::string& text) {
  if (!to || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  size_t n = std::min(text.size(), static_cast<size_t>(size) - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) { return PutText(name, len, device.name); });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(uuid->bytes, device.uuid.data(), sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid(uuid, dev); }

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.memory_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = static_cast<unsigned>(std::min<uint64_t>(device.memory_bytes, UINT32_MAX));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    auto value = device.Attribute(attrib);
    if (!pi || !value) return CUDA_ERROR_INVALID_VALUE;
    *pi = *value;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = static_cast<int>(device.capability_major);
    *minor = static_cast<int>(device.capability_minor);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!prop) return CUDA_ERROR_INVALID_VALUE;
    auto value = [&](CUdevice_attribute attribute) { return device.Attribute(attribute).value_or(0); };
    *prop = {};
    prop->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop->maxThreadsDim[0] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    prop->maxThreadsDim[1] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    prop->maxThreadsDim[2] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    prop->maxGridSize[0] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    prop->maxGridSize[1] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    prop->maxGridSize[2] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    prop->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) { return PutText(pciBusId, len, device.PciBusId()); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!dev || !pciBusId) return CUDA_ERROR_INVALID_VALUE;
    for (auto& device : driver.devices) {
      std::string id = device->PciBusId();
      // The domain and the function may be left out.
      for (const std::string& form : {id, id.substr(5), id.substr(0, id.size() - 2), id.substr(5, 5)}) {
        if (strcasecmp(form.c_str(), pciBusId)) continue;
        *dev = device->ordinal;
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return OnDevice(dev, [&](Device&) {
    return OnDevice(peerDev, [&](Device&) -> CUresult {
      if (!canAccessPeer) return CUDA_ERROR_INVALID_VALUE;
      *canAccessPeer = 0;
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
  return OnDevice(srcDevice, [&](Device&) {
    return OnDevice(dstDevice, [&](Device&) -> CUresult {
      if (srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
      if (!value || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
          attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      *value = 0;
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev) {
  return OnDevice(dev, [&](Device&) -> CUresult {
    if (!pi || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    *pi = 1;
    return CUDA_SUCCESS;
  });
}
