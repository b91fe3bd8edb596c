#include "tests/fault/raw_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "protocol/frame.h"
#include "protocol/session_generated.h"
#include "protocol/session_socket.h"
#include "protocol/staging.h"

namespace cuplex::fault {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<std::byte> HelloBytes(uint8_t oldest, uint8_t newest) {
  flatbuffers::FlatBufferBuilder b;
  const auto hello = wire::CreateHelloDirect(b, oldest, newest, "0", "raw");
  wire::FinishSessionMessageBuffer(b, wire::CreateSessionMessage(b, wire::SessionBody::Hello, hello.Union()));
  const auto* bytes = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {bytes, bytes + b.GetSize()};
}

Result<RawSession> RawSession::Attach(const std::string& socket_path) {
  TRY(UniqueFd socket, ConnectSession(socket_path));
  TRY(SendPacket(socket.get(), HelloBytes(kProtocolVersion, kProtocolVersion), {}));
  TRY(SessionPacket packet, ReceivePacket(socket.get(), 10'000));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(packet.bytes.data()), packet.bytes.size());
  if (!wire::VerifySessionMessageBuffer(verifier))
    return Fail(Blame::kOurs, "The server's answer is no message.");
  const auto* message = wire::GetSessionMessage(packet.bytes.data());
  if (const auto* refusal = message->body_as_Refusal())
    return Fail(Blame::kRefused, "{}",
                refusal->sentence() ? refusal->sentence()->string_view() : "no sentence");
  const auto* welcome = message->body_as_Welcome();
  if (!welcome || packet.fds.size() != 2 || !welcome->devices() || welcome->devices()->size() == 0)
    return Fail(Blame::kOurs, "The server's answer is no whole Welcome.");
  SegmentGeometry sizes;
  sizes.ring_bytes = welcome->ring_bytes();
  sizes.slot_count = welcome->slot_count();
  sizes.slot_bytes = welcome->slot_bytes();
  sizes.block_count = welcome->block_count();
  sizes.block_bytes = welcome->block_bytes();
  TRY(Segment segment, Segment::Map(std::move(packet.fds[0]), sizes.Laid()));
  RawSession session(std::move(socket), std::move(packet.fds[1]), std::move(segment));
  session.arena_ = welcome->devices()->Get(0)->arena_base();
  session.arena_bytes_ = welcome->devices()->Get(0)->arena_bytes();
  return session;
}

std::vector<std::byte> RawSession::Frame(Op op, uint32_t slot, uint32_t context,
                                         std::span<const std::byte> args, std::span<const std::byte> span) {
  FrameHeader header;
  header.bytes = static_cast<uint32_t>((sizeof(header) + args.size() + span.size() + 7) / 8 * 8);
  header.op = static_cast<uint16_t>(op);
  header.slot = slot;
  header.context = context;
  std::vector<std::byte> frame(header.bytes);
  memcpy(frame.data(), &header, sizeof(header));
  memcpy(frame.data() + sizeof(header), args.data(), args.size());
  if (!span.empty()) memcpy(frame.data() + sizeof(header) + args.size(), span.data(), span.size());
  return frame;
}

void RawSession::Submit(std::span<const std::byte> bytes) {
  const SegmentGeometry& g = segment_.geometry();
  const auto until = steady_clock::now() + std::chrono::seconds(10);
  while (tail_ + bytes.size() - segment_.header()->ring_head.load() > g.ring_bytes) {
    if (ended() || steady_clock::now() > until) return;
    SpinPause();
  }
  memcpy(segment_.ring() + (tail_ & (g.ring_bytes - 1)), bytes.data(), bytes.size());
  SetTail(tail_ + bytes.size());
}

void RawSession::SetTail(uint64_t tail) {
  tail_ = tail;
  segment_.header()->ring_tail.store(tail);
  if (segment_.header()->server_asleep.exchange(0)) Ring();
}

void RawSession::Ring() {
  const uint64_t one = 1;
  (void)!write(doorbell_.get(), &one, sizeof(one));
}

CUresult RawSession::Await(std::span<const std::byte> frame, std::span<std::byte> reply) {
  SlotHeader* slot = SlotAt(segment_, kSlot);
  slot->state.store(SlotHeader::kWaiting);
  Submit(frame);
  const auto until = steady_clock::now() + std::chrono::seconds(10);
  while (slot->state.load() != SlotHeader::kDone) {
    if (ended() || steady_clock::now() > until) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    SpinPause();
  }
  memcpy(reply.data(), SlotPayload(slot), std::min<size_t>(reply.size(), slot->bytes));
  return static_cast<CUresult>(slot->result);
}

bool RawSession::EndsWithin(milliseconds time) {
  const auto until = steady_clock::now() + time;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    pollfd p{socket_.get(), POLLIN | POLLRDHUP, 0};
    const int ready = poll(&p, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR))) return true;
    if (ready > 0) (void)ReceivePacket(socket_.get(), 0);  // pinned memory, or a farewell
    if (ready <= 0 && steady_clock::now() >= until) return false;
  }
}

