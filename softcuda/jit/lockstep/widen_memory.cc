// Widener: loads, stores, and the checks of addresses that come before them.
#include <bit>

#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/lockstep/widen.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda::lockstep {

using llvm::Value;

namespace {

struct Parts {
  llvm::Type* element = nullptr;
  unsigned count = 1;
  unsigned bytes = 0;  // of an element
};

Parts PartsOf(llvm::Type* t, const llvm::DataLayout& layout) {
  Parts p{t, 1, 0};
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(t)) {
    p.element = v->getElementType();
    p.count = v->getNumElements();
  }
  p.bytes = static_cast<unsigned>(layout.getTypeStoreSize(p.element).getFixedValue());
  return p;
}

unsigned PartAlignment(unsigned whole, unsigned offset) {
  return offset ? std::min(whole, 1u << std::countr_zero(offset)) : whole;
}

}  // namespace

Widener::Indexed Widener::Split(Value* v) {
  auto* i = llvm::dyn_cast<llvm::Instruction>(v);
  if (!i || ShapeOf(v).scalar()) return {};
  auto moved = [&](Indexed in, Value* by) {
    if (in.scale) in.base = ir_.CreateAdd(in.base, by);
    return in;
  };
  auto scaled = [&](Indexed in, uint64_t by) -> Indexed {
    if (!in.scale || by > 8 || in.scale * by > 8) return {};
    in.base = ir_.CreateMul(in.base, I64(by));
    in.scale *= static_cast<unsigned>(by);
    return in;
  };
  auto* disjoint = llvm::dyn_cast<llvm::PossiblyDisjointInst>(i);
  switch (i->getOpcode()) {
    case llvm::Instruction::IntToPtr:
      return Split(i->getOperand(0));
    case llvm::Instruction::Or:
      if (!disjoint->isDisjoint()) return {};
      [[fallthrough]];
    case llvm::Instruction::Add:
      for (unsigned n = 0; n < 2; ++n) {
        if (ShapeOf(i->getOperand(n)).uniform()) {
          return moved(Split(i->getOperand(1 - n)), Scalar(i->getOperand(n)));
        }
      }
      return {};
    case llvm::Instruction::Shl:
      if (auto* by = llvm::dyn_cast<llvm::ConstantInt>(i->getOperand(1)); by && by->getLimitedValue(64) < 4) {
        return scaled(Split(i->getOperand(0)), uint64_t{1} << by->getZExtValue());
      }
      return {};
    case llvm::Instruction::ZExt:
      if (!i->hasNonNeg()) return {};
      [[fallthrough]];
    case llvm::Instruction::SExt:
      if (!i->getOperand(0)->getType()->isIntegerTy(32)) return {};
      return {I64(0), Single(i->getOperand(0)), 1, false};
    case llvm::Instruction::Call: {
      const auto* callee = llvm::cast<llvm::CallInst>(i)->getCalledFunction();
      if (!callee || callee->getName() != marker::kOffset) return {};
      return {I64(0), Single(i->getOperand(0)), 1, true};
    }
    default:
      return {};
  }
}

/// With 32-bit indices processors gather twice as many lanes at once.
Value* Widener::Pointers(const Indexed& indexed, int64_t offset) {
  Value* base = ir_.CreateAdd(indexed.base, I64(static_cast<uint64_t>(offset)));
  Value* index = ir_.CreateSExt(indexed.index, WideType(ir_.getInt64Ty()));
  return ir_.CreateGEP(ir_.getIntNTy(indexed.scale * 8), ir_.CreateIntToPtr(base, ir_.getPtrTy()), index);
}

/// <W x element> from W addresses (<W x i64>).
Value* Widener::Gather(llvm::Type* element, Value* addresses, Value* lanes, unsigned alignment) {
  unsigned bits = static_cast<unsigned>(element->getPrimitiveSizeInBits());
  auto pointers = [&](Value* a) { return ir_.CreateIntToPtr(a, WideType(ir_.getPtrTy())); };
  if (bits >= 32) {
    return ir_.CreateMaskedGather(WideType(element), pointers(addresses), llvm::Align(alignment), lanes);
  }
  // Processors gather words: take the word around, which lies in the same page.
  auto* i64 = addresses->getType();
  Value* words = ir_.CreateAnd(addresses, llvm::ConstantInt::get(i64, ~uint64_t{3}));
  Value* word = ir_.CreateMaskedGather(WideType(ir_.getInt32Ty()), pointers(words), llvm::Align(4), lanes);
  Value* shift =
      ir_.CreateShl(ir_.CreateAnd(addresses, llvm::ConstantInt::get(i64, 3)), llvm::ConstantInt::get(i64, 3));
  Value* v = ir_.CreateLShr(word, ir_.CreateTrunc(shift, word->getType()));
  return ir_.CreateBitCast(ir_.CreateTrunc(v, WideType(ir_.getIntNTy(bits))), WideType(element));
}

