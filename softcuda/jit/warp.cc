// bar barrier shfl vote match redux elect activemask: where threads meet. The emitted code says in the
// thread's record what it waits for, suspends, and finds the answer there when it goes on; block_run.cc
// brings the threads together.
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

Status NeedSteps(Emitter& e, const Instruction& in) {
  if (e.waits() || e.lockstep()) return {};
  return e.Refuse(
      in,
      "waits for other threads in a function that is called through a pointer, which softcuda does not "
      "support");
}

/// What a collective gives: a word and a predicate.
struct Met {
  Value* word = nullptr;
  Value* predicate = nullptr;
};

/// In lockstep: the collective `op` of the lanes in `mask`, all lanes where there is none.
Result<Met> MeetInLockstep(Emitter& e, const Instruction& in, Collective op, const Operand* mask,
                           Value* value, Value* b, Value* c) {
  Value* lanes = e.I32(~0u);
  if (mask) {
    TRY(lanes, e.Read(in, *mask, Type::kB32));
  }
  auto* result = llvm::StructType::get(e.Int(32), e.Int(1));
  bool wide = value && value->getType()->isIntegerTy(64);
  Value* met = e.Mark(wide ? marker::kCollective64 : marker::kCollective, result,
                      {e.I32(static_cast<uint32_t>(op)), e.I32(mask != nullptr),
                       value ? value : static_cast<Value*>(e.I32(0)), b ? b : static_cast<Value*>(e.I32(0)),
                       c ? c : static_cast<Value*>(e.I32(0)), lanes});
  return Met{e.ir.CreateExtractValue(met, 0), e.ir.CreateExtractValue(met, 1)};
}

/// Stores what is waited for and suspends. `mask` is null for collectives of whoever gets here.
Status Meet(Emitter& e, const Instruction& in, Collective op, const Operand* mask) {
  TRY(NeedSteps(e, in));
  e.StoreLane(offsetof(Lane, op), e.I32(static_cast<uint32_t>(op)));
  if (mask) {
    TRY(Value * m, e.Read(in, *mask, Type::kB32));
    e.StoreLane(offsetof(Lane, mask), m);
  }
  return e.Suspend(in, mask ? Step::kCollective : Step::kConverge);
}

Value* ResultWord(Emitter& e) { return e.LoadLane(offsetof(Lane, result), 32); }
Value* ResultPredicate(Emitter& e) {
  return e.ir.CreateICmpNE(e.LoadLane(offsetof(Lane, result_predicate), 32), e.I32(0));
}

/// d, or d|p.
Status WriteBoth(Emitter& e, const Instruction& in, Value* d, Value* p) {
  const Operand& out = in.operands[0];
  if (out.kind != OperandKind::kPair) return e.Write(in, out, d);
  TRY(e.Write(in, out.parts[0], d));
  return e.Write(in, out.parts[1], p);
}

}  // namespace

