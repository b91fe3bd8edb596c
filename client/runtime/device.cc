// Devices: which one a thread works on, and what can be set for it.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

/// The driver's number for one of the devices; the runtime counts them alike.
cudaError_t DeviceNumbered(const DriverTable& cu, int device, CUdevice* number) {
  int count = 0;
  RUNTIME_TRY(FromDriver(cu.cuDeviceGetCount(&count)));
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  return FromDriver(cu.cuDeviceGet(number, device));
}

}  // namespace

cudaError_t GetDeviceCount(int* count) {
  if (!count) return cudaErrorInvalidValue;
  *count = 0;
  return InDriver([&](const DriverTable& cu) {
    RUNTIME_TRY(FromDriver(cu.cuDeviceGetCount(count)));
    return *count ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t GetDevice(int* device) {
  if (!device) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable&) {
    *device = Root().CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t SetDevice(int device) { return Root().SetDevice(device); }

cudaError_t InitDevice(int device, unsigned int device_flags, unsigned int flags) {
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    RUNTIME_TRY(DeviceNumbered(cu, device, &number));
    if (flags & 1) RUNTIME_TRY(FromDriver(cu.cuDevicePrimaryCtxSetFlags_v2(number, device_flags)));
    CUcontext primary;
    return Root().PrimaryContext(cu, device, &primary);
  });
}

// The thread goes on with the first device of the list; the runtime has no need of the others as it never
// looks for one.
cudaError_t SetValidDevices(int* devices, int count) {
  if (count == 0) return cudaSuccess;
  if (!devices || count < 0) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    for (int i = 0; i < count; ++i) RUNTIME_TRY(DeviceNumbered(cu, devices[i], &number));
    this_thread.device = devices[0];
    return cudaSuccess;
  });
}

cudaError_t GetDeviceFlags(unsigned int* flags) {
  if (!flags) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    int active;
    RUNTIME_TRY(DeviceNumbered(cu, Root().CurrentDevice(), &number));
    return FromDriver(cu.cuDevicePrimaryCtxGetState(number, flags, &active));
  });
}

cudaError_t SetDeviceFlags(unsigned int flags) {
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    RUNTIME_TRY(DeviceNumbered(cu, Root().CurrentDevice(), &number));
    return FromDriver(cu.cuDevicePrimaryCtxSetFlags_v2(number, flags));
  });
}

cudaError_t DeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    RUNTIME_TRY(DeviceNumbered(cu, device, &number));
    return FromDriver(cu.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), number));
  });
}

cudaError_t DeviceSynchronize() {
  return InContext([](const DriverTable& cu) { return cu.cuCtxSynchronize(); });
}

cudaError_t DeviceReset() { return Root().ResetDevice(); }

cudaError_t DeviceGetLimit(size_t* value, cudaLimit limit) {
  if (!value) return cudaErrorInvalidValue;
  return InContext(
      [&](const DriverTable& cu) { return cu.cuCtxGetLimit(value, static_cast<CUlimit>(limit)); });
}

cudaError_t DeviceSetLimit(cudaLimit limit, size_t value) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

cudaError_t DeviceGetCacheConfig(cudaFuncCache* config) {
  if (!config) return cudaErrorInvalidValue;
  return InContext(
      [&](const DriverTable& cu) { return cu.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)); });
}

cudaError_t DeviceSetCacheConfig(cudaFuncCache config) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)); });
}

cudaError_t DeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (!config) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    return cu.cuCtxGetSharedMemConfig(reinterpret_cast<CUsharedconfig*>(config));
  });
}

cudaError_t DeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(config)); });
}

cudaError_t DeviceGetByPCIBusId(int* device, const char* bus_id) {
  if (!device || !bus_id) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) { return cu.cuDeviceGetByPCIBusId(device, bus_id); });
}

cudaError_t DeviceGetPCIBusId(char* bus_id, int length, int device) {
  if (!bus_id || length <= 0) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice number;
    RUNTIME_TRY(DeviceNumbered(cu, device, &number));
    return FromDriver(cu.cuDeviceGetPCIBusId(bus_id, length, number));
  });
}

cudaError_t DeviceCanAccessPeer(int* can, int device, int peer) {
  if (!can) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice from, to;
    RUNTIME_TRY(DeviceNumbered(cu, device, &from));
    RUNTIME_TRY(DeviceNumbered(cu, peer, &to));
    return FromDriver(cu.cuDeviceCanAccessPeer(can, from, to));
  });
}

cudaError_t DeviceEnablePeerAccess(int peer, unsigned int flags) {
  return InContext([&](const DriverTable& cu) {
    CUcontext context;
    RUNTIME_TRY(Root().PrimaryContext(cu, peer, &context));
    return FromDriver(cu.cuCtxEnablePeerAccess(context, flags));
  });
}

cudaError_t DeviceDisablePeerAccess(int peer) {
  return InContext([&](const DriverTable& cu) {
    CUcontext context;
    RUNTIME_TRY(Root().PrimaryContext(cu, peer, &context));
    return FromDriver(cu.cuCtxDisablePeerAccess(context));
  });
}

cudaError_t DeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  if (!value) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdevice from, to;
    RUNTIME_TRY(DeviceNumbered(cu, source, &from));
    RUNTIME_TRY(DeviceNumbered(cu, destination, &to));
    return FromDriver(
        cu.cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
  });
}

#if CUPLEX_CUDART_MAJOR == 12  // names from before a program had more than one thread
cudaError_t ThreadExit() { return DeviceReset(); }
cudaError_t ThreadSynchronize() { return DeviceSynchronize(); }
cudaError_t ThreadGetLimit(size_t* value, cudaLimit limit) { return DeviceGetLimit(value, limit); }
cudaError_t ThreadSetLimit(cudaLimit limit, size_t value) { return DeviceSetLimit(limit, value); }
cudaError_t ThreadGetCacheConfig(cudaFuncCache* config) { return DeviceGetCacheConfig(config); }
cudaError_t ThreadSetCacheConfig(cudaFuncCache config) { return DeviceSetCacheConfig(config); }

// Every device has doubles now, so nothing is converted.
cudaError_t SetDoubleForDevice(double*) { return cudaSuccess; }
cudaError_t SetDoubleForHost(double*) { return cudaSuccess; }
#endif

}  // namespace cuplex::runtime