void Widener::Scatter(Value* values, Value* addresses, Value* lanes, unsigned alignment) {
  ir_.CreateMaskedScatter(values, ir_.CreateIntToPtr(addresses, WideType(ir_.getPtrTy())),
                          llvm::Align(alignment), lanes);
}

Value* Widener::LoadRow(llvm::Type* element, Value* base, Value* lanes, unsigned alignment,
                        bool is_volatile) {
  if (!lanes) return ir_.CreateAlignedLoad(WideType(element), base, llvm::Align(alignment), is_volatile);
  return ir_.CreateMaskedLoad(WideType(element), base, llvm::Align(alignment), lanes);
}

void Widener::StoreRow(Value* values, Value* base, Value* lanes, unsigned alignment, bool is_volatile) {
  if (!lanes) {
    ir_.CreateAlignedStore(values, base, llvm::Align(alignment), is_volatile);
  } else {
    ir_.CreateMaskedStore(values, base, llvm::Align(alignment), lanes);
  }
}

Status Widener::EmitLoad(llvm::LoadInst& load) {
  Value* pointer = load.getPointerOperand();
  const Shape& shape = ShapeOf(pointer);
  if (ShapeOf(&load).uniform()) {
    EmitScalar(load);
    return {};
  }
  Parts p = PartsOf(load.getType(), layout_);
  if (p.element->isIntegerTy(1) || p.bytes > 8 ||
      p.element->getPrimitiveSizeInBits() != uint64_t{p.bytes} * 8) {
    return EmitPerLane(load);
  }
  auto alignment = static_cast<unsigned>(load.getAlign().value());
  auto gather = [&](Value* from) {
    Wide out;
    for (unsigned k = 0; k < p.count; ++k) {
      Value* at = k ? ir_.CreateAdd(from, llvm::ConstantInt::get(from->getType(), k * p.bytes)) : from;
      out.push_back(Gather(p.element, at, lanes_, PartAlignment(alignment, k * p.bytes)));
    }
    return out;
  };
  auto exact = [&] { return ir_.CreatePtrToInt(Single(pointer), WideType(ir_.getInt64Ty())); };
  if (p.bytes >= 4) {
    if (Indexed indexed = Split(pointer); indexed.scale) {
      Wide out;
      for (unsigned k = 0; k < p.count; ++k) {
        out.push_back(ir_.CreateMaskedGather(WideType(p.element), Pointers(indexed, k * p.bytes),
                                             llvm::Align(PartAlignment(alignment, k * p.bytes)), lanes_));
      }
      SetWide(load, out);
      return {};
    }
  }
  auto affine = [&] {
    Value* base = ir_.CreatePtrToInt(Scalar(pointer), ir_.getInt64Ty());
    return ir_.CreateAdd(Splat(base), Steps(ir_.getInt64Ty(), shape.stride));
  };
  if (!shape.affine()) {
    SetWide(load, gather(exact()));
    return {};
  }
  unsigned whole = p.bytes * p.count;
  bool row = shape.stride == static_cast<int64_t>(whole);
  std::function<Wide()> hot = [&]() -> Wide { return gather(affine()); };
  Value* likely = NeverWraps(shape);
  if (row && p.count == 1) {
    hot = [&]() -> Wide {
      return {LoadRow(p.element, Scalar(pointer), lanes_, alignment, load.isVolatile())};
    };
  } else if (row) {
    // All lanes' elements lie in one row: load it and deal them out.
    hot = [&]() -> Wide {
      auto* type = llvm::FixedVectorType::get(p.element, width_ * p.count);
      Value* all = ir_.CreateAlignedLoad(type, Scalar(pointer), llvm::Align(alignment), load.isVolatile());
      Wide out;
      for (unsigned k = 0; k < p.count; ++k) {
        std::vector<int> mask;
        for (unsigned l = 0; l < width_; ++l) mask.push_back(static_cast<int>(l * p.count + k));
        out.push_back(ir_.CreateShuffleVector(all, mask));
      }
      return out;
    };
    if (lanes_) {
      Value* everyone =
          ir_.CreateICmpEQ(Bits(lanes_), llvm::Constant::getAllOnesValue(ir_.getIntNTy(width_)));
      likely = likely ? ir_.CreateAnd(likely, everyone) : everyone;
    }
  }
  if (!likely) {
    SetWide(load, hot());
  } else if (CanDescribe(shape)) {
    SetWide(load, Choose(likely, hot, [&] {
              Value* values = Scratch(values_, uint64_t{kWarpSize} * 8 * 4);
              Call("cuplex_warp_load", ir_.getVoidTy(),
                   {Describe(pointer), Bits32(lanes_), values, I32(p.bytes), I32(p.count)});
              Wide out;
              for (unsigned k = 0; k < p.count; ++k) {
                Value* at = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), values, k * kWarpSize * p.bytes);
                out.push_back(ir_.CreateAlignedLoad(WideType(p.element), at, llvm::Align(8)));
              }
              return out;
            }));
  } else {
    SetWide(load, Choose(likely, hot, [&] { return gather(exact()); }));
  }
  return {};
}

