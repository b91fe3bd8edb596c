// Submission: how this process's threads put calls into the ring and get replies. Any thread.
//
// A one-way call costs one short lock, no allocation, and a system call only where the server sleeps or the
// ring is full. The order in which threads get the lock is the order in which the server sees their calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <string>

#include "cuda/driver_types.h"
#include "protocol/frame.h"
#include "protocol/ops.h"
#include "protocol/ring.h"
#include "protocol/segment.h"
#include "protocol/slot.h"

namespace cuplex::client {

/// The code of every call once the server is gone.
inline constexpr CUresult kServerGone = CUDA_ERROR_MPS_RPC_FAILURE;

class Submission {
 public:
  /// The segment, the doorbell (an eventfd) and `gone` (set by whoever learns that the server hung up)
  /// outlive it.
  Submission(const Segment& segment, int doorbell, const std::atomic<bool>& gone);

  /// Submits a one-way call; `fill(std::byte*)` writes the `data_bytes` bytes of its span where they travel.
  template <typename Args, typename Fill>
  CUresult Post(Op op, uint32_t context, const Args& args, uint32_t data_bytes, Fill fill) {
    const uint32_t bytes = FrameBytes(sizeof(Args) + data_bytes);
    std::unique_lock lock(mutex_);
    std::byte* at = Room(lock, bytes);
    if (!at) return kServerGone;
    WriteHead(at, bytes, op, kNoSlot, context, &args, sizeof(Args));
    fill(at + sizeof(FrameHeader) + sizeof(Args));
    const bool asleep = writer_.Commit(bytes, /*urgent=*/op == Op::wireHostFuncDone);
    lock.unlock();
    if (asleep) RingDoorbell();
    return CUDA_SUCCESS;
  }
  template <typename Args>
  CUresult Post(Op op, uint32_t context, const Args& args) {
    return Post(op, context, args, 0, [](std::byte*) {});
  }

  /// Submits a call and waits for its reply. `in` is its span, if it has one that goes in; `out` takes the
  /// bytes behind the reply's fixed part, also where the code is an error.
  template <typename Args, typename Reply>
  CUresult Ask(Op op, uint32_t context, const Args& args, Reply* reply, std::span<const std::byte> in = {},
               std::string* out = nullptr) {
    return Exchange(op, context, &args, sizeof(Args), in, reply, sizeof(Reply), out);
  }

  /// The code of a fault that every call answers; CUDA_SUCCESS where there is none.
  CUresult Sticky() {
    const auto code = static_cast<CUresult>(header_->sticky_error.load(std::memory_order_relaxed));
    if (code) [[unlikely]]
      PrintText();
    return code;
  }
  /// The first failure of a one-way call that nobody was told of yet; tells it once.
  CUresult TakeDeferred() {
    PrintText();
    if (header_->deferred_error.load(std::memory_order_relaxed) == 0) [[likely]]
      return CUDA_SUCCESS;
    return static_cast<CUresult>(header_->deferred_error.exchange(0, std::memory_order_acq_rel));
  }

  /// Writes what kernels have printed to this process's standard output and error, where the server says that
  /// there is something: it does when it answers what has waited for the kernels.
  void PrintText() {
    if (header_->text_waiting.load(std::memory_order_acquire)) [[unlikely]]
      TakeText();
  }

 private:
  void TakeText();
  static constexpr uint32_t FrameBytes(size_t body) {
    return static_cast<uint32_t>((sizeof(FrameHeader) + body + 7) & ~size_t{7});
  }
  static void WriteHead(std::byte* at, uint32_t bytes, Op op, uint32_t slot, uint32_t context,
                        const void* args, size_t args_bytes) {
    const FrameHeader header{bytes, static_cast<uint16_t>(op), kProtocolVersion, 0, slot, context};
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + sizeof(header), args, args_bytes);
  }
  std::byte* Room(std::unique_lock<std::mutex>& lock, uint32_t bytes) {
    if (gone_.load(std::memory_order_relaxed)) return nullptr;
    std::byte* at = writer_.Begin(bytes);
    return at ? at : AwaitRoom(lock, bytes);
  }
  std::byte* AwaitRoom(std::unique_lock<std::mutex>& lock, uint32_t bytes);
  void RingDoorbell();
  uint32_t ClaimSlot();
  void Learn(bool soon);
  CUresult Exchange(Op op, uint32_t context, const void* args, size_t args_bytes,
                    std::span<const std::byte> in, void* reply, size_t reply_bytes, std::string* out);

  const Segment& segment_;
  SegmentHeader* const header_;
  const int doorbell_;
  const std::atomic<bool>& gone_;
  SlotPool slots_;
  const int most_spins_;
  std::atomic<int> blocking_spins_;  // before a synchronize sleeps; learned
  std::mutex text_mutex_;            // keeps the order of what kernels have printed
  alignas(64) std::mutex mutex_;     // guards writer_
  RingWriter writer_;
};

}  // namespace cuplex::client
