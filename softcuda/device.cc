#include "softcuda/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>

#include <fmt/format.h>

#include "softcuda/context.h"
#include "softcuda/green_context.h"
#include "softcuda/memory_map.h"
#include "softcuda/pool.h"

namespace cuplex::softcuda {
namespace {

// The same on every run on this machine, and different from every other machine's and device's.
std::array<char, 16> MakeUuid(int ordinal) {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  std::array<char, 16> uuid;
  uint64_t halves[2];
  for (int i = 0; i < 2; ++i) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (unsigned char c : fmt::format("softcuda {} {} {}", machine, ordinal, i)) {
      hash = (hash ^ c) * 0x100000001b3;
    }
    halves[i] = hash;
  }
  std::memcpy(uuid.data(), halves, 16);
  return uuid;
}

}  // namespace

Device::Device(int ordinal, const Settings& settings)
    : ordinal(ordinal),
      name(fmt::format("cuplex softcuda {}.{}", settings.capability_major, settings.capability_minor)),
      capability_major(settings.capability_major),
      capability_minor(settings.capability_minor),
      multiprocessors(settings.multiprocessors),
      memory_bytes(settings.memory_bytes),
      uuid(MakeUuid(ordinal)),
      threads_(settings.workers) {}

bool Device::Charge(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > memory_bytes - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void Device::Refund(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

Status Device::Start(AddressWindow& window) {
  std::lock_guard guard(start_lock_);
  if (whole_) return {};
  window_ = &window;
  TRY(whole_, Partition::Start(multiprocessors, {threads_, 1}, window));
  return {};
}

Result<std::unique_ptr<Partition>> Device::MakePart(unsigned count) const {
  return Partition::Start(count, Partition::ThreadsFor(count, multiprocessors, threads_), *window_);
}

Result<Partition*> Device::Part(const Partition::Set& which) {
  if (which.count() == multiprocessors) return whole_.get();
  std::lock_guard guard(parts_lock_);
  for (auto& [set, part] : named_parts_)
    if (set == which) return part.get();
  TRY(auto made, MakePart(static_cast<unsigned>(which.count())));
  named_parts_.emplace_back(which, std::move(made));
  return named_parts_.back().second.get();
}

Result<Partition*> Device::TakePart(unsigned count) {
  std::lock_guard guard(parts_lock_);
  auto at =
      std::ranges::find_if(free_parts_, [&](const auto& part) { return part->multiprocessors == count; });
  if (at != free_parts_.end()) {
    own_parts_.push_back(std::move(*at));
    free_parts_.erase(at);
  } else {
    TRY(auto made, MakePart(count));
    own_parts_.push_back(std::move(made));
  }
  return own_parts_.back().get();
}

void Device::GivePart(Partition* part) {
  std::lock_guard guard(parts_lock_);
  auto at = std::ranges::find_if(own_parts_, [&](const auto& own) { return own.get() == part; });
  free_parts_.push_back(std::move(*at));
  own_parts_.erase(at);
}

Ref<Resources> Device::Describe(HandleTable<Resources>& table, const Partition::Set& set) {
  std::lock_guard guard(parts_lock_);
  auto known = std::ranges::find_if(described_, [&](const auto& each) { return each->set == set; });
  if (known != described_.end()) return *known;
  Ref<Resources> made = table.Make(this, *this, set);
  if (made) described_.push_back(made);
  return made;
}

std::string Device::PciBusId() const { return fmt::format("0000:{:02x}:00.0", ordinal + 1); }

uint32_t Device::SharedPerMultiprocessor() const {
  unsigned capability = capability_major * 10 + capability_minor;
  if (capability >= 120 || capability == 86 || capability == 89) return 100u << 10;
  if (capability >= 90) return 228u << 10;
  if (capability >= 80) return 164u << 10;
  if (capability == 75) return 64u << 10;
  return 96u << 10;
}

uint32_t Device::MaxSharedOptIn() const {
  // From 8.0 on a block leaves 1 KiB of the multiprocessor's to the system.
  uint32_t all = SharedPerMultiprocessor();
  return std::min(capability_major >= 8 ? all - 1024 : all, kMaxShared);
}

uint32_t Device::ThreadsPerMultiprocessor() const {
  unsigned capability = capability_major * 10 + capability_minor;
  if (capability == 75) return 1024;
  if (capability >= 120 || capability == 86 || capability == 89 || capability == 87) return 1536;
  return 2048;
}

uint32_t Device::BlocksPerMultiprocessor() const {
  unsigned capability = capability_major * 10 + capability_minor;
  if (capability == 75 || capability == 86) return 16;
  if (capability >= 120 || capability == 89) return 24;
  return 32;
}

std::optional<int> Device::Attribute(CUdevice_attribute attribute) const {
  constexpr int kKhz = 1'000'000;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return kMaxThreadsPerBlock;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return kMaxStaticShared;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return static_cast<int>(MaxSharedOptIn());
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return static_cast<int>(SharedPerMultiprocessor());
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return capability_major >= 8 ? 1024 : 0;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return kWarpSize;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return kKhz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 128;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
      return 131072;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
      return 16384;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:
      return 32768;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
      return 2046;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
      return 1 << 28;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
      return 65000;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
      return 2097120;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(multiprocessors);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return static_cast<int>(ThreadsPerMultiprocessor());
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return static_cast<int>(BlocksPerMultiprocessor());
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(capability_major);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(capability_minor);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return ordinal + 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      return CU_MEM_HANDLE_TYPE_NONE;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return -1;

    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      return 1;
    default:
      // What is left is absent, or a size of something that is: peers, clusters, ...
      if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
      return 0;
  }
}

}  // namespace cuplex::softcuda