Status Widener::EmitStore(llvm::StoreInst& store) {
  Value* pointer = store.getPointerOperand();
  Value* value = store.getValueOperand();
  const Shape& shape = ShapeOf(pointer);
  Parts p = PartsOf(value->getType(), layout_);
  auto alignment = static_cast<unsigned>(store.getAlign().value());
  if (shape.uniform() && ShapeOf(value).uniform()) {
    llvm::Instruction* clone = store.clone();
    clone->setOperand(0, Scalar(value));
    clone->setOperand(1, Scalar(pointer));
    ir_.Insert(clone);
    return {};
  }
  if (p.element->isIntegerTy(1) || p.bytes > 8 ||
      p.element->getPrimitiveSizeInBits() != uint64_t{p.bytes} * 8) {
    return EmitPerLane(store);
  }
  if (shape.uniform()) {  // the last lane that is there has the last word
    Value* last = lanes_
                      ? ir_.CreateSub(I32(31), ir_.CreateIntrinsic(llvm::Intrinsic::ctlz, {ir_.getInt32Ty()},
                                                                   {Bits32(lanes_), ir_.getTrue()}))
                      : static_cast<Value*>(I32(width_ - 1));
    Wide wide = Vector(value);
    for (unsigned k = 0; k < wide.size(); ++k) {
      Value* at = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), Scalar(pointer), k * p.bytes);
      ir_.CreateAlignedStore(ir_.CreateExtractElement(wide[k], last), at,
                             llvm::Align(PartAlignment(alignment, k * p.bytes)), store.isVolatile());
    }
    return {};
  }
  Wide values = Vector(value);
  auto scatter = [&](Value* to) {
    for (unsigned k = 0; k < p.count; ++k) {
      Value* at = k ? ir_.CreateAdd(to, llvm::ConstantInt::get(to->getType(), k * p.bytes)) : to;
      Scatter(values[k], at, lanes_, PartAlignment(alignment, k * p.bytes));
    }
  };
  auto exact = [&] { return ir_.CreatePtrToInt(Single(pointer), WideType(ir_.getInt64Ty())); };
  if (Indexed indexed = p.bytes >= 4 ? Split(pointer) : Indexed{}; indexed.scale) {
    for (unsigned k = 0; k < p.count; ++k) {
      ir_.CreateMaskedScatter(values[k], Pointers(indexed, k * p.bytes),
                              llvm::Align(PartAlignment(alignment, k * p.bytes)), lanes_);
    }
    return {};
  }
  if (!shape.affine()) {
    scatter(exact());
    return {};
  }
  bool row = shape.stride == static_cast<int64_t>(p.bytes * p.count);
  std::function<void()> hot = [&] {
    Value* base = ir_.CreatePtrToInt(Scalar(pointer), ir_.getInt64Ty());
    scatter(ir_.CreateAdd(Splat(base), Steps(ir_.getInt64Ty(), shape.stride)));
  };
  Value* likely = NeverWraps(shape);
  if (row && p.count == 1) {
    hot = [&] { StoreRow(values[0], Scalar(pointer), lanes_, alignment, store.isVolatile()); };
  } else if (row) {
    hot = [&] {
      auto concatenate = [&](Value* a, Value* b, unsigned each) {
        std::vector<int> mask;
        for (unsigned n = 0; n < 2 * each; ++n) mask.push_back(static_cast<int>(n));
        return ir_.CreateShuffleVector(a, b, mask);
      };
      // Two or four vectors side by side, then element k of lane l to place l * count + k.
      Value* all = concatenate(values[0], values[1], width_);
      if (p.count == 4) all = concatenate(all, concatenate(values[2], values[3], width_), 2 * width_);
      std::vector<int> mask;
      for (unsigned l = 0; l < width_; ++l) {
        for (unsigned k = 0; k < p.count; ++k) mask.push_back(static_cast<int>(k * width_ + l));
      }
      ir_.CreateAlignedStore(ir_.CreateShuffleVector(all, mask), Scalar(pointer), llvm::Align(alignment),
                             store.isVolatile());
    };
    if (p.count != 2 && p.count != 4) return EmitPerLane(store);
    if (lanes_) {
      Value* everyone =
          ir_.CreateICmpEQ(Bits(lanes_), llvm::Constant::getAllOnesValue(ir_.getIntNTy(width_)));
      likely = likely ? ir_.CreateAnd(likely, everyone) : everyone;
    }
  }
  if (!likely) {
    hot();
  } else {
    Choose(
        likely,
        [&]() -> Wide {
          hot();
          return {};
        },
        [&]() -> Wide {
          if (!CanDescribe(shape)) {
            scatter(exact());
            return {};
          }
          Value* out = Scratch(values_, uint64_t{kWarpSize} * 8 * 4);
          for (unsigned k = 0; k < p.count; ++k) {
            Value* at = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), out, k * kWarpSize * p.bytes);
            ir_.CreateAlignedStore(values[k], at, llvm::Align(8));
          }
          Call("cuplex_warp_store", ir_.getVoidTy(),
               {Describe(pointer), Bits32(lanes_), out, I32(p.bytes), I32(p.count)});
          return {};
        });
  }
  return {};
}