Status EmitBarrier(Emitter& e, const Instruction& in) {
  if (in.Has(Mod::kWarp)) {
    if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
    if (e.lockstep()) {
      TRY(auto met, MeetInLockstep(e, in, Collective::kSync, &in.operands[0], nullptr, nullptr, nullptr));
      (void)met;
      return {};
    }
    return Meet(e, in, Collective::kSync, &in.operands[0]);
  }
  TRY(NeedSteps(e, in));
  if (in.Has(Mod::kCluster)) {  // barrier.cluster.arrive and .wait
    if (e.lockstep()) return e.Refuse(in, "is not carried out in lockstep");
    if (!in.operands.empty() || in.Has(Mod::kArrive) == in.Has(Mod::kWait)) {
      return e.Refuse(in, "is an operation on the cluster's barrier that PTX does not have");
    }
    e.StoreLane(offsetof(Lane, op), e.I32(kClusterBarrier));
    e.StoreLane(offsetof(Lane, count), e.I32(0));
    e.StoreLane(offsetof(Lane, b), e.I32(static_cast<uint32_t>(BarrierVote::kNone)));
    e.StoreLane(offsetof(Lane, c), e.I32(in.Has(Mod::kArrive)));
    return e.Suspend(in, Step::kBarrier);
  }
  bool votes = in.Has(Mod::kRed), arrives = in.Has(Mod::kArrive);
  // bar.sync a {, b}   bar.arrive a, b   bar.red d, a {, b}, c
  size_t first = votes ? 1 : 0, last = in.operands.size() - (votes ? 1 : 0);
  if (in.operands.size() < first + 1 + (votes ? 1 : 0) || last - first > 2 ||
      (arrives && last - first != 2)) {
    return e.Refuse(in, "has operands that PTX does not give it");
  }
  TRY(Value * id, e.Read(in, in.operands[first], Type::kU32));
  Value* count = e.I32(0);
  if (last - first == 2) {
    TRY(count, e.Read(in, in.operands[first + 1], Type::kU32));
  }
  BarrierVote vote = !votes              ? BarrierVote::kNone
                     : in.Has(Mod::kAnd) ? BarrierVote::kAnd
                     : in.Has(Mod::kOr)  ? BarrierVote::kOr
                                         : BarrierVote::kPopc;
  if (e.lockstep()) {
    Value* p = e.ir.getFalse();
    if (votes) {
      TRY(p, e.Read(in, in.operands.back(), Type::kPred));
    }
    Value* v = e.Mark(marker::kBarrier, e.Int(32),
                      {id, count, e.I32(static_cast<uint32_t>(vote)), e.I32(arrives), p});
    if (!votes) return {};
    if (vote != BarrierVote::kPopc) v = e.ir.CreateICmpNE(v, e.I32(0));
    return e.Write(in, in.operands[0], v);
  }
  id = e.ir.CreateSelect(e.ir.CreateICmpULT(id, e.I32(kNumberedBarriers)), id, e.I32(~0u));
  e.StoreLane(offsetof(Lane, op), id);
  e.StoreLane(offsetof(Lane, count), count);
  e.StoreLane(offsetof(Lane, b), e.I32(static_cast<uint32_t>(vote)));
  e.StoreLane(offsetof(Lane, c), e.I32(arrives));
  if (votes) {
    TRY(Value * p, e.Read(in, in.operands.back(), Type::kPred));
    e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(p, e.Int(64)));
  }
  TRY(e.Suspend(in, Step::kBarrier));
  if (!votes) return {};
  Value* v = ResultWord(e);
  if (vote != BarrierVote::kPopc) v = e.ir.CreateICmpNE(v, e.I32(0));
  return e.Write(in, in.operands[0], v);
}

Status EmitShfl(Emitter& e, const Instruction& in) {
  bool sync = in.Has(Mod::kSync);
  if (in.operands.size() != (sync ? 5u : 4u))
    return e.Refuse(in, fmt::format("takes {} operands", sync ? 5 : 4));
  if (in.TypeAt() != Type::kB32 && ptx::BitsOf(in.TypeAt()) != 32) {
    return e.Refuse(in, "shuffles a type that PTX does not give it");
  }
  TRY(Value * a, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * b, e.Read(in, in.operands[2], Type::kB32));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
  Collective op = in.Has(Mod::kUp)     ? Collective::kShflUp
                  : in.Has(Mod::kDown) ? Collective::kShflDown
                  : in.Has(Mod::kBfly) ? Collective::kShflBfly
                                       : Collective::kShflIdx;
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, op, sync ? &in.operands[4] : nullptr, a, b, c));
    return WriteBoth(e, in, met.word, met.predicate);
  }
  e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(a, e.Int(64)));
  e.StoreLane(offsetof(Lane, b), b);
  e.StoreLane(offsetof(Lane, c), c);
  TRY(Meet(e, in, op, sync ? &in.operands[4] : nullptr));
  return WriteBoth(e, in, ResultWord(e), ResultPredicate(e));
}

Status EmitVote(Emitter& e, const Instruction& in) {
  bool sync = in.Has(Mod::kSync);
  if (in.operands.size() != (sync ? 3u : 2u))
    return e.Refuse(in, fmt::format("takes {} operands", sync ? 3 : 2));
  TRY(Value * p, e.Read(in, in.operands[1], Type::kPred));
  Collective op = in.Has(Mod::kBallot) ? Collective::kVoteBallot
                  : in.Has(Mod::kAll)  ? Collective::kVoteAll
                  : in.Has(Mod::kAny)  ? Collective::kVoteAny
                                       : Collective::kVoteUni;
  Value* v = nullptr;
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, op, sync ? &in.operands[2] : nullptr, e.ir.CreateZExt(p, e.Int(32)),
                                 nullptr, nullptr));
    v = met.word;
  } else {
    e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(p, e.Int(64)));
    TRY(Meet(e, in, op, sync ? &in.operands[2] : nullptr));
    v = ResultWord(e);
  }
  if (op != Collective::kVoteBallot) v = e.ir.CreateICmpNE(v, e.I32(0));
  return e.Write(in, in.operands[0], v);
}

