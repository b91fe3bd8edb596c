#include "softcuda/jit/lockstep/shape.h"

#include <algorithm>
#include <bit>
#include <map>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>

#include "softcuda/jit/lane.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda::lockstep {

using llvm::Instruction;
using llvm::Value;
using Kind = Shape::Kind;

namespace {

constexpr uint8_t kManyZeros = 32;

Shape Uniform(uint8_t zeros = 0) {
  Shape s;
  s.kind = Kind::kUniform;
  s.zeros = zeros;
  return s;
}
Shape Varying() {
  Shape s;
  s.kind = Kind::kVarying;
  return s;
}
Shape Affine(int64_t stride, uint8_t zeros) {
  Shape s;
  s.kind = stride ? Kind::kAffine : Kind::kUniform;
  s.stride = stride;
  s.zeros = zeros;
  return s;
}

using Wraps = std::vector<std::pair<const Instruction*, int64_t>>;

Wraps Sum(const Wraps& a, const Wraps& b, int64_t times) {
  std::map<const Instruction*, int64_t> sum;
  for (auto [i, n] : a) sum[i] += n;
  for (auto [i, n] : b) sum[i] += n * times;
  Wraps out;
  for (auto [i, n] : sum) {
    if (n) out.emplace_back(i, n);
  }
  return out;
}

uint8_t TrailingZeros(uint64_t v) {
  return v ? static_cast<uint8_t>(std::min<int>(std::countr_zero(v), kManyZeros)) : kManyZeros;
}

/// The sum of two, or of the first and `times` the second.
Shape Add(const Shape& a, const Shape& b, int64_t times) {
  if (a.varying() || b.varying()) return Varying();
  Shape out = Affine(a.stride + b.stride * times, std::min(a.zeros, b.zeros));
  out.wraps = Sum(a.wraps, b.wraps, times);
  if (out.uniform() && !out.wraps.empty()) return Varying();
  return out;
}

Shape Times(const Shape& a, int64_t n) {
  if (a.varying()) return a;
  Shape out = Affine(a.stride * n, static_cast<uint8_t>(std::min<int>(
                                       a.zeros + TrailingZeros(static_cast<uint64_t>(n)), kManyZeros)));
  if (out.affine()) out.wraps = Sum({}, a.wraps, n);
  return out;
}

}  // namespace

Shapes::Shapes(llvm::Function& function, Flow& flow, const WarpShape& warp)
    : flow_(flow),
      warp_(warp),
      layout_(function.getParent()->getDataLayout()),
      uniform_(Uniform()),
      varying_(Varying()) {
  // Shapes only ever get worse, and so do branches; so this ends.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Flow::Block& b : flow.blocks()) {
      for (Instruction& i : *b.ir) {
        if (i.getType()->isVoidTy()) continue;
        Shape& known = shapes_[&i];
        if (known.varying()) continue;
        Shape found = Find(i);
        if (found.kind == Kind::kUnknown || found == known) continue;
        if (known.kind != Kind::kUnknown) {
          if (known.kind != found.kind || known.stride != found.stride || known.wraps != found.wraps) {
            // A value that was uniform may turn out affine once, not more; what wavers is varying.
            if (!(known.uniform() && found.affine())) found = varying_;
          } else {
            found.zeros = std::min(found.zeros, known.zeros);
            if (found == known) continue;
          }
        }
        shapes_[&i] = found;
        changed = true;
      }
      auto* branch = llvm::dyn_cast<llvm::BranchInst>(b.ir->getTerminator());
      if (branch && branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1)) {
        Shape c = Known(branch->getCondition());
        if (c.kind != Kind::kUnknown && !c.uniform()) changed |= flow.Diverge(flow.IndexOf(b.ir));
      }
    }
    changed |= flow.DivergeLoops();
  }
}

const Shape& Shapes::Of(const Value* value) const {
  if (!llvm::isa<Instruction>(value)) return uniform_;
  auto it = shapes_.find(value);
  return it == shapes_.end() || it->second.kind == Kind::kUnknown ? varying_ : it->second;
}

Shape Shapes::Known(const Value* value) const {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    return Uniform(TrailingZeros(c->getValue().getLoBits(64).getLimitedValue()));
  }
  if (!llvm::isa<Instruction>(value)) return uniform_;
  auto it = shapes_.find(value);
  return it == shapes_.end() ? Shape() : it->second;
}

