#include "client/snapshot.h"

#include <algorithm>
#include <cstring>

#include "protocol/frame.h"
#include "protocol/session_generated.h"

namespace cuplex::client {
namespace {

std::string TextOf(const flatbuffers::String* s) { return s ? s->str() : std::string(); }

/// What a device may offer and this library does not carry: programs that ask first take another way.
constexpr CUdevice_attribute kNotCarried[] = {
    // a program's own pages are not shared with the server
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    // calls that are refused, see docs/api.md
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
    CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
    CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
};

DeviceSnapshot ReadDevice(const wire::Device& d) {
  DeviceSnapshot out;
  out.name = TextOf(d.name());
  if (d.uuid())
    std::memcpy(out.uuid.data(), d.uuid()->data(), std::min<size_t>(d.uuid()->size(), out.uuid.size()));
  out.pci_bus_id = TextOf(d.pci_bus_id());
  out.total_memory = d.total_memory();
  out.compute_major = d.compute_major();
  out.compute_minor = d.compute_minor();
  out.priority_least = d.priority_least();
  out.priority_greatest = d.priority_greatest();
  if (d.attributes())
    for (const wire::DeviceAttribute* a : *d.attributes()) out.attributes[a->id()] = a->value();
  for (CUdevice_attribute a : kNotCarried)
    if (auto it = out.attributes.find(a); it != out.attributes.end()) it->second = 0;
  out.arena = {d.arena_base(), d.arena_bytes()};
  auto limit = [&](CUdevice_attribute a, uint32_t& value) {
    if (const int v = out.AttributeOr(a, 0); v > 0) value = static_cast<uint32_t>(v);
  };
  limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, out.limits.threads);
  limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, out.limits.block[0]);
  limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, out.limits.block[1]);
  limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, out.limits.block[2]);
  limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, out.limits.grid[0]);
  limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, out.limits.grid[1]);
  limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, out.limits.grid[2]);
  return out;
}

}  // namespace

std::vector<std::byte> WriteHello(const std::string& program) {
  flatbuffers::FlatBufferBuilder b;
  auto version = b.CreateString(CUPLEX_VERSION);
  auto name = b.CreateString(program);
  auto hello = wire::CreateHello(b, kProtocolVersion, kProtocolVersion, version, name);
  wire::FinishSessionMessageBuffer(b, wire::CreateSessionMessage(b, wire::SessionBody::Hello, hello.Union()));
  const auto* bytes = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {bytes, bytes + b.GetSize()};
}

Result<Snapshot> ReadWelcome(std::span<const std::byte> packet) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(packet.data()), packet.size());
  if (!wire::VerifySessionMessageBuffer(verifier))
    return Fail(Blame::kSystem, "the server answered {} bytes that are no message of a session.",
                packet.size());
  const wire::SessionMessage* message = wire::GetSessionMessage(packet.data());
  if (const wire::Refusal* refusal = message->body_as_Refusal()) {
    Error e = Fail(Blame::kRefused, "the server refused: {}", TextOf(refusal->sentence()));
    e.driver_code = refusal->code();
    return e;
  }
  const wire::Welcome* w = message->body_as_Welcome();
  if (!w)
    return Fail(Blame::kSystem,
                "the server answered message {} to a Hello, a Welcome or Refusal was expected.",
                static_cast<int>(message->body_type()));
  if (w->protocol() != kProtocolVersion)
    return Fail(Blame::kUnsupported, "the server speaks protocol version {}, this library version {}.",
                w->protocol(), kProtocolVersion);
  Snapshot s;
  s.driver_version = w->driver_version();
  s.server_version = TextOf(w->server_version());
  s.tenant = TextOf(w->tenant());
  SegmentGeometry sizes;
  sizes.slot_count = w->slot_count();
  sizes.slot_bytes = w->slot_bytes();
  sizes.block_count = w->block_count();
  sizes.block_bytes = w->block_bytes();
  sizes.ring_bytes = w->ring_bytes();
  s.geometry = sizes.Laid();
  s.host_window = {w->host_window_base(), w->host_window_bytes()};
  if (w->devices())
    for (const wire::Device* d : *w->devices()) s.devices.push_back(ReadDevice(*d));
  return s;
}

}  // namespace cuplex::client
