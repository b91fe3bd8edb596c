// cp.async mbarrier: copies that complete later, and barriers in memory that tell when.
//
// Here a copy is done when it is issued, so groups of copies never wait. An mbarrier is 64 bits that only
// these instructions look into:
//
//     bits 0-19 arrivals the phase still waits for | 20-39 arrivals of a phase | 40-63 phases completed
//
// A block runs on one worker, one thread at a time, so plain loads and stores change it.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr uint64_t kCountBits = 20;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
constexpr uint64_t kPhaseShift = 2 * kCountBits;

Value* Load(Emitter& e, Value* at) {
  auto* load = e.ir.CreateAlignedLoad(e.Int(64), at, llvm::Align(8));
  e.MarkProgramAccess(load);
  return load;
}
void Store(Emitter& e, Value* v, Value* at) {
  e.MarkProgramAccess(e.ir.CreateAlignedStore(v, at, llvm::Align(8)));
}

Value* PhaseOf(Emitter& e, Value* state) { return e.ir.CreateLShr(state, kPhaseShift); }

/// `count` arrivals, and the state before them. `drops`: later phases expect one fewer.
Value* Arrive(Emitter& e, Value* at, Value* count, bool drops) {
  Value* before = Load(e, at);
  Value* expected = e.ir.CreateAnd(e.ir.CreateLShr(before, kCountBits), e.I64(kCountMask));
  if (drops) expected = e.ir.CreateSub(expected, e.I64(1));
  Value* pending = e.ir.CreateSub(e.ir.CreateAnd(before, e.I64(kCountMask)), count);
  pending = e.ir.CreateAnd(pending, e.I64(kCountMask));
  Value* complete = e.ir.CreateICmpEQ(pending, e.I64(0));
  Value* phase = e.ir.CreateAdd(PhaseOf(e, before), e.ir.CreateZExt(complete, e.Int(64)));
  Value* after =
      e.ir.CreateOr(e.ir.CreateSelect(complete, expected, pending),
                    e.ir.CreateOr(e.ir.CreateShl(expected, kCountBits), e.ir.CreateShl(phase, kPhaseShift)));
  Store(e, after, at);
  return before;
}

/// Copies `to_copy` of `size` bytes and clears the rest, element by element: sizes are 4, 8 or 16.
void CopyBytes(Emitter& e, Value* to, Value* from, unsigned size, Value* to_copy) {
  if (!to_copy) {
    auto* type =
        size == 16 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(e.Int(64), 2)) : e.Int(size * 8);
    auto* load = e.ir.CreateAlignedLoad(type, from, llvm::Align(size));
    e.MarkProgramAccess(load);
    e.MarkProgramAccess(e.ir.CreateAlignedStore(load, to, llvm::Align(size)));
    return;
  }
  e.ir.CreateMemSet(to, e.ir.getInt8(0), size, llvm::Align(size));
  Value* bytes = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, to_copy, e.I32(size));
  e.ir.CreateMemCpy(to, llvm::Align(size), from, llvm::Align(1), e.ir.CreateZExt(bytes, e.Int(64)));
}

}  // namespace

Status EmitCp(Emitter& e, const Instruction& in) {
  if (!in.Has(Mod::kAsync)) return e.Refuse(in, "copies in a way that softcuda does not support");
  if (in.Has(Mod::kCommitGroup) || in.Has(Mod::kWaitGroup) || in.Has(Mod::kWaitAll)) return {};
  if (in.Has(Mod::kMbarrier)) {  // cp.async.mbarrier.arrive: the copies before it are done
    if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
    TRY(Value * at, e.Address(in, in.operands[0], in.SpaceAt(), 8));
    // Without .noinc the arrival counts itself in first, and changes nothing.
    if (in.Has(Mod::kNoinc)) Arrive(e, at, e.I64(1), false);
    return {};
  }
  if (in.operands.size() != 3 && in.operands.size() != 4) return e.Refuse(in, "takes 3 or 4 operands");
  const Operand& size_operand = in.operands[2];
  auto size = static_cast<unsigned>(size_operand.bits);
  if (size_operand.kind != ptx::OperandKind::kInteger || (size != 4 && size != 8 && size != 16)) {
    return e.Refuse(in, "copies a size other than 4, 8 or 16");
  }
  Value* to_copy = nullptr;
  if (in.operands.size() == 4) {
    if (in.operands[3].IsRegister() && e.function().TypeOfRegister(in.operands[3].id) == Type::kPred) {
      return e.Refuse(in, "ignores its source by a predicate, which softcuda does not support");
    }
    TRY(to_copy, e.Read(in, in.operands[3], Type::kU32));
  }
  TRY(Value * to, e.Address(in, in.operands[0], Space::kShared, size));
  TRY(Value * from, e.Address(in, in.operands[1], Space::kGlobal, size));
  CopyBytes(e, to, from, size, to_copy);
  return {};
}

Status EmitMbarrier(Emitter& e, const Instruction& in) {
  auto& ops = in.operands;
  auto need = [&](size_t least, size_t most) -> Status {
    if (ops.size() >= least && ops.size() <= most) return {};
    return e.Refuse(in, "has operands that PTX does not give it");
  };
  Space space = in.SpaceAt();
  if (in.Has(Mod::kInit)) {
    TRY(need(2, 2));
    TRY(Value * at, e.Address(in, ops[0], space, 8));
    TRY(Value * count, e.Read(in, ops[1], Type::kU32));
    count = e.ir.CreateAnd(e.ir.CreateZExt(count, e.Int(64)), e.I64(kCountMask));
    Store(e, e.ir.CreateOr(count, e.ir.CreateShl(count, kCountBits)), at);
    return {};
  }
  if (in.Has(Mod::kInval)) return {};
  if (in.Has(Mod::kPendingCount)) {
    TRY(need(2, 2));
    TRY(Value * state, e.Read(in, ops[1], Type::kB64));
    return e.Write(in, ops[0], e.ir.CreateTrunc(e.ir.CreateAnd(state, e.I64(kCountMask)), e.Int(32)));
  }
  if (in.Has(Mod::kArrive) || in.Has(Mod::kArriveDrop)) {
    TRY(need(2, 3));
    TRY(Value * at, e.Address(in, ops[1], space, 8));
    Value* count = e.I64(1);
    if (ops.size() == 3) {
      TRY(count, e.Read(in, ops[2], Type::kU32));
      count = e.ir.CreateZExt(count, e.Int(64));
    }
    return e.Write(in, ops[0], Arrive(e, at, count, in.Has(Mod::kArriveDrop)));
  }
  if (in.Has(Mod::kTestWait) || in.Has(Mod::kTryWait)) {
    TRY(need(3, 4));  // a fourth says how long to wait at most; here the loop around it waits
    TRY(Value * at, e.Address(in, ops[1], space, 8));
    Value* now = PhaseOf(e, Load(e, at));
    Value* done = nullptr;
    if (in.Has(Mod::kParity)) {
      TRY(Value * parity, e.Read(in, ops[2], Type::kU32));
      done = e.ir.CreateICmpNE(e.ir.CreateAnd(e.ir.CreateTrunc(now, e.Int(32)), e.I32(1)),
                               e.ir.CreateAnd(parity, e.I32(1)));
    } else {
      TRY(Value * state, e.Read(in, ops[2], Type::kB64));
      done = e.ir.CreateICmpNE(now, PhaseOf(e, state));
    }
    return e.Write(in, ops[0], done);
  }
  return e.Refuse(in, "is an operation on barriers that softcuda does not support");
}

}  // namespace cuplex::softcuda