Shape Shapes::FindPhi(const llvm::PHINode& phi) const {
  Shape out;
  const Flow::Block& b = flow_.blocks()[flow_.IndexOf(phi.getParent())];
  bool same = true;
  const Value* first = nullptr;
  for (const Value* v : phi.incoming_values()) {
    if (v == &phi || llvm::isa<llvm::UndefValue>(v)) continue;
    if (!first) first = v;
    same &= v == first;
    Shape s = Known(v);
    if (s.kind == Kind::kUnknown) continue;
    if (out.kind == Kind::kUnknown) {
      out = s;
      continue;
    }
    if (s.varying() || s.kind != out.kind || s.stride != out.stride || s.wraps != out.wraps) return varying_;
    out.zeros = std::min(out.zeros, s.zeros);
  }
  if (!b.joins || out.varying()) return out;
  // Lanes meet here that came by different ways. Only what is the same whichever way stays as it is; and of
  // what comes out of a loop in different turns, only what the loop does not change.
  if (!same || !first) return out.kind == Kind::kUnknown ? out : varying_;
  const auto* def = llvm::dyn_cast<Instruction>(first);
  if (!def) return out;
  for (const llvm::BasicBlock* from : phi.blocks()) {
    for (const llvm::Loop* l = flow_.loops().getLoopFor(from); l && !l->contains(phi.getParent());
         l = l->getParentLoop()) {
      if (flow_.IsDivergent(l) && l->contains(def)) return varying_;
    }
  }
  return out;
}

bool IsBound(const llvm::CallInst& call) {
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
      return true;
    default:
      return false;
  }
}

Shape Shapes::FindCall(const llvm::CallInst& call) const {
  const llvm::Function* f = call.getCalledFunction();
  if (!f) return varying_;
  llvm::StringRef name = f->getName();
  auto width_zeros = static_cast<uint8_t>(std::countr_zero(warp_.lanes));
  if (name == marker::kTid[0]) {
    if (!warp_.rows()) return varying_;
    return Affine(1, width_zeros);
  }
  if (name == marker::kTid[1] || name == marker::kTid[2]) return warp_.rows() ? Uniform() : varying_;
  if (name == marker::kLinear || name == marker::kLaneid) return Affine(1, width_zeros);
  if (name == marker::kWarpid) return Uniform();
  if (name == marker::kLocal) return Affine(static_cast<int64_t>(warp_.local_bytes), 4);
  if (name == marker::kOffset) {
    Shape s = Known(call.getArgOperand(0));
    return s.affine() && std::abs(s.stride) < (1 << 20) ? s : s.affine() ? varying_ : s;
  }
  if (name == marker::kBarrier) return Uniform();
  if (name == marker::kCollective || name == marker::kCollective64) {
    auto op = static_cast<Collective>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue());
    Shape mask = Known(call.getArgOperand(5));
    if (mask.kind == Kind::kUnknown) return mask;
    switch (op) {
      case Collective::kVoteAll:
      case Collective::kVoteAny:
      case Collective::kVoteUni:
      case Collective::kVoteBallot:
      case Collective::kReduxAdd:
      case Collective::kReduxAnd:
      case Collective::kReduxOr:
      case Collective::kReduxXor:
      case Collective::kReduxMinS:
      case Collective::kReduxMinU:
      case Collective::kReduxMaxS:
      case Collective::kReduxMaxU:
      case Collective::kActivemask:
      case Collective::kSync:
        return mask.uniform() ? Uniform() : varying_;
      default:
        return varying_;
    }
  }
  if (f->isIntrinsic()) {
    if (IsBound(call)) {
      // Clamped by what is the same for all lanes: affine where no lane is at the bound.
      Shape a = Known(call.getArgOperand(0)), b = Known(call.getArgOperand(1));
      if (a.kind == Kind::kUnknown || b.kind == Kind::kUnknown) return {};
      if (b.affine()) std::swap(a, b);
      if (a.affine() && b.uniform() && call.getType()->isIntegerTy(32) &&
          std::abs(a.stride) < (int64_t{1} << 24)) {
        a.wraps = {{&call, 1}};
        return a;
      }
    }
    if (f->getIntrinsicID() == llvm::Intrinsic::readcyclecounter) return Uniform();
    if (call.mayReadOrWriteMemory() && !llvm::isa<llvm::MemIntrinsic>(call)) return varying_;
  } else if (!call.doesNotAccessMemory()) {
    return varying_;
  }
  bool unknown = false;
  for (const Value* a : call.args()) {
    Shape s = Known(a);
    unknown |= s.kind == Kind::kUnknown;
    if (s.kind != Kind::kUnknown && !s.uniform()) return varying_;
  }
  return unknown ? Shape() : Uniform();
}

