// cp.async cp.async.bulk cp.reduce.async.bulk mbarrier: copies that complete later, and
// barriers in memory that tell when.
//
// Here a copy is done when it is issued, so groups of copies never wait. An mbarrier is 64 bits that only
// these instructions look into:
//
//     bits 0-19 arrivals the phase still waits for | 20-39 arrivals of a phase |
//     40-60 bytes the phase still waits for, two's complement | 61-63 phases completed, modulo 8
//
// A phase is complete when nothing of either kind is left. A block runs on one worker, one thread at a time,
// so plain loads and stores change it.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/bulk.h"
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
constexpr uint64_t kBytesShift = 2 * kCountBits;
constexpr uint64_t kBytesBits = 21;
constexpr uint64_t kPhaseShift = kBytesShift + kBytesBits;

Value* Load(Emitter& e, Value* at) {
  auto* load = e.ir.CreateAlignedLoad(e.Int(64), at, llvm::Align(8));
  e.MarkProgramAccess(load);
  return load;
}
void Store(Emitter& e, Value* v, Value* at) {
  e.MarkProgramAccess(e.ir.CreateAlignedStore(v, at, llvm::Align(8)));
}

Value* PhaseOf(Emitter& e, Value* state) { return e.ir.CreateLShr(state, kPhaseShift); }

/// Changes a barrier by `count` arrivals and `bytes` more to wait for (both may be null); the state before.
/// `drops`: later phases expect one fewer.
Value* Change(Emitter& e, Value* at, Value* count, Value* bytes, bool drops = false) {
  Value* before = Load(e, at);
  Value* expected = e.ir.CreateAnd(e.ir.CreateLShr(before, kCountBits), e.I64(kCountMask));
  if (drops) expected = e.ir.CreateAnd(e.ir.CreateSub(expected, e.I64(1)), e.I64(kCountMask));
  Value* pending = e.ir.CreateAnd(before, e.I64(kCountMask));
  if (count) pending = e.ir.CreateAnd(e.ir.CreateSub(pending, count), e.I64(kCountMask));
  constexpr uint64_t kBytesMask = (uint64_t{1} << kBytesBits) - 1;
  Value* left = e.ir.CreateLShr(before, kBytesShift);
  if (bytes) left = e.ir.CreateAdd(left, bytes);
  left = e.ir.CreateAnd(left, e.I64(kBytesMask));
  Value* complete = e.ir.CreateICmpEQ(e.ir.CreateOr(pending, left), e.I64(0));
  Value* phase = e.ir.CreateAdd(PhaseOf(e, before), e.ir.CreateZExt(complete, e.Int(64)));
  Value* after = e.ir.CreateOr(
      e.ir.CreateSelect(complete, expected, pending),
      e.ir.CreateOr(e.ir.CreateShl(expected, kCountBits),
                    e.ir.CreateOr(e.ir.CreateShl(left, kBytesShift), e.ir.CreateShl(phase, kPhaseShift))));
  Store(e, after, at);
  return before;
}

bool IsShared(Space space) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
}

/// Operation and type of a reducing copy, as the runtime takes it (bulk.h).
Result<uint32_t> ReductionOf(Emitter& e, const Instruction& in) {
  static constexpr std::pair<Mod, BulkReduction> kOperations[] = {
      {Mod::kAdd, BulkReduction::kAdd}, {Mod::kMin, BulkReduction::kMin}, {Mod::kMax, BulkReduction::kMax},
      {Mod::kInc, BulkReduction::kInc}, {Mod::kDec, BulkReduction::kDec}, {Mod::kAnd, BulkReduction::kAnd},
      {Mod::kOr, BulkReduction::kOr},   {Mod::kXor, BulkReduction::kXor}};
  static constexpr std::pair<Type, BulkType> kTypes[] = {
      {Type::kU32, BulkType::kU32}, {Type::kS32, BulkType::kS32},   {Type::kU64, BulkType::kU64},
      {Type::kS64, BulkType::kS64}, {Type::kB32, BulkType::kU32},   {Type::kB64, BulkType::kU64},
      {Type::kF16, BulkType::kF16}, {Type::kBf16, BulkType::kBf16}, {Type::kF32, BulkType::kF32},
      {Type::kF64, BulkType::kF64}};
  for (auto [mod, operation] : kOperations) {
    for (auto [type, number] : kTypes) {
      if (in.Has(mod) && in.TypeAt() == type && BulkHas(operation, number))
        return PackBulk(operation, number);
    }
  }
  return e.Refuse(in, "reduces in a way that softcuda does not support");
}

