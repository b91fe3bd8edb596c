// Shape: how a value differs between the lanes of a warp. Found for every value of one thread's code,
// together with the branches on which lanes disagree. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>

#include "softcuda/jit/lockstep/flow.h"

namespace cuplex::softcuda::lockstep {

struct Shape {
  enum class Kind : uint8_t {
    kUnknown,
    kUniform,  // the same in all lanes
    kAffine,   // base + lane * stride, modulo the width of the type
    kVarying,
  };
  Kind kind = Kind::kUnknown;
  int64_t stride = 0;  // kAffine
  uint8_t zeros = 0;   // low bits of the base that are known to be zero; kAffine and kUniform
  /// kAffine: what went into it, and how often, that is affine only as long as something holds: extensions of
  /// 32 bits, which may wrap between two lanes of the warp, and minima and maxima with a uniform bound, which
  /// lanes may reach. Where it does not hold, each of them adds what it is off by.
  std::vector<std::pair<const llvm::Instruction*, int64_t>> wraps;

  bool uniform() const { return kind == Kind::kUniform; }
  bool affine() const { return kind == Kind::kAffine; }
  bool varying() const { return kind == Kind::kVarying; }
  bool scalar() const { return uniform() || affine(); }
  bool operator==(const Shape&) const = default;
};

/// The block's shape, as far as code is made for it.
struct WarpShape {
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t lanes = 32;        // of a warp as code sees it: 8, 16 or 32
  uint64_t local_bytes = 0;   // a thread's local memory
  bool dot_products = false;  // the processor multiplies and adds four bytes at once (AVX512-VNNI)

  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  /// Whether all lanes of a warp have the same y and z.
  bool rows() const { return block[0] % lanes == 0 || (block[1] == 1 && block[2] == 1); }
  /// Whether there is a thread for every lane.
  bool full() const { return threads() % lanes == 0; }
};

/// Whether it is a minimum or maximum of integers.
bool IsBound(const llvm::CallInst& call);

class Shapes {
 public:
  Shapes(llvm::Function& function, Flow& flow, const WarpShape& warp);

  const Shape& Of(const llvm::Value* value) const;

 private:
  Shape Find(const llvm::Instruction& instruction) const;
  Shape Known(const llvm::Value* value) const;
  Shape FindCall(const llvm::CallInst& call) const;
  Shape FindPhi(const llvm::PHINode& phi) const;

  Flow& flow_;
  const WarpShape& warp_;
  const llvm::DataLayout& layout_;
  llvm::DenseMap<const llvm::Value*, Shape> shapes_;
  Shape uniform_, varying_;
};

}  // namespace cuplex::softcuda::lockstep
