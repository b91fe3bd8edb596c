// Devices: everything from the snapshot taken at attach.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "client/exports.h"

namespace cuplex::client {
namespace {

/// Copies a name into a program's buffer, cut to fit, always ended by NUL.
CUresult CopyName(std::string_view name, char* out, int bytes) {
  if (!out || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t n = std::min<size_t>(name.size(), static_cast<size_t>(bytes) - 1);
  std::memcpy(out, name.data(), n);
  out[n] = '\0';
  return CUDA_SUCCESS;
}

/// "0000:3B:00.0" and "3b:00.0" name one place: domain, bus, device, function.
bool SamePlace(const std::string& a, const char* b) {
  auto read = [](const char* text, unsigned(&place)[4]) {
    place[3] = 0;
    if (std::sscanf(text, "%x:%x:%x.%x", &place[0], &place[1], &place[2], &place[3]) >= 3) return true;
    place[0] = 0;
    return std::sscanf(text, "%x:%x.%x", &place[1], &place[2], &place[3]) == 3;
  };
  unsigned left[4], right[4];
  return read(a.c_str(), left) && read(b, right) && std::equal(left, left + 4, right);
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuDeviceGetCount(int* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  *count = static_cast<int>(session->snapshot().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, ordinal)) return r;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return CopyName(session->device(dev).name, name, len);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  std::memcpy(uuid->bytes, session->device(dev).uuid.data(), sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid_v2(uuid, dev); }

CUresult cuDeviceGetLuid(char*, unsigned int*, CUdevice dev) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return CUDA_ERROR_NOT_SUPPORTED;  // LUIDs are a Windows matter
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  *bytes = session->device(dev).total_memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  size_t all;
  if (CUresult r = cuDeviceTotalMem_v2(&all, dev)) return r;
  *bytes = static_cast<unsigned>(std::min<size_t>(all, UINT32_MAX));
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  *major = session->device(dev).compute_major;
  *minor = session->device(dev).compute_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  auto value = session->device(dev).Attribute(attrib);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  *pi = *value;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  const DeviceSnapshot& d = session->device(dev);
  auto value = [&](CUdevice_attribute a) { return d.AttributeOr(a, 0); };
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
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return CopyName(session->device(dev).pci_bus_id, pciBusId, len);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  if (!dev || !pciBusId) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  for (int d = 0; session->HasDevice(d); ++d)
    if (SamePlace(session->device(d).pci_bus_id, pciBusId)) {
      *dev = d;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice dev, CUdevice peer) {
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  if (!session->HasDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice src, CUdevice dst) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, src)) return r;
  if (!session->HasDevice(dst) || src == dst) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  *pi = 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
