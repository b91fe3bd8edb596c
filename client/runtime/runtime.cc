#include "client/runtime/runtime.h"

#include <fmt/format.h>

#include "client/runtime/notice.h"

namespace cuplex::runtime {

thread_local constinit Thread this_thread{};

Runtime::Runtime(OpenTable open) : open_(std::move(open)) {}

void Runtime::End(cudaError_t answer) {
  ended_.store(answer, std::memory_order_release);
  ready_.store(nullptr, std::memory_order_release);
}

cudaError_t Runtime::OpenLocked(const DriverTable** driver) {
  if (cudaError_t ended = ended_.load(std::memory_order_acquire); ended != cudaSuccess) return ended;
  if (!opened_) {
    if (unopenable_) return cudaErrorInsufficientDriver;
    auto table = open_();
    if (!table.ok()) {
      unopenable_ = true;
      Tell(table.error().sentence);
      return cudaErrorInsufficientDriver;
    }
    opened_ = *table;
  }
  if (!ready_.load(std::memory_order_relaxed)) {
    RUNTIME_TRY(FromDriver(opened_->cuInit(0)));
    ready_.store(opened_, std::memory_order_release);
  }
  *driver = opened_;
  return cudaSuccess;
}

cudaError_t Runtime::EnterDriver(const DriverTable** driver) {
  *driver = ready_.load(std::memory_order_acquire);
  if (*driver) return cudaSuccess;
  if (cudaError_t ended = ended_.load(std::memory_order_acquire); ended != cudaSuccess) return ended;
  std::lock_guard lock(contexts_mutex_);
  return OpenLocked(driver);
}

cudaError_t Runtime::EnterSlowly(Entered* entered) {
  // Before the lock: after a fork another thread of the parent may hold it for ever.
  if (cudaError_t ended = ended_.load(std::memory_order_acquire); ended != cudaSuccess) return ended;
  std::lock_guard lock(contexts_mutex_);
  const DriverTable* driver;
  RUNTIME_TRY(OpenLocked(&driver));
  CUcontext now = nullptr;
  RUNTIME_TRY(FromDriver(driver->cuCtxGetCurrent(&now)));
  if (!now) {
    RUNTIME_TRY(PrimaryLocked(*driver, this_thread.device, &now));
    RUNTIME_TRY(FromDriver(driver->cuCtxSetCurrent(now)));
  }
  Context* context;
  RUNTIME_TRY(KnowLocked(*driver, now, &context));
  this_thread.current = now;
  this_thread.context = context;
  *entered = {driver, context};
  return cudaSuccess;
}

cudaError_t Runtime::PrimaryContext(const DriverTable& driver, int device, CUcontext* handle) {
  std::lock_guard lock(contexts_mutex_);
  return PrimaryLocked(driver, device, handle);
}

cudaError_t Runtime::PrimaryLocked(const DriverTable& driver, int device, CUcontext* handle) {
  if (auto known = primaries_.find(device); known != primaries_.end()) {
    *handle = known->second;
    return cudaSuccess;
  }
  CUdevice number;
  RUNTIME_TRY(FromDriver(driver.cuDeviceGet(&number, device)));
  RUNTIME_TRY(FromDriver(driver.cuDevicePrimaryCtxRetain(handle, number)));
  primaries_[device] = *handle;
  return cudaSuccess;
}

// A context's address may come back for another context after the program destroyed the first; the driver's
// id tells.
cudaError_t Runtime::KnowLocked(const DriverTable& driver, CUcontext handle, Context** context) {
  unsigned long long id = 0;
  if (driver.cuCtxGetId(handle, &id) != CUDA_SUCCESS) id = 0;
  Context* unused = nullptr;
  for (Context& known : contexts_) {
    if (known.handle == handle) {
      if (known.id != id) {
        EmptySlot(known.slot);
        known.id = id;
      }
      *context = &known;
      return cudaSuccess;
    }
    if (!known.handle && !unused) unused = &known;
  }
  if (!unused) {
    TellOnce("contexts",
             fmt::format(
                 "The program uses more than {} contexts with the runtime API, which this libcudart does not "
                 "serve; the call answers cudaErrorIncompatibleDriverContext.",
                 kContextSlots));
    return cudaErrorIncompatibleDriverContext;
  }
  CUdevice device;
  RUNTIME_TRY(FromDriver(driver.cuCtxGetDevice(&device)));
  *unused = {handle, id, device, static_cast<int>(unused - contexts_.data())};
  *context = unused;
  return cudaSuccess;
}

cudaError_t Runtime::SetDevice(int device) {
  const DriverTable* driver;
  RUNTIME_TRY(EnterDriver(&driver));
  int count = 0;
  RUNTIME_TRY(FromDriver(driver->cuDeviceGetCount(&count)));
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  CUcontext primary;
  RUNTIME_TRY(PrimaryContext(*driver, device, &primary));
  RUNTIME_TRY(FromDriver(driver->cuCtxSetCurrent(primary)));
  this_thread.device = device;
  Entered in;
  return Enter(&in);
}

int Runtime::CurrentDevice() {
  const DriverTable* driver = ready_.load(std::memory_order_acquire);
  if (!driver) return this_thread.device;
  CUcontext now = nullptr;
  if (driver->cuCtxGetCurrent(&now) != CUDA_SUCCESS || !now) return this_thread.device;
  if (now == this_thread.current) return this_thread.context->device;
  CUdevice device;
  return driver->cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : this_thread.device;
}

cudaError_t Runtime::ResetDevice() {
  const DriverTable* driver;
  RUNTIME_TRY(EnterDriver(&driver));
  int device = CurrentDevice();
  std::lock_guard lock(contexts_mutex_);
  auto primary = primaries_.find(device);
  if (primary == primaries_.end()) return cudaSuccess;  // nothing was made yet
  CUdevice number;
  RUNTIME_TRY(FromDriver(driver->cuDeviceGet(&number, device)));
  RUNTIME_TRY(FromDriver(driver->cuDevicePrimaryCtxReset_v2(number)));
  for (Context& known : contexts_) {
    if (known.handle != primary->second) continue;
    EmptySlot(known.slot);
    known.handle = nullptr;
  }
  primaries_.erase(primary);
  this_thread.current = nullptr;
  this_thread.context = nullptr;
  return FromDriver(driver->cuCtxSetCurrent(nullptr));
}

/// Forgets the handles of a context that is gone; they went with it.
void Runtime::EmptySlot(int slot) {
  std::lock_guard lock(images_mutex_);
  for (auto& [key, image] : images_) {
    image->modules[slot] = nullptr;
    for (auto& kernel : image->kernels) kernel->functions[slot].store(nullptr, std::memory_order_release);
    for (auto& variable : image->variables) variable->addresses[slot].store(0, std::memory_order_release);
  }
}

Image* Runtime::Register(const void* wrapper) {
  std::unique_ptr<Image> image = ReadImage(wrapper);
  if (!image->defect.empty()) Tell(image->defect);
  Image* key = image.get();
  std::lock_guard lock(images_mutex_);
  images_[key] = std::move(image);
  return key;
}

void Runtime::Register(Image* image, std::unique_ptr<Kernel> kernel) {
  std::lock_guard lock(images_mutex_);
  kernel->image = image;
  kernels_.Insert(kernel->host, kernel.get());
  kernels_.Insert(kernel.get(), kernel.get());  // handles that __cudaGetKernel gave out
  image->kernels.push_back(std::move(kernel));
}

void Runtime::Register(Image* image, std::unique_ptr<Variable> variable) {
  std::lock_guard lock(images_mutex_);
  variable->image = image;
  variables_.Insert(variable->host, variable.get());
  image->variables.push_back(std::move(variable));
}

void Runtime::Unregister(Image* image) {
  // At the end of the process other threads may still be launching, and the driver may be gone: let
  // everything lie.
  if (ended_.load(std::memory_order_acquire) != cudaSuccess) return;
  std::unique_lock contexts_lock(contexts_mutex_);
  std::unique_lock images_lock(images_mutex_);
  auto found = images_.find(image);
  if (found == images_.end()) return;
  std::unique_ptr<Image> gone = std::move(found->second);
  images_.erase(found);
  for (auto& kernel : gone->kernels) {
    if (kernels_.Find(kernel->host) == kernel.get()) kernels_.Erase(kernel->host);
    kernels_.Erase(kernel.get());
  }
  for (auto& variable : gone->variables)
    if (variables_.Find(variable->host) == variable.get()) variables_.Erase(variable->host);
  images_lock.unlock();

  const DriverTable* driver = ready_.load(std::memory_order_acquire);
  if (!driver) return;
  CUcontext before = nullptr;
  if (driver->cuCtxGetCurrent(&before) != CUDA_SUCCESS) return;
  bool moved = false;
  for (const Context& context : contexts_) {
    CUmodule module = gone->modules[context.slot];
    if (!context.handle || !module || driver->cuCtxSetCurrent(context.handle) != CUDA_SUCCESS) continue;
    moved = true;
    (void)driver->cuModuleUnload(module);  // an error here has nobody left to go to
  }
  if (gone->library) (void)driver->cuLibraryUnload(gone->library);
  if (moved) (void)driver->cuCtxSetCurrent(before);
}

void Runtime::Adopt(CUlibrary library, CUkernel handle) {
  std::lock_guard lock(images_mutex_);
  if (kernels_.Find(handle)) return;
  auto kernel = std::make_unique<Kernel>();
  kernel->host = handle;
  // The driver takes a CUkernel wherever it takes a CUfunction, in whatever context is current.
  for (auto& function : kernel->functions)
    function.store(reinterpret_cast<CUfunction>(handle), std::memory_order_relaxed);
  kernels_.Insert(handle, kernel.get());
  adopted_[library].push_back(std::move(kernel));
}

void Runtime::Forget(CUlibrary library) {
  std::lock_guard lock(images_mutex_);
  auto found = adopted_.find(library);
  if (found == adopted_.end()) return;
  for (auto& kernel : found->second) kernels_.Erase(kernel->host);
  adopted_.erase(found);
}

cudaError_t Runtime::LoadLocked(const Entered& in, Image& image, CUmodule* module) {
  *module = image.modules[in.context->slot];
  if (*module) return cudaSuccess;
  if (!image.container) return cudaErrorInvalidKernelImage;
  CUresult result = in.driver->cuModuleLoadData(module, image.container);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU && image.linked)
    TellOnce(
        "linked",
        "The program's device code was linked by nvcc -rdc=true, which leaves machine code alone, and this "
        "device "
        "runs none of it; PTX of several files is not linked by this libcudart. Build without -rdc=true.");
  RUNTIME_TRY(FromDriver(result));
  image.modules[in.context->slot] = *module;
  return cudaSuccess;
}

