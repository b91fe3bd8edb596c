// Running: a thread of this process that executes kernel code, and how it gets out of there when something is
// wrong.
//
// Faults leave kernel code by siglongjmp, from the functions it calls and from signal handlers; so nothing on
// the way may own anything. `in_code` is true only where jumping is safe: while kernel code runs, and in the
// scheduler's loop.
#pragma once

#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "softcuda/jit/lane.h"
#include "softcuda/jit/texture_table.h"
#include "softcuda/jit/workers.h"

namespace cuplex::softcuda {

class DeviceHeap;
class DeviceText;

struct Running {
  sigjmp_buf escape;
  volatile sig_atomic_t in_code = 0;
  const std::atomic<bool>* aborted = nullptr;  // may be null
  const AddressWindow* window = nullptr;
  BlockContext* block = nullptr;
  Lane* lane = nullptr;                    // the thread that runs, or the first of them
  uint32_t together = 1;                   // how many run in lockstep from that one on
  const TextureTable* textures = nullptr;  // of the grid's context; may be null
  DeviceText* text = nullptr;              // where printf goes; null: to this process's own standard output
  DeviceHeap* heap = nullptr;              // of malloc; null: there is none

  // Headers that were read out of it, by the low bits of their handles.
  static constexpr size_t kTexturesKept = 4;
  std::array<uint64_t, kTexturesKept> kept_handle = {};
  alignas(TextureHeader) std::byte kept_header[kTexturesKept][sizeof(TextureHeader)];

  // What went wrong, for whoever catches the jump.
  Fault::Kind kind = Fault::Kind::kLaunchFailure;
  uintptr_t address = 0;
  uint32_t threads = 1;  // it was `lane` or one of those after it, as many as this in all
  char detail[512] = {};
};

/// This thread's, null outside of a grid.
Running*& CurrentRunning();

/// Fills in the fault and jumps. `detail` is copied, cut off at the buffer's end.
[[noreturn]] void RaiseFault(Running& running, Fault::Kind kind, uintptr_t address, const char* detail);

/// Installs the signal handlers, once per process; and an alternate stack for the calling thread, unless it
/// has one.
Status CatchSignals();
void EnsureSignalStack();

/// The signal that makes a thread look whether its grid is aborted.
inline constexpr int kAbortSignal = SIGURG;

/// Takes the thread out of `in_code` for as long as it lives: around locks, stdio and the like. When it ends,
/// an abort that came meanwhile is honoured, so the scope must own nothing by then.
class OutsideCode {
 public:
  explicit OutsideCode(Running& running) : running_(running) {
    running_.in_code = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~OutsideCode() noexcept(false);
  OutsideCode(const OutsideCode&) = delete;
  OutsideCode& operator=(const OutsideCode&) = delete;

 private:
  Running& running_;
};

}  // namespace cuplex::softcuda