/// cp.async.bulk and cp.reduce.async.bulk.
Status EmitBulk(Emitter& e, const Instruction& in) {
  if (in.Has(Mod::kCommitGroup) || in.Has(Mod::kWaitGroup) || in.Has(Mod::kPrefetch)) return {};
  if (in.Has(Mod::kTensor) || in.Has(Mod::kCpMask)) {
    return e.Refuse(in, "copies in a way that softcuda does not support");
  }
  Space to = in.SpaceAt(0), from = in.SpaceAt(1);
  bool tells = in.Has(Mod::kMbarrierCompleteTxBytes), multicast = in.Has(Mod::kMulticastCluster);
  size_t wants = 3u + tells + multicast + in.Has(Mod::kL2CacheHint);
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  if (!(IsShared(to) || to == Space::kGlobal) || !(IsShared(from) || from == Space::kGlobal) ||
      tells == in.Has(Mod::kBulkGroup)) {
    return e.Refuse(in, "copies between state spaces that PTX does not give it");
  }
  uint32_t reduction = kPlainBulk;
  if (in.Has(Mod::kReduce)) {
    TRY(reduction, ReductionOf(e, in));
  }
  TRY(Value * target, e.PlainAddress(in, in.operands[0], to));
  TRY(Value * source, e.PlainAddress(in, in.operands[1], from));
  TRY(Value * size, e.Read(in, in.operands[2], Type::kU32));
  if (multicast) {  // to the blocks of the mask; this is the only one, number 0
    TRY(Value * mask, e.Read(in, in.operands[4], Type::kU16));
    size = e.ir.CreateSelect(e.ir.CreateTrunc(mask, e.Int(1)), size, e.I32(0));
  }
  uint32_t how = reduction | (IsShared(to) ? kBulkToShared : 0) | (IsShared(from) ? kBulkFromShared : 0);
  e.CallRuntime("cuplex_bulk_copy", e.ir.getVoidTy(), {e.lane(), target, source, size, e.I32(how)});
  return tells ? CompleteTransaction(e, in, in.operands[3], size) : Status();
}

}  // namespace

