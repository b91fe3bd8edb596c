// The submission ring: frames from one client process to the server, in the order its threads agreed on.
//
// RingWriter: the client, one thread at a time (its caller holds a lock). RingReader: the server's session
// thread. Positions count bytes ever written and taken; the ring is mapped twice, so a frame is always in one
// piece.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/futex.h"
#include "base/other_process.h"
#include "base/result.h"
#include "protocol/frame.h"
#include "protocol/segment.h"

namespace cuplex {

class RingWriter {
 public:
  explicit RingWriter(const Segment& s)
      : header_(s.header()), ring_(s.ring()), size_(s.geometry().ring_bytes) {}

  /// Where a frame of `bytes` (a multiple of 8, at most kMaxFrameBytes) can be written, or nullptr while the
  /// ring is full.
  std::byte* Begin(uint32_t bytes) {
    if (tail_ + bytes - head_ > size_) {
      head_ = header_->ring_head.load(std::memory_order_acquire);
      if (tail_ + bytes - head_ > size_) return nullptr;
    }
    return ring_ + (tail_ & (size_ - 1));
  }

  /// Publishes the frame at Begin. True where the server sleeps and must be rung. `urgent`: somebody waits
  /// for it.
  [[nodiscard]] bool Commit(uint32_t bytes, bool urgent) {
    tail_ += bytes;
    BeforeHandingOver();
    header_->ring_tail.store(
        tail_, std::memory_order_seq_cst);  // before the load below, as the server's are the other way round
    const uint32_t asleep = header_->server_asleep.load(std::memory_order_seq_cst);
    if (asleep == 0) return false;
    if (asleep == SegmentHeader::kNaps && !urgent &&
        tail_ - header_->ring_head.load(std::memory_order_relaxed) <= size_ / 2) {
      return false;
    }
    return header_->server_asleep.exchange(0, std::memory_order_acq_rel) != 0;
  }

  /// Waits a while for space: until the server has taken something, at most `timeout_ns`. Without the
  /// caller's lock.
  static void AwaitSpace(SegmentHeader* header, uint64_t seen_head, int64_t timeout_ns) {
    header->space_wanted.store(1, std::memory_order_seq_cst);
    if (header->ring_head.load(std::memory_order_seq_cst) != seen_head) return;
    FutexWait(&header->space_wanted, 1, timeout_ns);
  }
  uint64_t seen_head() const { return head_; }

 private:
  SegmentHeader* header_;
  std::byte* ring_;
  uint32_t size_;
  uint64_t tail_ = 0;
  uint64_t head_ = 0;
};

class RingReader {
 public:
  explicit RingReader(const Segment& s)
      : header_(s.header()), ring_(s.ring()), size_(s.geometry().ring_bytes) {}

  bool Empty() const { return header_->ring_tail.load(std::memory_order_seq_cst) == head_; }

  /// The next frame, copied into private memory that is good until the next call; nullopt where there is
  /// none. Errors: the client wrote nonsense, and nothing behind it can be trusted.
  Result<std::optional<std::span<const std::byte>>> Next() {
    const uint64_t tail = header_->ring_tail.load(std::memory_order_acquire);
    if (tail == head_) return std::optional<std::span<const std::byte>>();
    const uint64_t there = tail - head_;
    if (there > size_ || there < sizeof(FrameHeader))
      return Fail(Blame::kCaller, "the ring says it holds {} bytes, {} to {} were expected.", there,
                  sizeof(FrameHeader), size_);
    const std::byte* at = ring_ + (head_ & (size_ - 1));
    uint32_t bytes;
    std::memcpy(&bytes, at, sizeof(bytes));
    if (bytes < sizeof(FrameHeader) || bytes > kMaxFrameBytes || bytes % 8 != 0 || bytes > there)
      return Fail(
          Blame::kCaller,
          "a frame says it has {} bytes, a multiple of 8 from {} to {} was expected, with {} in the ring.",
          bytes, sizeof(FrameHeader), kMaxFrameBytes, there);
    if (copy_.size() < bytes) copy_.resize(kMaxFrameBytes);
    std::memcpy(copy_.data(), at, bytes);
    std::memcpy(copy_.data(), &bytes,
                sizeof(bytes));  // the length that was checked, whatever stands there by now
    head_ += bytes;
    return std::optional(std::span<const std::byte>(copy_.data(), bytes));
  }

  /// Gives the space of all frames taken so far back to the client. One that sleeps for want of space is
  /// woken when half of the ring is free: woken earlier it would soon sleep again, at the cost of two system
  /// calls each time.
  void Release() {
    header_->ring_head.store(head_, std::memory_order_seq_cst);
    if (header_->space_wanted.load(std::memory_order_seq_cst) != 0 &&
        header_->ring_tail.load(std::memory_order_relaxed) - head_ <= size_ / 2) {
      header_->space_wanted.store(0, std::memory_order_release);
      FutexWake(&header_->space_wanted, 1 << 20);
    }
  }

  /// Says that the reader sleeps. Where this returns false there is work already, and the reader must not
  /// sleep. `naps`: it wakes soon by itself, and what nobody waits for can wait until then.
  bool Sleep(bool naps = false) {
    header_->server_asleep.store(naps ? SegmentHeader::kNaps : SegmentHeader::kAsleep,
                                 std::memory_order_seq_cst);
    if (Empty()) return true;
    header_->server_asleep.store(0, std::memory_order_relaxed);
    return false;
  }
  void Wake() { header_->server_asleep.store(0, std::memory_order_relaxed); }

 private:
  SegmentHeader* header_;
  std::byte* ring_;
  uint32_t size_;
  uint64_t head_ = 0;
  std::vector<std::byte> copy_;
};

}  // namespace cuplex
