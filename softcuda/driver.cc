#include "softcuda/driver.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/log.h"

namespace cuplex::softcuda {
namespace {

std::atomic<Driver*> running{nullptr};
std::atomic<bool> forked{false};
std::mutex start_lock;

// The threads that the devices had are not in the child.
void AfterForkInChild() {
  if (running.exchange(nullptr)) forked.store(true);
}

// Null where code is not to be kept, or cannot be: that costs time and nothing else.
std::unique_ptr<CodeCache> OpenCache(const Settings& settings) {
  if (settings.cache_folder.empty()) return nullptr;
  auto cache = CodeCache::Open(settings.cache_folder, settings.cache_bytes);
  if (cache.ok()) return *std::move(cache);
  Log().log(settings.cache_folder_given ? spdlog::level::warn : spdlog::level::debug, "{}",
            cache.error().sentence);
  return nullptr;
}

}  // namespace

std::atomic<Driver::TextReceiver*> Driver::text_receiver{nullptr};

Result<std::unique_ptr<Driver>> Driver::Make(const Settings& settings) {
  WindowLayout layout;
  layout.base = settings.window_base;
  TRY(auto window, AddressWindow::Reserve(layout));
  std::unique_ptr<Driver> driver(new Driver(settings, std::move(window), OpenCache(settings)));
  for (unsigned i = 0; i < settings.devices; ++i) {
    auto device = std::make_unique<Device>(static_cast<int>(i), settings);
    device->default_pool = device->current_pool = driver->pools.Make(nullptr, *device);
    driver->devices.push_back(std::move(device));
  }
  return driver;
}

Driver* RunningDriver() { return running.load(std::memory_order_acquire); }

CUresult StartDriver() {
  std::lock_guard lock(start_lock);
  if (forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
  if (running.load()) return CUDA_SUCCESS;
  MakeLog("softcuda", spdlog::level::warn);
  long pages = sysconf(_SC_PHYS_PAGES), processors = sysconf(_SC_NPROCESSORS_ONLN);
  auto settings =
      ReadSettings([](const char* name) { return secure_getenv(name); },
                   processors > 0 ? static_cast<unsigned>(processors) : 1,
                   pages > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))
                             : uint64_t{1} << 30);
  if (!settings.ok()) {
    Log().error("{}", settings.error().sentence);
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto driver = Driver::Make(*settings);
  if (!driver.ok()) {
    Log().error("{}", driver.error().sentence);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  running.store(driver->release(), std::memory_order_release);
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