Status EmitCp(Emitter& e, const Instruction& in) {
  if (!in.Has(Mod::kAsync)) return e.Refuse(in, "copies in a way that softcuda does not support");
  if (in.Has(Mod::kBulk)) return EmitBulk(e, in);
  if (in.Has(Mod::kCommitGroup) || in.Has(Mod::kWaitGroup) || in.Has(Mod::kWaitAll)) return {};
  if (in.Has(Mod::kMbarrier)) {  // cp.async.mbarrier.arrive: the copies before it are done
    if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
    TRY(Value * at, e.Address(in, in.operands[0], in.SpaceAt(), 8));
    // Without .noinc the arrival counts itself in first, and changes nothing.
    if (in.Has(Mod::kNoinc)) Change(e, at, e.I64(1), nullptr);
    return {};
  }
  size_t given = in.operands.size() - in.Has(Mod::kL2CacheHint);
  if (given != 3 && given != 4) return e.Refuse(in, "takes 3 or 4 operands, and one more for a cache hint");
  const Operand& size_operand = in.operands[2];
  auto size = static_cast<unsigned>(size_operand.bits);
  if (size_operand.kind != ptx::OperandKind::kInteger || (size != 4 && size != 8 && size != 16)) {
    return e.Refuse(in, "copies a size other than 4, 8 or 16");
  }
  TRY(Value * to, e.Address(in, in.operands[0], Space::kShared, size));
  bool whole =
      given == 3 || (in.operands[3].kind == ptx::OperandKind::kInteger && in.operands[3].bits == size);
  if (whole) {
    TRY(Value * from, e.Address(in, in.operands[1], Space::kGlobal, size));
    auto* type =
        size == 16 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(e.Int(64), 2)) : e.Int(size * 8);
    auto* load = e.ir.CreateAlignedLoad(type, from, llvm::Align(size));
    e.MarkProgramAccess(load);
    e.MarkProgramAccess(e.ir.CreateAlignedStore(load, to, llvm::Align(size)));
    return {};
  }
  // What is left of the source's bytes, or nothing of it where a predicate says to ignore it; where no byte
  // is copied the source may lie anywhere.
  const Operand& fourth = in.operands[3];
  Value* bytes = nullptr;
  if (fourth.IsRegister() && e.function().TypeOfRegister(fourth.id) == Type::kPred) {
    TRY(Value * ignores, e.Read(in, fourth, Type::kPred));
    bytes = e.ir.CreateSelect(ignores, e.I32(0), e.I32(size));
  } else {
    TRY(Value * left, e.Read(in, fourth, Type::kU32));
    bytes = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, e.I32(size));
  }
  TRY(Value * from, e.PlainAddress(in, in.operands[1], Space::kGlobal));
  e.CallRuntime("cuplex_copy_part", e.ir.getVoidTy(), {e.lane(), to, from, e.I32(size), bytes});
  return {};
}

Status EmitMbarrier(Emitter& e, const Instruction& in) {
  auto& ops = in.operands;
  auto need = [&](size_t least, size_t most) -> Status {
    if (ops.size() >= least && ops.size() <= most) return {};
    return e.Refuse(in, "has operands that PTX does not give it");
  };
  Space space = in.SpaceAt();
  auto number = [&](const Operand& operand) -> Result<Value*> {
    TRY(Value * v, e.Read(in, operand, Type::kU32));
    return e.ir.CreateZExt(v, e.Int(64));
  };
  if (in.Has(Mod::kInit)) {
    TRY(need(2, 2));
    TRY(Value * at, e.Address(in, ops[0], space, 8));
    TRY(Value * count, number(ops[1]));
    count = e.ir.CreateAnd(count, e.I64(kCountMask));
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
    bool expects = in.Has(Mod::kExpectTx);
    TRY(need(expects ? 3 : 2, 3));
    TRY(Value * at, e.Address(in, ops[1], space, 8));
    Value* count = e.I64(1);
    Value* bytes = nullptr;
    if (ops.size() == 3) {
      TRY(Value * v, number(ops[2]));
      (expects ? bytes : count) = v;
    }
    return e.Write(in, ops[0], Change(e, at, count, bytes, in.Has(Mod::kArriveDrop)));
  }
  if (in.Has(Mod::kExpectTx) || in.Has(Mod::kCompleteTx)) {
    TRY(need(2, 2));
    TRY(Value * at, e.Address(in, ops[0], space, 8));
    TRY(Value * bytes, number(ops[1]));
    Change(e, at, nullptr, in.Has(Mod::kExpectTx) ? bytes : e.ir.CreateNeg(bytes));
    return {};
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

Status CompleteTransaction(Emitter& e, const Instruction& in, const Operand& barrier, Value* bytes) {
  TRY(Value * at, e.Address(in, barrier, Space::kShared, 8));
  Change(e, at, nullptr, e.ir.CreateNeg(e.ir.CreateZExtOrTrunc(bytes, e.Int(64))));
  return {};
}

}  // namespace cuplex::softcuda
