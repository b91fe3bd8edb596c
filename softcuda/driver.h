// Driver: the one object of this process that holds all others: the address window, memory, devices and the
// tables of handles. cuInit makes it and it is never destroyed, since programs call the driver from exit
// handlers and its threads run to the end. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cuda/driver_types.h"
#include "softcuda/array.h"
#include "softcuda/context.h"
#include "softcuda/device.h"
#include "softcuda/event.h"
#include "softcuda/graph/graphs.h"
#include "softcuda/green_context.h"
#include "softcuda/handles.h"
#include "softcuda/image.h"
#include "softcuda/jit/code_cache.h"
#include "softcuda/memory_map.h"
#include "softcuda/module.h"
#include "softcuda/pool.h"
#include "softcuda/settings.h"
#include "softcuda/texture_reference.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

class Driver {
 public:
  static Result<std::unique_ptr<Driver>> Make(const Settings& settings);

  const Settings settings;
  const std::unique_ptr<AddressWindow> window;
  const std::unique_ptr<CodeCache> cache;  // null where no code is kept

  HandleTable<Context> contexts{4096};
  HandleTable<Stream> streams;
  HandleTable<Event> events;
  HandleTable<LoadedModule> modules;
  HandleTable<Function> functions;
  HandleTable<LoadedLibrary> libraries;
  HandleTable<LibraryKernel> kernels;
  HandleTable<PendingLink> links{4096};
  HandleTable<Pool> pools{4096};
  HandleTable<Physical> physicals;
  HandleTable<Array> arrays;
  HandleTable<MipmappedArray> mipmapped_arrays;
  HandleTable<TextureReference> texture_references;
  HandleTable<GreenContext> green_contexts{4096};
  HandleTable<Resources> resources{4096};  // described for green contexts

  Graphs graphs;
  MemoryMap memory;
  std::vector<std::unique_ptr<Device>> devices;

  /// Who gets what kernels print; null: the process's own streams. Set before the first context is made.
  struct TextReceiver {
    DeviceTextReceiver* receive = nullptr;
    void* user = nullptr;
  };
  static std::atomic<TextReceiver*> text_receiver;

  /// A number that no other object of this process has.
  uint64_t NextId() { return ids_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Null where there is no device of that number.
  Device* DeviceAt(CUdevice device) const {
    return device >= 0 && static_cast<size_t>(device) < devices.size() ? devices[device].get() : nullptr;
  }

 private:
  Driver(const Settings& settings, std::unique_ptr<AddressWindow> window, std::unique_ptr<CodeCache> cache)
      : settings(settings), window(std::move(window)), cache(std::move(cache)), memory(*this) {}

  std::atomic<uint64_t> ids_{0};
};

/// The process's driver; null before cuInit succeeded, and in a child after fork.
Driver* RunningDriver();

/// Makes the process's driver where there is none yet.
CUresult StartDriver();

}  // namespace cuplex::softcuda
