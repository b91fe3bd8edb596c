// RawSession: a client that speaks the wire itself, and so can say what the client library never would. One
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cuda/driver_types.h"
#include "protocol/handle.h"
#include "protocol/ops.h"
#include "protocol/ring.h"
#include "protocol/segment.h"
#include "protocol/slot.h"

namespace cuplex::fault {

/// A Hello that offers these versions, whole.
std::vector<std::byte> HelloBytes(uint8_t oldest, uint8_t newest);

class RawSession {
 public:
  /// Errors carry the server's sentence where it refused.
  static Result<RawSession> Attach(const std::string& socket_path);

  const Segment& segment() const { return segment_; }
  int socket() const { return socket_.get(); }
  uint64_t arena() const { return arena_; }
  uint64_t arena_bytes() const { return arena_bytes_; }

  /// What comes next in the ring, as it is; the length in it need not be that of `bytes`.
  void Submit(std::span<const std::byte> bytes);
  /// Stores the ring's tail and rings, whatever has been written.
  void SetTail(uint64_t tail);

  /// The frame of a call: header, `args`, span.
  template <typename Args>
  static std::vector<std::byte> Frame(Op op, uint32_t slot, uint32_t context, const Args& args,
                                      std::span<const std::byte> span = {}) {
    return Frame(op, slot, context, std::as_bytes(std::span(&args, 1)), span);
  }
  static std::vector<std::byte> Frame(Op op, uint32_t slot, uint32_t context, std::span<const std::byte> args,
                                      std::span<const std::byte> span);

  template <typename Args>
  void OneWay(Op op, uint32_t context, const Args& args, std::span<const std::byte> span = {}) {
    Submit(Frame(op, kNoSlot, context, args, span));
  }
  /// A call and its reply; CUDA_ERROR_DEVICE_UNAVAILABLE where the session ended or nothing came for ten
  /// seconds.
  template <typename Args, typename Reply>
  CUresult Call(Op op, uint32_t context, const Args& args, Reply* reply,
                std::span<const std::byte> span = {}) {
    return Await(Frame(op, kSlot, context, args, span), std::as_writable_bytes(std::span(reply, 1)));
  }
  template <typename Args>
  CUresult Call(Op op, uint32_t context, const Args& args) {
    return Await(Frame(op, kSlot, context, args), {});
  }

  /// The server hung up, now or within that time.
  bool EndsWithin(std::chrono::milliseconds time);
  bool ended() { return EndsWithin(std::chrono::milliseconds(0)); }
  /// The one-way error that is waiting, and forgets it.
  CUresult TakeDeferred();

  // A few calls that other clients make too.
  CUresult Begin(uint32_t context);
  CUresult Alloc(uint32_t context, uint64_t bytes, uint64_t* address);
  CUresult Synchronize(uint32_t context);
  /// Bytes of the device by way of the first staging block.
  CUresult Read(uint32_t context, uint64_t from, std::span<std::byte> to);
  /// Sends bytes as an image; the halves of their hash.
  std::pair<uint64_t, uint64_t> Send(uint32_t context, std::string_view bytes);
  /// Loads PTX as `module` and finds its kernel `name` as `function`.
  CUresult Load(uint32_t context, std::string_view ptx, Handle module, std::string_view name,
                Handle function);
  void Fill(uint32_t context, uint64_t at, uint64_t bytes, uint8_t value);

 private:
  static constexpr uint32_t kSlot = 0;

  RawSession(UniqueFd socket, UniqueFd doorbell, Segment segment)
      : socket_(std::move(socket)), doorbell_(std::move(doorbell)), segment_(std::move(segment)) {}
  CUresult Await(std::span<const std::byte> frame, std::span<std::byte> reply);
  void Ring();

  UniqueFd socket_;
  UniqueFd doorbell_;
  Segment segment_;
  uint64_t tail_ = 0;
  uint64_t arena_ = 0;
  uint64_t arena_bytes_ = 0;
};

}  // namespace cuplex::fault