Shape Shapes::Find(const Instruction& i) const {
  if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&i)) return FindPhi(*phi);
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) return FindCall(*call);
  if (auto* alloca = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
    auto size = alloca->getAllocationSize(layout_);
    return size ? Affine(static_cast<int64_t>((size->getFixedValue() + 15) / 16 * 16), 4) : varying_;
  }
  if (llvm::isa<llvm::AtomicRMWInst>(i) || llvm::isa<llvm::AtomicCmpXchgInst>(i)) return varying_;
  bool uniform = true;
  for (const Value* v : i.operands()) {
    if (llvm::isa<llvm::BasicBlock>(v)) continue;
    Shape s = Known(v);
    if (s.kind == Kind::kUnknown) return {};
    uniform &= s.uniform();
  }
  auto operand = [&](unsigned n) { return Known(i.getOperand(n)); };
  auto constant = [&](unsigned n) -> const llvm::ConstantInt* {
    return llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(n));
  };
  bool integer = i.getType()->isIntegerTy() && i.getType()->getIntegerBitWidth() <= 64;
  bool address = integer || i.getType()->isPointerTy();
  if (uniform) {
    uint8_t zeros = 0;
    if (integer && i.getType()->getIntegerBitWidth() >= 8) {
      switch (i.getOpcode()) {
        case Instruction::Add:
        case Instruction::Sub:
        case Instruction::Or:
          zeros = std::min(operand(0).zeros, operand(1).zeros);
          break;
        case Instruction::Mul:
          zeros = static_cast<uint8_t>(std::min<int>(operand(0).zeros + operand(1).zeros, kManyZeros));
          break;
        case Instruction::And:
          zeros = std::max(operand(0).zeros, operand(1).zeros);
          break;
        case Instruction::Shl:
          if (constant(1)) {
            zeros = static_cast<uint8_t>(
                std::min<uint64_t>(operand(0).zeros + constant(1)->getLimitedValue(kManyZeros), kManyZeros));
          }
          break;
        case Instruction::ZExt:
        case Instruction::SExt:
        case Instruction::Trunc:
          zeros = operand(0).zeros;
          break;
        default:
          break;
      }
    }
    return Uniform(zeros);
  }
  switch (i.getOpcode()) {
    case Instruction::Add:
      return integer ? Add(operand(0), operand(1), 1) : varying_;
    case Instruction::Sub:
      return integer ? Add(operand(0), operand(1), -1) : varying_;
    case Instruction::Mul:
      if (integer && constant(1)) return Times(operand(0), constant(1)->getSExtValue());
      if (integer && constant(0)) return Times(operand(1), constant(0)->getSExtValue());
      return varying_;
    case Instruction::Shl:
      if (integer && constant(1) && constant(1)->getLimitedValue(64) < 32) {
        return Times(operand(0), int64_t{1} << constant(1)->getZExtValue());
      }
      return varying_;
    case Instruction::Or: {
      // Bits that are zero in every lane: the or is a sum.
      const Shape a = operand(0);
      if (integer && llvm::cast<llvm::PossiblyDisjointInst>(i).isDisjoint()) return Add(a, operand(1), 1);
      if (!integer || !constant(1) || !a.affine() || !a.wraps.empty()) return varying_;
      uint64_t c = constant(1)->getValue().getLoBits(64).getLimitedValue();
      unsigned zeros = std::min<unsigned>(a.zeros, TrailingZeros(static_cast<uint64_t>(a.stride)));
      return zeros < 64 && c >> zeros == 0 ? Affine(a.stride, std::min(a.zeros, TrailingZeros(c))) : varying_;
    }
    case Instruction::Xor: {
      // The low bits, of which the base has none, as they are or all turned over.
      const Shape a = operand(0);
      if (integer && a.affine() && constant(1) && constant(1)->isMinusOne()) {
        Shape out = Times(a, -1);  // -1 less the value
        out.zeros = 0;
        return out;
      }
      if (!integer || !constant(1) || !a.affine() || !a.wraps.empty() || a.stride < 0) return varying_;
      uint64_t c = constant(1)->getValue().getLoBits(64).getLimitedValue();
      uint64_t span = static_cast<uint64_t>(a.stride) * (warp_.lanes - 1);
      if (a.zeros >= 32 || (span >> a.zeros) != 0) return varying_;
      uint64_t low = (uint64_t{1} << a.zeros) - 1;
      return (c & low) == 0 ? Affine(a.stride, a.zeros) : (c & low) == low ? Affine(-a.stride, 0) : varying_;
    }
    case Instruction::LShr: {
      // All lanes of the warp fall into one multiple of 2^n.
      const Shape a = operand(0);
      if (!integer || !constant(1) || !a.affine() || !a.wraps.empty() || a.stride < 0) return varying_;
      uint64_t n = constant(1)->getLimitedValue(64);
      uint64_t span = static_cast<uint64_t>(a.stride) * (warp_.lanes - 1);
      return n < 32 && a.zeros >= n && span < uint64_t{1} << n ? Uniform() : varying_;
    }
    case Instruction::And: {
      const Shape a = operand(0);
      if (!integer || !constant(1) || !a.affine() || !a.wraps.empty() || a.stride < 0) return varying_;
      // Keeping the low n bits, of which the base has none: what is left is stride * lane.
      uint64_t c = constant(1)->getValue().getLoBits(64).getLimitedValue();
      uint64_t span = static_cast<uint64_t>(a.stride) * (warp_.lanes - 1);
      if (a.zeros < 32 && (span >> a.zeros) == 0) {
        uint64_t low = (uint64_t{1} << a.zeros) - 1;
        if ((c & low) == 0) return Uniform(a.zeros);
        if ((c & low) == low) return Affine(a.stride, a.zeros);
      }
      return varying_;
    }
    case Instruction::Trunc: {
      Shape a = operand(0);
      // What an extension is off by is a multiple of 2^32; nothing is known of the others.
      for (auto [origin, times] : a.wraps) {
        if (!llvm::isa<llvm::CastInst>(origin) || !Known(origin->getOperand(0)).wraps.empty())
          return varying_;
      }
      a.wraps.clear();
      return integer && i.getType()->getIntegerBitWidth() >= 8 && i.getType()->getIntegerBitWidth() <= 32
                 ? a
                 : varying_;
    }
    case Instruction::SExt:
    case Instruction::ZExt: {
      Shape a = operand(0);
      if (!a.affine() || !integer) return varying_;
      if (i.getType()->getIntegerBitWidth() != 64 || i.getOperand(0)->getType()->getIntegerBitWidth() != 32) {
        return varying_;
      }
      if (std::abs(a.stride) >= int64_t{1} << 24) return varying_;
      a.wraps = {{&i, 1}};
      return a;
    }
    case Instruction::IntToPtr:
    case Instruction::PtrToInt:
    case Instruction::Freeze:
      return address ? operand(0) : varying_;
    case Instruction::GetElementPtr: {
      const auto& gep = llvm::cast<llvm::GetElementPtrInst>(i);
      Shape base = operand(0);
      llvm::APInt offset(64, 0);
      if (gep.accumulateConstantOffset(layout_, offset)) {
        if (!base.affine()) return base;
        base.zeros = 0;
        return base;
      }
      if (gep.getNumIndices() != 1) return varying_;
      auto size = layout_.getTypeAllocSize(gep.getSourceElementType());
      Shape index = operand(1);
      if (i.getOperand(1)->getType()->getIntegerBitWidth() != 64) return varying_;
      return Add(base, Times(index, static_cast<int64_t>(size.getFixedValue())), 1);
    }
    case Instruction::Select: {
      if (!address || !operand(0).uniform()) return varying_;
      Shape a = operand(1), b = operand(2);
      if (a.kind != b.kind || a.stride != b.stride || a.wraps != b.wraps) return varying_;
      a.zeros = std::min(a.zeros, b.zeros);
      return a;
    }
    case Instruction::ICmp: {
      // tid < 32: the same answer in all lanes of a warp.
      const auto& cmp = llvm::cast<llvm::ICmpInst>(i);
      const Shape a = operand(0);
      if (!constant(1) || !a.affine() || !a.wraps.empty() || a.stride < 0 ||
          !i.getOperand(0)->getType()->isIntegerTy()) {
        return varying_;
      }
      uint64_t c = constant(1)->getValue().getLoBits(64).getLimitedValue();
      uint64_t span = static_cast<uint64_t>(a.stride) * (warp_.lanes - 1);
      if (a.zeros >= 32 || (span >> a.zeros) != 0) return varying_;
      uint64_t low = (uint64_t{1} << a.zeros) - 1;
      switch (cmp.getPredicate()) {
        case llvm::CmpInst::ICMP_ULT:
        case llvm::CmpInst::ICMP_SLT:
        case llvm::CmpInst::ICMP_UGE:
        case llvm::CmpInst::ICMP_SGE:
          return (c & low) == 0 ? Uniform() : varying_;
        case llvm::CmpInst::ICMP_UGT:
        case llvm::CmpInst::ICMP_SGT:
        case llvm::CmpInst::ICMP_ULE:
        case llvm::CmpInst::ICMP_SLE:
          return (c & low) == low ? Uniform() : varying_;
        default:
          return varying_;
      }
    }
    default:
      return varying_;
  }
}

}  // namespace cuplex::softcuda::lockstep
