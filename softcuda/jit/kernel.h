// Kernel: one entry of a Program, with its machine code once that is made. Inside the room; any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "softcuda/jit/code_cache.h"
#include "softcuda/jit/lane.h"
#include "softcuda/jit/layout.h"
#include "softcuda/jit/lockstep/warp.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {

class ProgramImpl;

/// Machine code of a kernel.
struct Code {
  bool waits = false;
  LoopCode loop = nullptr;  // where threads never wait
  StepCode step = nullptr;  // where they do
  uint32_t lane_bytes = sizeof(Lane);
  WarpCode warp = nullptr;  // where warps run in lockstep, for blocks of one shape
  uint32_t warp_lanes = 32;
  uint32_t warp_bytes = sizeof(Warp);
};

class Kernel {
 public:
  Kernel(ProgramImpl& program, uint32_t function) : program_(program), function_(function) {}

  using BlockShape = std::array<uint32_t, 3>;

  /// The code for blocks of this shape; makes it if there is none yet. The first caller compiles, others
  /// wait.
  Result<const Code*> Ready(const BlockShape& block);
  /// That code, or null where it has not been made.
  const Code* Find(const BlockShape& block) const;

  const KernelInfo& info() const { return info_; }
  const KernelLayout& layout() const { return layout_; }

 private:
  friend class ProgramImpl;
  ProgramImpl& program_;
  uint32_t function_;
  KernelInfo info_;
  KernelLayout layout_;
  std::once_flag once_;
  Digest content_;  // once made

  /// Code for one shape of block; never changes once it can be found.
  struct Variant {
    BlockShape block = {};
    Code code;
    const Variant* next = nullptr;
  };

  Result<const Code*> MakeReady(const BlockShape& block);
  Result<const Code*> MakeAny();
  const Code* Add(std::unique_ptr<Variant> variant);

  std::mutex lock_;
  std::optional<Error> failed_;
  Code code_;                                       // for blocks of any shape
  std::atomic<bool> ready_ = false;                 // code_ is there
  std::atomic<bool> any_ = false;                   // and it is what all blocks run
  std::vector<std::unique_ptr<Variant>> variants_;  // under lock_
  std::atomic<const Variant*> newest_ = nullptr;
};

}  // namespace cuplex::softcuda
