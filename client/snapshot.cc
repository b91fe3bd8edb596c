#include "client/snapshot.h"

#include <algorithm>
#include <cstring>

#include "protocol/frame.h"
#include "protocol/session_generated.h"

namespace cuplex::client {
namespace {

std::string TextOf(const flatbuffers::String* s) { return s ? s->str() : std::string(); }

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
