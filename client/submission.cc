#include "client/submission.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <sched.h>
#include <unistd.h>

#include "protocol/calls_generated.h"

namespace cuplex::client {
namespace {

constexpr int kFewestSpins = 64;
constexpr int kMostSpins = 2000;  // some tens of microseconds
constexpr int64_t kLookAgainNs = 100'000'000;

/// Spinning for a server that needs this very processor only delays it.
int MostSpins() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1 ? kMostSpins : 0;
}

constexpr bool Blocks(Op op) {
  return op == Op::cuCtxSynchronize || op == Op::cuStreamSynchronize || op == Op::cuEventSynchronize;
}

bool Spin(SlotHeader* slot, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (IsDone(slot)) return true;
    SpinPause();
  }
  return false;
}

}  // namespace

Submission::Submission(const Segment& segment, int doorbell, const std::atomic<bool>& gone)
    : segment_(segment),
      header_(segment.header()),
      doorbell_(doorbell),
      gone_(gone),
      slots_(segment.geometry().slot_count),
      most_spins_(MostSpins()),
      blocking_spins_(most_spins_),
      writer_(segment) {}

std::byte* Submission::AwaitRoom(std::unique_lock<std::mutex>& lock, uint32_t bytes) {
  while (true) {
    const uint64_t seen = writer_.seen_head();
    lock.unlock();
    RingWriter::AwaitSpace(header_, seen, kLookAgainNs);
    lock.lock();
    if (gone_.load(std::memory_order_acquire)) return nullptr;
    if (std::byte* at = writer_.Begin(bytes)) return at;
  }
}

void Submission::RingDoorbell() {
  const uint64_t one = 1;
  // It can fail only where the counter is full, and then the server wakes anyway.
  [[maybe_unused]] ssize_t n = write(doorbell_, &one, sizeof(one));
}

uint32_t Submission::ClaimSlot() {
  while (true) {
    const uint32_t slot = slots_.Claim();
    if (slot != SlotPool::kNoFree || gone_.load(std::memory_order_acquire)) return slot;
    const timespec pause{0, 50'000};  // as many threads wait as there are slots
    nanosleep(&pause, nullptr);
  }
}

void Submission::Learn(bool soon) {
  const int spins = blocking_spins_.load(std::memory_order_relaxed);
  const int next = soon ? spins * 2 : std::max(spins / 2, kFewestSpins);
  blocking_spins_.store(std::min(next, most_spins_), std::memory_order_relaxed);
}

void Submission::TakeText() {
  std::lock_guard lock(text_mutex_);
  while (header_->text_waiting.load(std::memory_order_acquire)) {
    wire::wireTakeTextReply reply;
    const wire::wireTakeTextArgs args(SlotCapacity(segment_) - sizeof(reply));
    std::string text;
    if (Ask(Op::wireTakeText, 0, args, &reply, {}, &text) || text.empty()) return;
    std::fwrite(text.data(), 1, text.size(), reply.stream() == 2 ? stderr : stdout);
    if (!reply.more()) return;
  }
}

CUresult Submission::Exchange(Op op, uint32_t context, const void* args, size_t args_bytes,
                              std::span<const std::byte> in, void* reply, size_t reply_bytes,
                              std::string* out) {
  const uint32_t index = ClaimSlot();
  if (index == SlotPool::kNoFree) return kServerGone;
  SlotHeader* slot = SlotAt(segment_, index);
  ArmSlot(slot);
  const uint32_t bytes = FrameBytes(args_bytes + in.size());
  bool asleep;
  {
    std::unique_lock lock(mutex_);
    std::byte* at = Room(lock, bytes);
    if (!at) return kServerGone;
    WriteHead(at, bytes, op, index, context, args, args_bytes);
    if (!in.empty()) std::memcpy(at + sizeof(FrameHeader) + args_bytes, in.data(), in.size());
    asleep = writer_.Commit(bytes, /*urgent=*/true);
  }
  if (asleep) RingDoorbell();

  // A synchronize may take long: it spins only as long as that has been worth it of late.
  const int spins = Blocks(op) ? blocking_spins_.load(std::memory_order_relaxed) : most_spins_;
  const bool soon = Spin(slot, spins);
  if (Blocks(op)) Learn(soon);
  if (!soon && !AwaitSlot(slot, 0, gone_)) return kServerGone;  // the slot stays taken: a reply may yet come
  const CUresult result = static_cast<CUresult>(slot->result);
  const size_t got = std::min<size_t>(slot->bytes, SlotCapacity(segment_));
  if (got >= reply_bytes) std::memcpy(reply, SlotPayload(slot), reply_bytes);
  if (out && got > reply_bytes)
    out->assign(reinterpret_cast<const char*>(SlotPayload(slot)) + reply_bytes, got - reply_bytes);
  slot->state.store(SlotHeader::kIdle, std::memory_order_relaxed);
  slots_.Free(index);
  if (op != Op::wireTakeText) PrintText();
  return result == CUDA_SUCCESS && got < reply_bytes ? CUDA_ERROR_UNKNOWN : result;
}

}  // namespace cuplex::client