Value* Widener::Scratch(Value*& slot, uint64_t bytes) {
  if (!slot) {
    auto* made =
        llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(ir_.getInt8Ty(), bytes));
    made->setAlignment(llvm::Align(64));
    slot = made;
  }
  return slot;
}

bool Widener::CanDescribe(const Shape& shape) const {
  if (!shape.scalar() || shape.wraps.size() > WarpAddresses::kMostWraps) return false;
  return std::all_of(shape.wraps.begin(), shape.wraps.end(), [&](const auto& wrap) {
    return llvm::isa<llvm::CastInst>(wrap.first) && ShapeOf(wrap.first->getOperand(0)).wraps.empty();
  });
}

/// A WarpAddresses of the value, valid until the next one is made.
Value* Widener::Describe(Value* v) {
  const Shape& shape = ShapeOf(v);
  Value* slot = Scratch(described_, sizeof(WarpAddresses));
  auto put = [&](size_t offset, Value* value) {
    ir_.CreateStore(value, ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), slot, offset));
  };
  Value* base = Scalar(v);
  if (base->getType()->isPointerTy()) base = ir_.CreatePtrToInt(base, ir_.getInt64Ty());
  put(offsetof(WarpAddresses, base), base);
  put(offsetof(WarpAddresses, stride), I64(static_cast<uint64_t>(shape.stride)));
  put(offsetof(WarpAddresses, wraps), I64(shape.wraps.size()));
  size_t at = offsetof(WarpAddresses, wrap);
  for (auto [extension, times] : shape.wraps) {
    Value* narrow = extension->getOperand(0);
    put(at + offsetof(WarpAddresses::Wrap, narrow), Scalar(narrow));
    put(at + offsetof(WarpAddresses::Wrap, stride), I32(static_cast<uint32_t>(ShapeOf(narrow).stride)));
    put(at + offsetof(WarpAddresses::Wrap, times), I64(static_cast<uint64_t>(times)));
    put(at + offsetof(WarpAddresses::Wrap, is_signed), I64(llvm::isa<llvm::SExtInst>(extension)));
    at += sizeof(WarpAddresses::Wrap);
  }
  return slot;
}

