// Widener: barriers and collectives, where lanes meet. In lockstep the lanes of a warp are together already.
#include <bit>

#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/lockstep/widen.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda::lockstep {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

/// Leaves the warp's function until the barrier opens. warp_suspension.h makes of the call of `warp.suspend`
/// what it says.
Status Widener::EmitBarrier(llvm::CallInst& call) {
  if (!flow_.IsGathered(at_)) return Refuse("a barrier that lanes of a warp come to by different ways");
  for (unsigned n = 0; n < 2; ++n) {
    if (!ShapeOf(call.getArgOperand(n)).uniform()) return Refuse("a barrier that differs between lanes");
  }
  Value* number = Scalar(call.getArgOperand(0));
  Value* count = Scalar(call.getArgOperand(1));
  auto vote = llvm::cast<llvm::ConstantInt>(call.getArgOperand(2));
  auto arrives = llvm::cast<llvm::ConstantInt>(call.getArgOperand(3));
  StoreField(offsetof(Warp, waiting), Bits32(lanes_));
  StoreField(offsetof(Warp, barrier), number);
  StoreField(offsetof(Warp, count), count);
  StoreField(offsetof(Warp, vote), vote);
  StoreField(offsetof(Warp, arrives), arrives);
  bool votes = !vote->isZero();
  if (votes) {
    Value* p = AndLanes(lanes_, Single(call.getArgOperand(4)));
    StoreField(offsetof(Warp, ballot), Bits32(p));
  }
  Call("warp.suspend", ir_.getVoidTy(), {});
  SetScalar(call, votes ? ir_.CreateLoad(ir_.getInt32Ty(), FieldAddress(offsetof(Warp, result)))
                        : static_cast<Value*>(I32(0)));
  return {};
}

/// The value of the lane that each lane asks for, and whether there is such a lane in its segment.
Result<Value*> Widener::Shuffle(llvm::CallInst& call, Value*& inside) {
  auto op = static_cast<Collective>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue());
  Value* value = Single(call.getArgOperand(2));
  Value *b = call.getArgOperand(3), *c = call.getArgOperand(4);
  auto* fixed_b = llvm::dyn_cast<llvm::ConstantInt>(b);
  auto* fixed_c = llvm::dyn_cast<llvm::ConstantInt>(c);
  if (fixed_b && fixed_c) {
    std::vector<int> from;
    std::vector<llvm::Constant*> within;
    auto delta = static_cast<uint32_t>(fixed_b->getZExtValue()) & 31;
    auto packed = static_cast<uint32_t>(fixed_c->getZExtValue());
    uint32_t clamp = packed & 31, segment = packed >> 8 & 31;
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t last = (i & segment) | (clamp & ~segment & 31);
      int32_t j = static_cast<int32_t>(i);
      bool in = false;
      if (op == Collective::kShflUp) {
        j -= static_cast<int32_t>(delta);
        in = j >= static_cast<int32_t>(last);
      } else {
        j = static_cast<int32_t>(op == Collective::kShflDown   ? i + delta
                                 : op == Collective::kShflBfly ? i ^ delta
                                                               : (i & segment) | (delta & ~segment & 31));
        in = j <= static_cast<int32_t>(last);
      }
      from.push_back(in ? j : static_cast<int>(i));
      within.push_back(ir_.getInt1(in));
    }
    inside = llvm::ConstantVector::get(within);
    Value* out = ir_.CreateShuffleVector(value, from);
    if (!lanes_) return out;
    return ir_.CreateSelect(ir_.CreateShuffleVector(lanes_, from), out, value);
  }
  // By lane numbers that are not known before: through memory.
  llvm::Type* i32 = WideType(ir_.getInt32Ty());
  auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* own = Steps(ir_.getInt32Ty(), 1);
  Value* delta = ir_.CreateAnd(Single(b), constant(31));
  Value* packed = Single(c);
  Value* clamp = ir_.CreateAnd(packed, constant(31));
  Value* segment = ir_.CreateAnd(ir_.CreateLShr(packed, constant(8)), constant(31));
  Value* outside_segment = ir_.CreateXor(segment, constant(31));
  Value* start = ir_.CreateAnd(own, segment);
  Value* last = ir_.CreateOr(start, ir_.CreateAnd(clamp, outside_segment));
  Value* from = nullptr;
  if (op == Collective::kShflUp) {
    from = ir_.CreateSub(own, delta);
    inside = ir_.CreateICmpSGE(from, last);
  } else {
    from = op == Collective::kShflDown   ? ir_.CreateAdd(own, delta)
           : op == Collective::kShflBfly ? ir_.CreateXor(own, delta)
                                         : ir_.CreateOr(start, ir_.CreateAnd(delta, outside_segment));
    inside = ir_.CreateICmpSLE(from, last);
  }
  from = ir_.CreateAnd(ir_.CreateSelect(inside, from, own), constant(31));
  if (lanes_) {
    Value* there = ir_.CreateLShr(Splat(Bits32(lanes_)), from);
    from = ir_.CreateSelect(ir_.CreateTrunc(there, WideType(ir_.getInt1Ty())), from, own);
  }
  auto* slot =
      llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(ir_.getInt32Ty(), width_));
  slot->setAlignment(llvm::Align(64));
  ir_.CreateAlignedStore(value, slot, llvm::Align(64));
  Value* at = ir_.CreateGEP(ir_.getInt32Ty(), slot, from);
  return ir_.CreateMaskedGather(i32, at, llvm::Align(4));
}