cudaError_t Runtime::LoadFunction(const Entered& in, Kernel& kernel, CUfunction* function) {
  std::lock_guard lock(images_mutex_);
  auto& slot = kernel.functions[in.context->slot];
  *function = slot.load(std::memory_order_acquire);
  if (*function) return cudaSuccess;
  CUmodule module;
  RUNTIME_TRY(LoadLocked(in, *kernel.image, &module));
  CUresult result = in.driver->cuModuleGetFunction(function, module, kernel.name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  RUNTIME_TRY(FromDriver(result));
  slot.store(*function, std::memory_order_release);
  return cudaSuccess;
}

const void* Runtime::HostOf(const Entered& in, CUfunction function) {
  std::lock_guard lock(images_mutex_);
  for (const auto& [key, image] : images_)
    for (const auto& kernel : image->kernels)
      if (kernel->functions[in.context->slot].load(std::memory_order_acquire) == function)
        return kernel->host;
  return function;
}

cudaError_t Runtime::AddressOf(const Entered& in, const void* symbol, CUdeviceptr* address, size_t* bytes) {
  Variable* variable = variables_.Find(symbol);
  if (!variable) return cudaErrorInvalidSymbol;
  *bytes = variable->bytes;
  *address = variable->addresses[in.context->slot].load(std::memory_order_acquire);
  if (*address) return cudaSuccess;
  std::lock_guard lock(images_mutex_);
  return PlaceLocked(in, *variable, address, bytes);
}

cudaError_t Runtime::PlaceLocked(const Entered& in, Variable& variable, CUdeviceptr* address, size_t* bytes) {
  CUmodule module;
  RUNTIME_TRY(LoadLocked(in, *variable.image, &module));
  CUresult result = in.driver->cuModuleGetGlobal_v2(address, bytes, module, variable.name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidSymbol;
  RUNTIME_TRY(FromDriver(result));
  if (variable.bytes) *bytes = variable.bytes;
  variable.addresses[in.context->slot].store(*address, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t Runtime::PlaceManaged(const Entered& in, Image* image) {
  std::lock_guard lock(images_mutex_);
  for (auto& variable : image->variables) {
    if (!variable->managed) continue;
    CUdeviceptr address;
    size_t bytes;
    RUNTIME_TRY(PlaceLocked(in, *variable, &address, &bytes));
    // The host reads the variable at its device address, so it must be memory that both can reach.
    unsigned int managed = 0;
    CUresult result = in.driver->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    if (result != CUDA_SUCCESS || !managed) {
      TellOnce(variable->name, fmt::format("The __managed__ variable {} lies at {:#x}, which the driver does "
                                           "not report as managed memory; "
                                           "the host cannot use it.",
                                           variable->name, address));
      return cudaErrorNotSupported;
    }
    *variable->managed = Pointer(address);
  }
  return cudaSuccess;
}

cudaError_t Runtime::LibraryKernelOf(const Entered& in, const void* function, CUkernel* handle) {
  Kernel* kernel = kernels_.Find(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  if (!kernel->image) {
    *handle = reinterpret_cast<CUkernel>(const_cast<void*>(kernel->host));
    return cudaSuccess;
  }
  CUlibrary library;
  {
    std::lock_guard lock(images_mutex_);
    Image& image = *kernel->image;
    if (!image.container) return cudaErrorInvalidKernelImage;
    if (!image.library)
      RUNTIME_TRY(FromDriver(in.driver->cuLibraryLoadData(&image.library, image.container, nullptr, nullptr,
                                                          0, nullptr, nullptr, 0)));
    library = image.library;
    RUNTIME_TRY(FromDriver(in.driver->cuLibraryGetKernel(handle, library, kernel->name.c_str())));
  }
  Adopt(library, *handle);
  return cudaSuccess;
}

}  // namespace cuplex::runtime
