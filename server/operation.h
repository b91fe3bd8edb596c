// Operation: one entry of a virtual stream, and the queue of them. Reactor's thread.
//
// An operation holds all it needs: what was checked when it was taken from the client is not looked at again.
// Entries are used again, so that taking a launch in and giving it to the driver allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/driver_types.h"
#include "ptx/passes/slice_plan.h"
#include "server/forecast.h"

namespace cuplex::server {

struct Function;
struct Mark;
struct Countdown;
struct GraphRun;

enum class OperationKind : uint8_t {
  kLaunch,
  kCopy,
  kCopyBox,
  kFill,
  kRecord,
  kWait,
  kHostFunc,
  kArrive,
  kGraph
};

inline constexpr uint32_t kNoBlock = 0xffffffff;

struct Operation {
  static constexpr size_t kInlineParameters = 256;

  OperationKind kind = OperationKind::kLaunch;
  uint64_t sequence = 0;   // place among all operations of the context
  int64_t arrived_ns = 0;  // while a load is recorded

  struct Launch {
    Function* function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    bool cooperative;
    size_t parameter_bytes;
    uint64_t next_block = 0;  // those before it have gone to the driver
    ptx::GridSlice slice;     // the blocks that go now

    uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
    LaunchShape shape() const { return {blocks(), block[0] * block[1] * block[2], shared_bytes}; }
  };
  /// An end of a copy that is an array, and where in it; x in bytes.
  struct InArray {
    CUarray array;
    uint64_t x, y, z;
  };
  struct Copy {
    uint64_t dst, src, bytes;
    uint64_t dst_pitch, dst_slice, src_pitch, src_slice, height, depth;  // of a box; bytes is its width
    uint32_t source_block, target_block;                                 // staging blocks, or kNoBlock
    uint8_t direction;                                                   // metrics::Direction
    InArray from, to;                                                    // kCopyBox; null without
  };
  struct Fill {
    uint64_t dst, pitch, width, height;
    uint32_t value, element_bytes;
  };
  union {
    Launch launch;
    Copy copy;
    Fill fill;
    Mark* mark;            // kRecord, kWait: holds a reference
    Countdown* countdown;  // kArrive
    GraphRun* graph;       // kGraph: owned; see server/graph.h
    struct {
      uint64_t cookie;
      Mark* reached;  // holds a reference once the stream waits for what came before
      bool given;
    } host_func;
  };

  std::span<const std::byte> parameters() const {
    return {long_parameters ? long_parameters.get() : short_parameters.data(), launch.parameter_bytes};
  }
  void SetParameters(std::span<const std::byte> bytes);
  /// Becomes the same work as another: a launch, copy, fill or host function that has not begun.
  void Repeat(const Operation& other);

  std::unique_ptr<std::byte[]> long_parameters;
  alignas(16) std::array<std::byte, kInlineParameters> short_parameters;

  Operation() : launch{} {}
};

class OperationQueue {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  Operation& front() { return rows_[head_ & (rows_.size() - 1)]; }
  void pop() { ++head_; }
  /// A new last entry; its fields are those of some earlier one.
  Operation& push();

 private:
  std::vector<Operation> rows_ = std::vector<Operation>(16);  // a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace cuplex::server
