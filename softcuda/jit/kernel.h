// Kernel: one entry of a Program, with its machine code once that is made. Inside the room; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "softcuda/jit/code_cache.h"
#include "softcuda/jit/lane.h"
#include "softcuda/jit/layout.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {

class ProgramImpl;

/// Machine code of a kernel.
struct Code {
  bool waits = false;
  LoopCode loop = nullptr;  // where threads never wait
  StepCode step = nullptr;  // where they do
  uint32_t lane_bytes = sizeof(Lane);
};

class Kernel {
 public:
  Kernel(ProgramImpl& program, uint32_t function) : program_(program), function_(function) {}

  /// Makes the code if there is none yet. The first caller compiles, others wait.
  Result<const Code*> Ready();

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
  std::mutex lock_;
  std::optional<Error> failed_;
  Code code_;
  std::atomic<bool> ready_ = false;
};

}  // namespace cuplex::softcuda
