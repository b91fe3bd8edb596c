// Random kernels for differential tests: PTX with arithmetic, divergent control flow, memory, barriers,
// collectives and atomics, and beside it the same program as C++ functions over the threads of a block.
// Deterministic by seed. What a kernel computes never depends on the order in which threads run.
//
// This is a second reading of PTX, made of plain C++ on purpose: it uses nothing of softcuda. For tests.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuplex::softcuda::differential {

inline constexpr uint32_t kInputs = 256;  // words of input, read by all threads
inline constexpr uint32_t kCounters = 8;  // words in shared and as many in global memory that atomics change
inline constexpr uint32_t kOutputs = 20;  // words that each thread writes
inline constexpr uint32_t kLocals = 16;   // words of local memory
inline constexpr unsigned kIntegers = 8, kLongs = 4, kFloats = 4, kDoubles = 2, kPredicates = 4;

struct Thread {
  uint32_t r[kIntegers] = {};
  uint64_t l[kLongs] = {};
  float f[kFloats] = {};
  double d[kDoubles] = {};
  bool p[kPredicates] = {};
  uint32_t local[kLocals] = {};
  enum class State : uint8_t { kRunning, kBroken, kContinued, kExited } state = State::kRunning;
  unsigned loops = 0;  // that it has broken out of
};

/// A block as the C++ side runs it: all threads together, statement by statement.
struct Block {
  std::vector<Thread> threads;
  std::vector<uint32_t> slots;  // shared, one a thread
  std::array<uint32_t, kCounters> counters = {};
  std::vector<uint32_t>* global_counters = nullptr;
  const std::vector<uint32_t>* inputs = nullptr;
  uint32_t number = 0;  // in the grid
};

/// Which threads take part.
using Active = std::vector<uint8_t>;
using Action = std::function<void(Block&, const Active&)>;

struct RandomKernel {
  std::string text;  // parameters: inputs, outputs, global counters (all .u64)
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {32, 1, 1};
  std::vector<Action> program;
  /// Whether C++ knows every bit: false where approximate instructions take part.
  bool exact = true;

  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  /// What the C++ side computes: outputs of all threads, then the global counters.
  std::vector<uint32_t> Evaluate(const std::vector<uint32_t>& inputs) const;
};

RandomKernel MakeRandomKernel(uint64_t seed);

}  // namespace cuplex::softcuda::differential
