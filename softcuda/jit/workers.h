// Workers: threads that run the blocks of a grid. A stream's thread calls Run, which executes the grid on the
// calling thread and invites idle workers only when the grid is worth it, so a small launch costs no
// hand-off.
//
// Run may be called from any number of threads at once. Kernels' memory faults arrive as signals: the first
// Workers of the process installs handlers for SIGSEGV, SIGBUS and SIGFPE (and SIGURG, for Abort), which pass
// on whatever did not happen inside a kernel to the handlers that were there before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "softcuda/jit/program.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

class TextureTable;

class DeviceHeap;
class DeviceText;

struct Launch {
  Kernel* kernel = nullptr;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t dynamic_shared = 0;        // bytes
  std::span<const std::byte> params;  // KernelInfo::param_bytes of them; read until Run returns
  uint64_t grid_id = 0;               // what %gridid reads
  uint64_t cooperative_workspace =
      0;  // device address that %envreg1 (high half) and %envreg2 (low half) read
  const TextureTable* textures = nullptr;  // what handles of textures and surfaces name; until Run returns
  DeviceText* text = nullptr;  // where its printf goes; null: to this process's own standard output
  DeviceHeap* heap = nullptr;  // where its malloc takes memory; null: nowhere
};

struct Fault {
  enum class Kind { kIllegalAddress, kMisalignedAddress, kTrap, kAssert, kLaunchFailure, kAborted };
  Kind kind = Kind::kLaunchFailure;
  std::string kernel;
  std::array<uint32_t, 3> block = {};
  std::array<uint32_t, 3> thread = {};
  uint32_t threads = 1;   // where threads run side by side: it was one of so many, `thread` the first
  uintptr_t address = 0;  // of the access, for the address kinds
  std::string detail;     // more to say, may be empty

  /// One sentence for a log.
  std::string Sentence() const;
};

/// nullopt: the grid ran to its end.
using Outcome = std::optional<Fault>;

struct GridRun;  // one Run, on its way; workers.cc

/// A handle by which another thread can end a running grid. One per Run at a time.
class GridControl {
 public:
  /// Ends the grid that runs under this control, or the next that starts; its Run then gives kAborted. Any
  /// thread.
  void Abort();
  /// Makes the control ready for another grid after an abort.
  void Reset() { aborted_.store(false); }
  bool aborted() const { return aborted_.load(); }

 private:
  friend struct GridRun;
  std::atomic<bool> aborted_ = false;
  std::mutex lock_;
  GridRun* run_ = nullptr;  // under lock_
};

class Workers {
 public:
  /// `threads` helpers besides the threads that call Run; 0 is allowed. `window` must outlive the object.
  /// `duty` is the part of the time that each thread runs, in (0, 1].
  static Result<std::unique_ptr<Workers>> Start(unsigned threads, AddressWindow& window, double duty = 1);
  virtual ~Workers() = default;

  /// Says what is wrong with a launch, without running it.
  virtual Status Check(const Launch& launch) const = 0;

  /// Runs the grid and returns when all of it is done. An Error is a launch that cannot start (limits,
  /// compilation); a Fault is one that started and died.
  virtual Result<Outcome> Run(const Launch& launch, GridControl* control = nullptr) = 0;

  /// How many blocks of this shape can be on the way at once: the limit of a cooperative launch.
  virtual uint32_t ResidentBlocks(Kernel* kernel, uint32_t block_threads, uint32_t dynamic_shared) const = 0;
};

}  // namespace cuplex::softcuda
