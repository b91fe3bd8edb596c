// Runtime: the one root object of libcudart: the driver underneath, the contexts the runtime works in, and
// what the program registered. Any thread, also before main and while the process exits.
//
// A thread enters before it calls the driver: `Enter` sees to it that the process may call (it has not forked
// since, and is not exiting), that the driver is open, and that a context is current: the one the program
// made current through the driver API, else the primary context of the thread's device. Where nothing changed
// since the thread's last call, that is one atomic load and one driver call.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "client/runtime/address_table.h"
#include "client/runtime/image.h"
#include "client/runtime/runtime_types.h"
#include "client/runtime/thread.h"
#include "cuda/driver_table.h"

/// Passes an error up.
#define RUNTIME_TRY(expr)                                                      \
  do {                                                                         \
    if (cudaError_t try_error = (expr); try_error != cudaSuccess) [[unlikely]] \
      return try_error;                                                        \
  } while (0)

namespace cuplex::runtime {

/// A driver context the runtime works in.
struct Context {
  CUcontext handle = nullptr;
  unsigned long long id = 0;  // the driver's number for it, never used twice; 0 where the driver has none
  int device = 0;
  int slot = 0;
};

/// A thread that may call the driver, and where it is.
struct Entered {
  const DriverTable* driver;
  Context* context;
};

class Runtime {
 public:
  /// Opens the driver, the first time it is needed. The table must outlive the process's last call.
  using OpenTable = std::function<Result<const DriverTable*>()>;
  explicit Runtime(OpenTable open);

  /// For calls on the current device.
  cudaError_t Enter(Entered* entered) {
    const DriverTable* driver = ready_.load(std::memory_order_acquire);
    if (driver) [[likely]] {
      CUcontext now = nullptr;
      CUresult result = driver->cuCtxGetCurrent(&now);
      if (result == CUDA_SUCCESS && now && now == this_thread.current) [[likely]] {
        *entered = {driver, this_thread.context};
        return cudaSuccess;
      }
    }
    return EnterSlowly(entered);
  }

  /// For calls that need the driver but no context.
  cudaError_t EnterDriver(const DriverTable** driver);

  /// Makes `device`'s primary context current to this thread.
  cudaError_t SetDevice(int device);
  /// The device of the current context, else the one the thread chose; makes no context.
  int CurrentDevice();
  /// `device`'s primary context, retained once for the process.
  cudaError_t PrimaryContext(const DriverTable& driver, int device, CUcontext* handle);
  /// Destroys the primary context of the current device with everything in it.
  cudaError_t ResetDevice();

  // Registration.
  Image* Register(const void* wrapper);
  void Register(Image* image, std::unique_ptr<Kernel> kernel);
  void Register(Image* image, std::unique_ptr<Variable> variable);
  void Unregister(Image* image);
  /// A kernel of a cudaLibrary_t, so that launches and attributes take it; forgotten with `library`.
  void Adopt(CUlibrary library, CUkernel kernel);
  void Forget(CUlibrary library);
  /// Gives the program the addresses of the image's __managed__ variables.
  cudaError_t PlaceManaged(const Entered& in, Image* image);

  /// The kernel that a host address, or a handle of ours or of a library, stands for; null for anything else.
  Kernel* FindKernel(const void* address) const { return kernels_.Find(address); }
  cudaError_t FunctionOf(const Entered& in, Kernel& kernel, CUfunction* function) {
    *function = kernel.functions[in.context->slot].load(std::memory_order_acquire);
    return *function ? cudaSuccess : LoadFunction(in, kernel, function);
  }
  /// The host address, or else the handle, that stands for the kernel with this function in the current
  /// context.
  const void* HostOf(const Entered& in, CUfunction function);
  /// Where a registered variable lies in the current context.
  cudaError_t AddressOf(const Entered& in, const void* symbol, CUdeviceptr* address, size_t* bytes);
  /// The kernel as a context-independent handle of the driver.
  cudaError_t LibraryKernelOf(const Entered& in, const void* function, CUkernel* kernel);

  // The process.
  void LeaveAtExit() { End(cudaErrorCudartUnloading); }
  void LeaveAtFork() { End(cudaErrorInitializationError); }

 private:
  cudaError_t EnterSlowly(Entered* entered);
  cudaError_t OpenLocked(const DriverTable** driver);
  cudaError_t PrimaryLocked(const DriverTable& driver, int device, CUcontext* handle);
  cudaError_t KnowLocked(const DriverTable& driver, CUcontext handle, Context** context);
  void EmptySlot(int slot);
  cudaError_t LoadFunction(const Entered& in, Kernel& kernel, CUfunction* function);
  cudaError_t LoadLocked(const Entered& in, Image& image, CUmodule* module);
  cudaError_t PlaceLocked(const Entered& in, Variable& variable, CUdeviceptr* address, size_t* bytes);
  void End(cudaError_t answer);

  const OpenTable open_;
  std::atomic<const DriverTable*> ready_{
      nullptr};                                  // the driver, opened and initialised; null again at the end
  std::atomic<cudaError_t> ended_{cudaSuccess};  // what every call answers from then on

  std::mutex contexts_mutex_;  // taken before images_mutex_ where both are
  const DriverTable* opened_ = nullptr;
  bool unopenable_ = false;
  std::unordered_map<int, CUcontext> primaries_;
  std::array<Context, kContextSlots> contexts_;

  std::mutex images_mutex_;
  std::unordered_map<Image*, std::unique_ptr<Image>> images_;
  std::unordered_map<CUlibrary, std::vector<std::unique_ptr<Kernel>>> adopted_;
  AddressTable<Kernel> kernels_;
  AddressTable<Variable> variables_;
};

/// The process's runtime; libcudart's own (root.cc) opens libcuda.so.1, a test's opens a mock.
Runtime& Root();

inline cudaError_t AsError(CUresult result) { return FromDriver(result); }
inline cudaError_t AsError(cudaError_t error) { return error; }

/// Calls `f(driver)` with a context current. `f` answers a CUresult or a cudaError_t.
template <typename F>
cudaError_t InContext(F&& f) {
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  return AsError(f(*in.driver));
}

/// Calls `f(entered)` with a context current.
template <typename F>
cudaError_t WhereEntered(F&& f) {
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  return AsError(f(in));
}

/// Calls `f(driver)`, perhaps without a context.
template <typename F>
cudaError_t InDriver(F&& f) {
  const DriverTable* driver;
  RUNTIME_TRY(Root().EnterDriver(&driver));
  return AsError(f(*driver));
}

/// Calls `f(driver, function)` for the kernel that `address` stands for.
template <typename F>
cudaError_t WithFunction(const void* address, F&& f) {
  Kernel* kernel = Root().FindKernel(address);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  CUfunction function;
  RUNTIME_TRY(Root().FunctionOf(in, *kernel, &function));
  return AsError(f(*in.driver, function));
}

inline CUdeviceptr Device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cuplex::runtime