Status EmitMatch(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 3) return e.Refuse(in, "takes 3 operands");
  bool wide = ptx::BitsOf(in.TypeAt()) == 64;
  TRY(Value * a, e.Read(in, in.operands[1], wide ? Type::kB64 : Type::kB32));
  Collective op = in.Has(Mod::kAny) ? (wide ? Collective::kMatchAny64 : Collective::kMatchAny32)
                                    : (wide ? Collective::kMatchAll64 : Collective::kMatchAll32);
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, op, &in.operands[2], a, nullptr, nullptr));
    return WriteBoth(e, in, met.word, met.predicate);
  }
  e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(a, e.Int(64)));
  TRY(Meet(e, in, op, &in.operands[2]));
  return WriteBoth(e, in, ResultWord(e), ResultPredicate(e));
}

Status EmitRedux(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 3) return e.Refuse(in, "takes 3 operands");
  Type t = in.TypeAt();
  bool is_float = t == Type::kF32;
  if ((t != Type::kU32 && t != Type::kS32 && t != Type::kB32 && !is_float) ||
      (is_float ? !(in.Has(Mod::kMin) || in.Has(Mod::kMax)) : in.Has(Mod::kAbs) || in.Has(Mod::kNan))) {
    return e.Refuse(in, "reduces a type that PTX does not give it");
  }
  TRY(Value * a, e.Read(in, in.operands[1], Type::kB32));
  if (in.Has(Mod::kAbs)) a = e.ir.CreateAnd(a, e.I32(0x7fffffff));
  bool is_signed = t == Type::kS32;
  if (is_float) {
    if (e.lockstep()) return e.Refuse(in, "is not carried out in lockstep");
    e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(a, e.Int(64)));
    e.StoreLane(offsetof(Lane, b), e.I32(in.Has(Mod::kNan)));
    TRY(Meet(e, in, in.Has(Mod::kMin) ? Collective::kReduxMinF : Collective::kReduxMaxF, &in.operands[2]));
    return e.Write(in, in.operands[0], ResultWord(e));
  }
  Collective op = in.Has(Mod::kAdd)   ? Collective::kReduxAdd
                  : in.Has(Mod::kAnd) ? Collective::kReduxAnd
                  : in.Has(Mod::kOr)  ? Collective::kReduxOr
                  : in.Has(Mod::kXor) ? Collective::kReduxXor
                  : in.Has(Mod::kMin) ? (is_signed ? Collective::kReduxMinS : Collective::kReduxMinU)
                                      : (is_signed ? Collective::kReduxMaxS : Collective::kReduxMaxU);
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, op, &in.operands[2], a, nullptr, nullptr));
    return e.Write(in, in.operands[0], met.word);
  }
  e.StoreLane(offsetof(Lane, value), e.ir.CreateZExt(a, e.Int(64)));
  TRY(Meet(e, in, op, &in.operands[2]));
  return e.Write(in, in.operands[0], ResultWord(e));
}

Status EmitElect(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, Collective::kElect, &in.operands[1], nullptr, nullptr, nullptr));
    return WriteBoth(e, in, met.word, met.predicate);
  }
  TRY(Meet(e, in, Collective::kElect, &in.operands[1]));
  return WriteBoth(e, in, ResultWord(e), ResultPredicate(e));
}

Status EmitActivemask(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
  if (e.lockstep()) {
    TRY(auto met, MeetInLockstep(e, in, Collective::kActivemask, nullptr, nullptr, nullptr, nullptr));
    return e.Write(in, in.operands[0], met.word);
  }
  TRY(Meet(e, in, Collective::kActivemask, nullptr));
  return e.Write(in, in.operands[0], ResultWord(e));
}

}  // namespace cuplex::softcuda