CUresult RawSession::TakeDeferred() {
  return static_cast<CUresult>(segment_.header()->deferred_error.exchange(0));
}

CUresult RawSession::Begin(uint32_t context) {
  return Call(Op::wireContextCreate, 0, wire::wireContextCreateArgs(context, 0, 0));
}

CUresult RawSession::Alloc(uint32_t context, uint64_t bytes, uint64_t* address) {
  wire::cuMemAlloc_v2Reply reply;
  const CUresult code = Call(Op::cuMemAlloc_v2, context, wire::cuMemAlloc_v2Args(bytes), &reply);
  *address = reply.dptr();
  return code;
}

CUresult RawSession::Synchronize(uint32_t context) {
  return Call(Op::cuCtxSynchronize, context, wire::cuCtxSynchronizeArgs());
}

CUresult RawSession::Read(uint32_t context, uint64_t from, std::span<std::byte> to) {
  StagingBlock* block = BlockAt(segment_, 0);
  block->state.store(StagingBlock::kInFlight);
  OneWay(Op::wireCopy, context, wire::wireCopyArgs(0, from, to.size(), kLegacyStream, 2));
  const auto until = steady_clock::now() + std::chrono::seconds(10);
  while (block->state.load() == StagingBlock::kInFlight) {
    if (ended() || steady_clock::now() > until) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    SpinPause();
  }
  memcpy(to.data(), segment_.staging(), to.size());
  const auto code = static_cast<CUresult>(block->result);
  block->state.store(StagingBlock::kFree);
  return code;
}

std::pair<uint64_t, uint64_t> RawSession::Send(uint32_t context, std::string_view bytes) {
  constexpr size_t kPieceBytes = 32 << 10;
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  wire::wireImageOfferReply reply{};
  const wire::wireImageOfferArgs offer(hash.low64, hash.high64, bytes.size());
  if (Call(Op::wireImageOffer, context, offer, &reply) || reply.known()) return {hash.low64, hash.high64};
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = std::as_bytes(std::span(bytes)).subspan(at, std::min(kPieceBytes, bytes.size() - at));
    OneWay(Op::wireImageWrite, context,
           wire::wireImageWriteArgs(hash.low64, hash.high64, at, static_cast<uint32_t>(piece.size())), piece);
  }
  return {hash.low64, hash.high64};
}

CUresult RawSession::Load(uint32_t context, std::string_view ptx, Handle module, std::string_view name,
                          Handle function) {
  const auto [low, high] = Send(context, ptx);
  if (CUresult code = Call(Op::wireModuleLoad, context, wire::wireModuleLoadArgs(module, low, high, 1000)))
    return code;
  wire::wireModuleFunctionReply reply;
  return Call(Op::wireModuleFunction, context,
              wire::wireModuleFunctionArgs(module, function, static_cast<uint32_t>(name.size()), 4000),
              &reply, std::as_bytes(std::span(name)));
}

void RawSession::Fill(uint32_t context, uint64_t at, uint64_t bytes, uint8_t value) {
  OneWay(Op::wireFill, context, wire::wireFillArgs(at, 0, bytes, 1, kLegacyStream, value, 1));
}

}  // namespace cuplex::fault