Status Widener::EmitCollective(llvm::CallInst& call, bool wide) {
  if (width_ != 32) return Refuse("a collective of 32 lanes");
  auto op = static_cast<Collective>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue());
  bool sync = !llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->isZero();
  if (sync && !flow_.IsGathered(at_)) {
    return Refuse("a collective that lanes of a warp come to by different ways");
  }
  llvm::Type* i32 = ir_.getInt32Ty();
  Value* mask = call.getArgOperand(5);
  bool uniform = ShapeOf(mask).uniform();
  auto give = [&](Value* word, Value* predicate) {
    if (!word->getType()->isVectorTy()) word = Splat(word);
    if (!predicate) predicate = llvm::Constant::getAllOnesValue(WideType(ir_.getInt1Ty()));
    SetWide(call, {word, predicate});
  };
  // What a uniform mask makes the same for all lanes stays scalar; its users see a struct, so it is made one.
  auto give_scalar = [&](Value* word) {
    Value* both = llvm::PoisonValue::get(call.getType());
    both = ir_.CreateInsertValue(both, word, 0);
    SetScalar(call, ir_.CreateInsertValue(both, ir_.getTrue(), 1));
  };
  Value* here = Bits32(lanes_);
  switch (op) {
    case Collective::kSync:
      if (ShapeOf(&call).uniform()) {
        give_scalar(I32(0));
      } else {
        give(I32(0), nullptr);
      }
      return {};
    case Collective::kShflUp:
    case Collective::kShflDown:
    case Collective::kShflBfly:
    case Collective::kShflIdx: {
      Value* inside = nullptr;
      TRY(Value * word, Shuffle(call, inside));
      give(word, inside);
      return {};
    }
    case Collective::kActivemask:
      give_scalar(here);
      return {};
    case Collective::kVoteAll:
    case Collective::kVoteAny:
    case Collective::kVoteUni:
    case Collective::kVoteBallot: {
      Value* yes = AndLanes(lanes_, ir_.CreateICmpNE(Single(call.getArgOperand(2)),
                                                     llvm::Constant::getNullValue(WideType(i32))));
      Value* bits = Bits32(yes);
      Value* group = nullptr;
      if (uniform) {
        group = ir_.CreateAnd(Scalar(mask), here);
      } else {
        group = ir_.CreateAnd(Single(mask), Splat(here));
        bits = Splat(bits);
      }
      Value* ballot = ir_.CreateAnd(bits, group);
      Value* zero = llvm::Constant::getNullValue(ballot->getType());
      Value* all = ir_.CreateICmpEQ(ballot, group);
      Value* any = ir_.CreateICmpNE(ballot, zero);
      Value* word = op == Collective::kVoteBallot ? ballot
                    : op == Collective::kVoteAll  ? all
                    : op == Collective::kVoteAny  ? any
                                                  : ir_.CreateOr(all, ir_.CreateNot(any));
      word = ir_.CreateZExt(word, ballot->getType());
      if (uniform) {
        give_scalar(word);
      } else {
        give(word, nullptr);
      }
      return {};
    }
    case Collective::kElect: {
      Value* group = ir_.CreateAnd(Single(mask), Splat(here));
      Value* leader = ir_.CreateIntrinsic(Intrinsic::cttz, {group->getType()}, {group, ir_.getFalse()});
      give(leader, ir_.CreateICmpEQ(leader, Steps(i32, 1)));
      return {};
    }
    default:
      break;
  }
  bool reduces = op >= Collective::kReduxAdd && op <= Collective::kReduxMaxU;
  if (reduces && uniform) {
    Value* value = Single(call.getArgOperand(2));
    uint32_t neutral = op == Collective::kReduxAnd || op == Collective::kReduxMinU ? ~0u
                       : op == Collective::kReduxMinS ? static_cast<uint32_t>(INT32_MAX)
                       : op == Collective::kReduxMaxS ? static_cast<uint32_t>(INT32_MIN)
                                                      : 0;
    Value* group = ir_.CreateBitCast(ir_.CreateAnd(Scalar(mask), here), WideType(ir_.getInt1Ty()));
    value = ir_.CreateSelect(group, value, Splat(I32(neutral)));
    auto id = op == Collective::kReduxAdd    ? Intrinsic::vector_reduce_add
              : op == Collective::kReduxAnd  ? Intrinsic::vector_reduce_and
              : op == Collective::kReduxOr   ? Intrinsic::vector_reduce_or
              : op == Collective::kReduxXor  ? Intrinsic::vector_reduce_xor
              : op == Collective::kReduxMinS ? Intrinsic::vector_reduce_smin
              : op == Collective::kReduxMinU ? Intrinsic::vector_reduce_umin
              : op == Collective::kReduxMaxS ? Intrinsic::vector_reduce_smax
                                             : Intrinsic::vector_reduce_umax;
    give_scalar(ir_.CreateIntrinsic(id, {value->getType()}, {value}));
    return {};
  }
  bool matches = op >= Collective::kMatchAny32 && op <= Collective::kMatchAll64;
  if (!reduces && !matches) return Refuse("a collective that it does not know");
  // The rest is rare enough to be done by a function, on arrays.
  auto array = [&](llvm::Type* element) {
    auto* slot =
        llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(element, width_));
    slot->setAlignment(llvm::Align(64));
    return slot;
  };
  Value* value = Single(call.getArgOperand(2));
  if (!wide) value = ir_.CreateZExt(value, WideType(ir_.getInt64Ty()));
  Value *values = array(ir_.getInt64Ty()), *masks = array(i32), *words = array(i32), *predicates = array(i32);
  ir_.CreateAlignedStore(value, values, llvm::Align(64));
  ir_.CreateAlignedStore(Single(mask), masks, llvm::Align(64));
  Call("cuplex_warp_collective", ir_.getVoidTy(),
       {I32(static_cast<uint32_t>(op)), here, values, masks, words, predicates});
  Value* word = ir_.CreateAlignedLoad(WideType(i32), words, llvm::Align(64));
  Value* predicate = ir_.CreateAlignedLoad(WideType(i32), predicates, llvm::Align(64));
  give(word, ir_.CreateICmpNE(predicate, llvm::Constant::getNullValue(WideType(i32))));
  return {};
}

}  // namespace cuplex::softcuda::lockstep