/// Tells a runtime function the lanes' addresses; it comes back if those of the lanes that are there are
/// right.
void Widener::ReportOutside(Value* v, const char* function, llvm::ArrayRef<Value*> more) {
  Value* none = llvm::ConstantPointerNull::get(ir_.getPtrTy());
  Value *described = none, *list = none;
  if (CanDescribe(ShapeOf(v))) {
    described = Describe(v);
  } else {
    list = Scratch(list_, uint64_t{kWarpSize} * 8);
    ir_.CreateAlignedStore(Single(v), list, llvm::Align(64));
  }
  std::vector<Value*> args = {out_.getArg(0), out_.getArg(1), described, list, Bits32(lanes_)};
  args.insert(args.end(), more.begin(), more.end());
  Call(function, ir_.getVoidTy(), args);
}

Status Widener::EmitCheckWindow(llvm::CallInst& call) {
  Value* address = call.getArgOperand(0);
  const Shape& shape = ShapeOf(address);
  auto alignment =
      static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(3))->getZExtValue());
  auto shift = static_cast<unsigned>(std::countr_zero(alignment));
  const Window& window = window_.all();
  // Rotating right brings the low bits, which alignment wants zero, to the top: one compare sees both.
  auto inside = [&](Value* a) {
    llvm::Type* t = a->getType();
    Value* distance = ir_.CreateSub(a, llvm::ConstantInt::get(t, window.base));
    if (shift) {
      Value* by = llvm::ConstantInt::get(t, shift);
      distance = ir_.CreateIntrinsic(llvm::Intrinsic::fshr, {t}, {distance, distance, by});
    }
    return ir_.CreateICmpULT(distance, llvm::ConstantInt::get(t, window.size >> shift));
  };
  auto report = [&] {
    ReportOutside(address, "cuplex_warp_outside_window",
                  {call.getArgOperand(1), call.getArgOperand(2), call.getArgOperand(3)});
  };
  if (shape.uniform()) {
    Value* a = Scalar(address);
    Unless(inside(a), report);
    return {};
  }
  if (shape.affine() && shape.stride % static_cast<int64_t>(alignment) == 0) {
    // The first lane and the last: the others lie between.
    Value* a = Scalar(address);
    Value* last =
        ir_.CreateAdd(a, I64(static_cast<uint64_t>(shape.stride * (static_cast<int64_t>(width_) - 1))));
    Value* ok =
        ir_.CreateAnd(inside(a), ir_.CreateICmpULT(ir_.CreateSub(last, I64(window.base)), I64(window.size)));
    if (Value* never = NeverWraps(shape)) ok = ir_.CreateAnd(ok, never);
    Unless(ok, [&] {
      // Lanes at a bound are common enough to be looked at here.
      if (CanDescribe(shape)) return report();
      Value* beyond = AndLanes(lanes_, ir_.CreateNot(inside(Single(address))));
      Unless(ir_.CreateNot(Any(beyond)), report);
    });
    return {};
  }
  if (Indexed x = Split(address); x.scale && x.scale % alignment == 0) {
    // The window in terms of the index: two compares of 32 bits a lane.
    unsigned k = static_cast<unsigned>(std::countr_zero(x.scale));
    Value* distance = ir_.CreateSub(I64(window.base), x.base);
    Value* first = ir_.CreateAShr(ir_.CreateAdd(distance, I64(x.scale - 1)), k);
    Value* last = ir_.CreateAShr(ir_.CreateAdd(distance, I64(window.size - 1)), k);
    Value* fits = ir_.CreateAnd(ir_.CreateICmpSLE(first, I64(INT32_MAX)),
                                ir_.CreateICmpSGE(last, I64(static_cast<uint64_t>(int64_t{INT32_MIN}))));
    if (alignment > 1) {
      Value* odd = ir_.CreateAnd(x.base, I64(alignment - 1));
      fits = ir_.CreateAnd(fits, ir_.CreateICmpEQ(odd, I64(0)));
    }
    auto clamp = [&](Value* v) {
      v = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, I64(static_cast<uint64_t>(int64_t{INT32_MIN})));
      v = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, I64(INT32_MAX));
      return Splat(ir_.CreateTrunc(v, ir_.getInt32Ty()));
    };
    Value* ok =
        ir_.CreateAnd(ir_.CreateICmpSGE(x.index, clamp(first)), ir_.CreateICmpSLE(x.index, clamp(last)));
    Value* outside = AndLanes(lanes_, ir_.CreateNot(ok));
    Unless(ir_.CreateAnd(fits, ir_.CreateNot(Any(outside))), report);
    return {};
  }
  Value* a = Single(address);
  Value* outside = AndLanes(lanes_, ir_.CreateNot(inside(a)));
  Unless(ir_.CreateNot(Any(outside)), report);
  return {};
}

