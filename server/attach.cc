#include "server/attach.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include <sys/eventfd.h>

#include "base/log.h"
#include "policies/match.h"
#include "protocol/session_generated.h"
#include "server/driver_call.h"

#ifndef CUPLEX_VERSION
#define CUPLEX_VERSION "0"
#endif

namespace cuplex::server {
namespace {

using flatbuffers::FlatBufferBuilder;

std::vector<std::byte> Packet(FlatBufferBuilder& builder, wire::SessionBody kind,
                              flatbuffers::Offset<void> body) {
  wire::FinishSessionMessageBuffer(builder, wire::CreateSessionMessage(builder, kind, body));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

Error Refusal(metrics::Rejection reason, metrics::Metrics& metrics, Error error) {
  metrics.server().Reject(reason);
  return error;
}

// `multiprocessors`: those that are the tenant's alone; 0: all.
flatbuffers::Offset<wire::Device> Describe(FlatBufferBuilder& builder, const Device& device,
                                           const Holding& holding, unsigned multiprocessors) {
  std::vector<wire::DeviceAttribute> attributes;
  for (auto [id, value] : device.attributes) {
    const bool count = id == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT && multiprocessors;
    attributes.emplace_back(id, count ? static_cast<int>(multiprocessors) : value);
  }
  auto name = builder.CreateString(device.name);
  auto uuid = builder.CreateVector(device.uuid.data(), device.uuid.size());
  auto bus = builder.CreateString(device.pci_bus_id);
  auto list = builder.CreateVectorOfStructs(attributes);
  return wire::CreateDevice(builder, name, uuid, bus, holding.limit(), device.compute_major,
                            device.compute_minor, 0, 0, list, holding.arena->base(), holding.arena->bytes());
}

}  // namespace

std::string CgroupOf(int pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return {};
}

void Attach::Refuse(int connection, CUresult code, const std::string& sentence) {
  FlatBufferBuilder builder;
  auto body = wire::CreateRefusalDirect(builder, static_cast<int>(code), sentence.c_str());
  (void)SendPacket(connection, Packet(builder, wire::SessionBody::Refusal, body.Union()), {});
}

Result<Attach::Admitted> Attach::Answer(UniqueFd connection, const policies::Policy& policy,
                                        const std::string& path, std::function<void(Session&)> ended) {
  auto admitted = Admit(connection, policy, path, std::move(ended));
  if (!admitted.ok() && admitted.error().blame != Blame::kGone)
    Refuse(connection.get(), CodeOf(admitted.error()), admitted.error().sentence);
  return admitted;
}

Result<Attach::Admitted> Attach::Admit(UniqueFd& connection, const policies::Policy& policy,
                                       const std::string& path, std::function<void(Session&)> ended) {
  metrics::Metrics& metrics = house_.metrics;
  auto packet = ReceivePacket(connection.get(), 0);
  if (!packet.ok()) {
    if (packet.error().blame == Blame::kGone) return packet.error();
    return Refusal(metrics::Rejection::kProtocol, metrics, packet.error());
  }
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(packet->bytes.data()), packet->bytes.size(),
                                 16, 64);
  const wire::Hello* hello = nullptr;
  if (packet->bytes.size() >= 8 && wire::VerifySessionMessageBuffer(verifier))
    hello = wire::GetSessionMessage(packet->bytes.data())->body_as_Hello();
  if (!hello)
    return Refusal(metrics::Rejection::kProtocol, metrics,
                   Fail(Blame::kCaller, "The first packet, of {} bytes, is no Hello of a cuplex client.",
                        packet->bytes.size()));
  if (hello->protocol_oldest() > kProtocolVersion || hello->protocol_newest() < kProtocolVersion)
    return Refusal(
        metrics::Rejection::kProtocol, metrics,
        Fail(Blame::kUnsupported,
             "The client speaks protocol versions {} to {}, this server ({}) version {}.",
             hello->protocol_oldest(), hello->protocol_newest(), CUPLEX_VERSION, kProtocolVersion));
  TRY(PeerCredentials peer, SessionPeer(connection.get()));
  const policies::Peer asks{peer.uid, peer.gid, peer.pid, CgroupOf(peer.pid), path};
  auto terms = policies::Recognise(policy, asks);
  if (!terms.ok()) return Refusal(metrics::Rejection::kUnknown, metrics, terms.error());
  auto part = std::find(parts_.begin(), parts_.end(), false);
  if (part == parts_.end())
    return Refusal(
        metrics::Rejection::kBusy, metrics,
        Fail(Blame::kExhausted, "The server has {} sessions, which is as many as it takes.", kMostSessions));
  TRY(Tenant * tenant, house_.TenantFor(**terms));
  for (size_t d : tenant->sees) {
    Holding& holding = *tenant->holdings[d];
    if (holding.arena) continue;
    TRY(holding.arena, Arena::Reserve(house_.cu, house_.devices[d], holding.limit()));
  }
  TRY(Segment segment, Segment::Create(SegmentGeometry{}.Laid()));
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell) return FailErrno(errno, "cannot make a doorbell");

  int driver_version = 0;
  CUPLEX_TRY_DRIVER(house_.cu, cuDriverGetVersion, &driver_version);
  const AddressSpace window(window_.Part(static_cast<uint64_t>(part - parts_.begin())),
                            window_.session_bytes);
  FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Device>> devices;
  for (size_t d : tenant->sees)
    devices.push_back(
        Describe(builder, house_.devices[d], *tenant->holdings[d], house_.MultiprocessorsOf(*tenant, d)));
  const SegmentGeometry& g = segment.geometry();
  auto welcome = wire::CreateWelcomeDirect(
      builder, kProtocolVersion, CUPLEX_VERSION, tenant->name.c_str(), driver_version, g.slot_count,
      g.slot_bytes, g.block_count, g.block_bytes, g.ring_bytes, window.base(), window.bytes(), &devices);
  const int fds[] = {segment.fd(), doorbell.get()};
  TRY(SendPacket(connection.get(), Packet(builder, wire::SessionBody::Welcome, welcome.Union()), fds));

  const std::string program = hello->program() ? hello->program()->str().substr(0, 256) : "";
  Log().info("Process {} ({}), uid {}, is a client of {}.", peer.pid, program, peer.uid, tenant->name);
  *part = true;
  return Admitted{
      std::make_unique<Session>(house_, *tenant, Session::Client{peer, program}, std::move(segment),
                                std::move(connection), window, std::move(ended)),
      std::move(doorbell)};
}

void Attach::Release(const Session& session) {
  parts_[(session.host_window() - window_.base) / window_.session_bytes] = false;
}

}  // namespace cuplex::server