Status Widener::EmitCheckBounds(llvm::CallInst& call) {
  Value* offset = call.getArgOperand(0);
  Value* limit = call.getArgOperand(1);
  auto number = [&](unsigned n) {
    return llvm::cast<llvm::ConstantInt>(call.getArgOperand(n))->getSExtValue();
  };
  int64_t low = number(2), high = number(3);
  auto alignment = static_cast<uint64_t>(number(4));
  if (!ShapeOf(limit).uniform()) return Refuse("a limit that differs between lanes");
  Value* bound = Scalar(limit);
  const Shape& shape = ShapeOf(offset);
  // The lowest byte lies at or above zero, and the highest below the limit.
  auto inside = [&](Value* lowest, Value* limits) {
    llvm::Type* t = lowest->getType();
    Value* starts = ir_.CreateBinaryIntrinsic(
        llvm::Intrinsic::usub_sat, limits, llvm::ConstantInt::get(t, static_cast<uint64_t>(high - low - 1)));
    Value* ok = ir_.CreateICmpULT(lowest, starts);
    return ok;
  };
  auto aligned = [&](Value* o) -> Value* {
    llvm::Type* t = o->getType();
    return ir_.CreateICmpEQ(ir_.CreateAnd(o, llvm::ConstantInt::get(t, alignment - 1)),
                            llvm::ConstantInt::get(t, 0));
  };
  auto below = [&](Value* o) {
    return ir_.CreateAdd(o, llvm::ConstantInt::get(o->getType(), static_cast<uint64_t>(low)));
  };
  auto report = [&] {
    ReportOutside(
        offset, "cuplex_warp_out_of_bounds",
        {call.getArgOperand(2), call.getArgOperand(3), call.getArgOperand(4), bound, call.getArgOperand(6)});
  };
  if (shape.uniform() ||
      (shape.affine() && shape.stride % static_cast<int64_t>(alignment) == 0 && shape.wraps.empty())) {
    Value* o = Scalar(offset);
    Value* ok = inside(below(o), bound);
    if (shape.affine()) {
      Value* last =
          ir_.CreateAdd(o, I64(static_cast<uint64_t>(shape.stride * (static_cast<int64_t>(width_) - 1))));
      ok = ir_.CreateAnd(ok, inside(below(last), bound));
    }
    if (alignment > 1) ok = ir_.CreateAnd(ok, aligned(below(o)));
    Unless(ok, report);
    return {};
  }
  if (Indexed x = Split(offset); x.scale == 1 && x.bounded && llvm::isa<llvm::CallInst>(offset)) {
    // Limits are below 2^31, so 32 bits tell. Rotating brings the bits that must be zero to the top.
    auto shift = static_cast<unsigned>(std::countr_zero(alignment));
    llvm::Type* t = x.index->getType();
    Value* lowest = ir_.CreateAdd(x.index, llvm::ConstantInt::get(t, static_cast<uint64_t>(low)));
    Value* starts =
        ir_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, ir_.CreateTrunc(bound, ir_.getInt32Ty()),
                                  I32(static_cast<uint32_t>(high - low - 1)));
    starts = ir_.CreateLShr(ir_.CreateAdd(starts, I32(static_cast<uint32_t>(alignment - 1))), shift);
    if (shift) {
      lowest =
          ir_.CreateIntrinsic(llvm::Intrinsic::fshr, {t}, {lowest, lowest, llvm::ConstantInt::get(t, shift)});
    }
    Value* outside = AndLanes(lanes_, ir_.CreateICmpUGE(lowest, Splat(starts)));
    Unless(ir_.CreateNot(Any(outside)), report);
    return {};
  }
  Value* o = Single(offset);
  Value* lowest = below(o);
  Value* ok = inside(lowest, Splat(bound));
  if (alignment > 1) ok = ir_.CreateAnd(ok, aligned(lowest));
  Value* outside = AndLanes(lanes_, ir_.CreateNot(ok));
  Unless(ir_.CreateNot(Any(outside)), report);
  return {};
}

}  // namespace cuplex::softcuda::lockstep
