// Widener: blocks, the ways between them, and what is common to all of its files.
#include "softcuda/jit/lockstep/widen.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

namespace cuplex::softcuda::lockstep {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

Widener::Widener(llvm::Function& thread, Flow& flow, const Shapes& shapes, const WarpShape& warp,
                 const AddressWindow& window, llvm::Function& out)
    : thread_(thread),
      flow_(flow),
      shapes_(shapes),
      warp_(warp),
      window_(window),
      out_(out),
      ir_(out.getContext()),
      layout_(thread.getParent()->getDataLayout()),
      width_(warp.lanes) {}

Error Widener::Refuse(const std::string& why) const {
  return Fail(Blame::kUnsupported, "a warp cannot run in lockstep: {}", why);
}

Status Widener::Run() {
  made_.resize(flow_.blocks().size());
  slots_ = BasicBlock::Create(out_.getContext(), "slots", &out_);
  ir_.SetInsertPoint(slots_);
  if (!warp_.full()) {
    Value* bits = ir_.CreateTrunc(Field(offsetof(Warp, lanes), ir_.getInt32Ty()), ir_.getIntNTy(width_));
    all_ = ir_.CreateBitCast(bits, WideType(ir_.getInt1Ty()));
  }
  for (uint32_t b = 0; b < made_.size(); ++b) TRY(EmitBlock(b));
  ir_.SetInsertPoint(slots_);
  for (const Made& m : made_) {
    if (m.slot) ir_.CreateStore(llvm::Constant::getNullValue(WideType(ir_.getInt1Ty())), m.slot);
  }
  ir_.CreateBr(made_[0].entry);
  return {};
}

BasicBlock* Widener::NewBlock(const char* name) { return BasicBlock::Create(out_.getContext(), name, &out_); }

Value* Widener::NewSlot(llvm::Type* type) {
  return llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(type);
}

BasicBlock* Widener::EntryOf(uint32_t block) {
  BasicBlock*& b = made_[block].entry;
  if (!b) b = NewBlock("at");
  return b;
}

Status Widener::EmitBlock(uint32_t b) {
  const Flow::Block& block = flow_.blocks()[b];
  Made& made = made_[b];
  at_ = b;
  ir_.SetInsertPoint(EntryOf(b));
  if (b == flow_.return_block()) {
    ir_.CreateRet(I32(static_cast<uint32_t>(Step::kDone)));
    return {};
  }
  if (b == 0) {
    made.lanes = all_;
  } else if (block.shares) {
    made.lanes = made_[block.leader].lanes;
  } else {
    if (!made.slot) made.slot = NewSlot(WideType(ir_.getInt1Ty()));
    made.lanes = ir_.CreateLoad(WideType(ir_.getInt1Ty()), made.slot);
    ir_.CreateStore(llvm::Constant::getNullValue(made.lanes->getType()), made.slot);
  }
  lanes_ = made.lanes;
  if (block.guarded) {
    made.body = NewBlock("run");
    ir_.CreateCondBr(Any(lanes_), made.body, EntryOf(block.skip));
    ir_.SetInsertPoint(made.body);
  } else {
    made.body = made.entry;
  }
  LoadPhis(b);
  residents_.clear();
  for (Home& home : homes_) home.taken = false;
  for (Instruction& i : *block.ir) {
    if (llvm::isa<llvm::PHINode>(i) || i.isTerminator()) continue;
    TRY(EmitInstruction(i));
  }
  return EmitTerminator(b);
}

void Widener::LoadPhis(uint32_t b) {
  for (llvm::PHINode& phi : flow_.blocks()[b].ir->phis()) {
    Slots& s = phis_[&phi];
    if (ShapeOf(&phi).scalar()) {
      if (!s.scalar) s.scalar = NewSlot(phi.getType());
      SetScalar(phi, ir_.CreateLoad(phi.getType(), s.scalar));
      continue;
    }
    llvm::Type* t = phi.getType();
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
    size_t n = vector ? vector->getNumElements() : 1;
    llvm::Type* element = vector ? vector->getElementType() : t;
    while (s.wide.size() < n) s.wide.push_back(NewSlot(WideType(element)));
    Wide wide;
    for (Value* slot : s.wide) wide.push_back(ir_.CreateLoad(WideType(element), slot));
    SetWide(phi, wide);
  }
}

/// What `lanes` (null: all that there are) take along on the way from one block to another.
void Widener::EmitEdge(uint32_t from, uint32_t to, Value* lanes) {
  const Flow::Block& target = flow_.blocks()[to];
  if (to == flow_.return_block()) return;
  if (!target.shares) {
    Made& made = made_[to];
    if (!made.slot) made.slot = NewSlot(WideType(ir_.getInt1Ty()));
    Value* more = lanes ? lanes : LanesOrAll();
    ir_.CreateStore(ir_.CreateOr(ir_.CreateLoad(more->getType(), made.slot), more), made.slot);
  }
  BasicBlock* source = flow_.blocks()[from].ir;
  std::vector<std::pair<Value*, Value*>> stores;
  for (llvm::PHINode& phi : target.ir->phis()) {
    Value* v = phi.getIncomingValueForBlock(source);
    if (llvm::isa<llvm::UndefValue>(v)) continue;
    Slots& s = phis_[&phi];
    if (ShapeOf(&phi).scalar()) {
      if (!s.scalar) s.scalar = NewSlot(phi.getType());
      stores.emplace_back(Scalar(v), s.scalar);
      continue;
    }
    Wide wide = Vector(v);
    for (size_t i = 0; i < wide.size(); ++i) {
      if (s.wide.size() <= i) s.wide.push_back(NewSlot(wide[i]->getType()));
      Value* value = wide[i];
      if (target.joins && lanes) {
        Value* old = ir_.CreateLoad(value->getType(), s.wide[i]);
        value = ir_.CreateSelect(lanes, value, old);
      }
      stores.emplace_back(value, s.wide[i]);
    }
  }
  for (auto [value, slot] : stores) ir_.CreateStore(value, slot);
}

Status Widener::EmitTerminator(uint32_t b) {
  const Flow::Block& block = flow_.blocks()[b];
  Instruction* end = block.ir->getTerminator();
  if (llvm::isa<llvm::UnreachableInst>(end)) {
    ir_.CreateUnreachable();
    return {};
  }
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(end);
  if (!branch) return Refuse("a terminator that is no branch");
  auto index = [&](unsigned k) { return flow_.IndexOf(branch->getSuccessor(k)); };
  if (branch->isUnconditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) {
    EmitEdge(b, index(0), lanes_);
    ir_.CreateBr(EntryOf(block.next[0]));
    return {};
  }
  if (!block.diverges) {
    BasicBlock* way[2] = {NewBlock("way"), NewBlock("way")};
    ir_.CreateCondBr(Scalar(branch->getCondition()), way[0], way[1]);
    for (unsigned k = 0; k < 2; ++k) {
      ir_.SetInsertPoint(way[k]);
      EmitEdge(b, index(k), lanes_);
      ir_.CreateBr(EntryOf(block.next[k]));
    }
    return {};
  }
  Value* condition = Single(branch->getCondition());
  Value* lanes[2] = {AndLanes(lanes_, condition), AndLanes(lanes_, ir_.CreateNot(condition))};
  for (unsigned k = 0; k < 2; ++k) EmitEdge(b, index(k), lanes[k]);
  for (unsigned k = 0; k < 2; ++k) {
    if (!flow_.IsBack(b, index(k))) continue;
    if (flow_.IsBack(b, index(1 - k))) return Refuse("a branch whose both ways lead back");
    ir_.CreateCondBr(Any(lanes[k]), EntryOf(index(k)), EntryOf(block.next[1 - k]));
    return {};
  }
  ir_.CreateBr(EntryOf(block.next[0]));
  return {};
}

// --------------------------------------------------------------------------------------------------- lanes

Value* Widener::LanesOrAll() {
  return lanes_ ? lanes_ : llvm::Constant::getAllOnesValue(WideType(ir_.getInt1Ty()));
}

Value* Widener::Bits(Value* lanes) { return ir_.CreateBitCast(lanes, ir_.getIntNTy(width_)); }

Value* Widener::Bits32(Value* lanes) {
  if (!lanes) return I32(width_ == 32 ? ~0u : (1u << width_) - 1);
  return ir_.CreateZExt(Bits(lanes), ir_.getInt32Ty());
}

Value* Widener::Any(Value* lanes) {
  return ir_.CreateICmpNE(Bits(lanes), llvm::ConstantInt::get(ir_.getIntNTy(width_), 0));
}

/// A lane that is not there may hold anything, also poison, which a select keeps out.
Value* Widener::AndLanes(Value* lanes, Value* more) {
  return lanes ? ir_.CreateSelect(lanes, more, llvm::Constant::getNullValue(more->getType())) : more;
}

// --------------------------------------------------------------------------------------------------- words

Value* Widener::FieldAddress(size_t offset) {
  return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), out_.getArg(1), offset);
}

Value* Widener::Field(size_t offset, llvm::Type* type) {
  auto* load = ir_.CreateLoad(type, FieldAddress(offset));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.getContext(), {}));
  return load;
}

void Widener::StoreField(size_t offset, Value* value) { ir_.CreateStore(value, FieldAddress(offset)); }

Value* Widener::Call(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto callee = out_.getParent()->getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  auto* call = ir_.CreateCall(callee, args);
  call->setDoesNotThrow();
  return call;
}

void Widener::Unless(Value* likely, const std::function<void()>& cold) {
  BasicBlock* rare = NewBlock("rare");
  BasicBlock* on = NewBlock("on");
  llvm::MDBuilder md(ir_.getContext());
  ir_.CreateCondBr(likely, on, rare, md.createBranchWeights(1 << 20, 1));
  ir_.SetInsertPoint(rare);
  cold();
  ir_.CreateBr(on);
  ir_.SetInsertPoint(on);
}

Widener::Wide Widener::Choose(Value* likely, const std::function<Wide()>& hot,
                              const std::function<Wide()>& cold) {
  BasicBlock* usual = NewBlock("usual");
  BasicBlock* rare = NewBlock("rare");
  BasicBlock* on = NewBlock("on");
  llvm::MDBuilder md(ir_.getContext());
  ir_.CreateCondBr(likely, usual, rare, md.createBranchWeights(1 << 20, 1));
  ir_.SetInsertPoint(usual);
  Wide a = hot();
  BasicBlock* from_a = ir_.GetInsertBlock();
  ir_.CreateBr(on);
  ir_.SetInsertPoint(rare);
  Wide b = cold();
  BasicBlock* from_b = ir_.GetInsertBlock();
  ir_.CreateBr(on);
  ir_.SetInsertPoint(on);
  Wide out;
  for (size_t i = 0; i < a.size(); ++i) {
    auto* phi = ir_.CreatePHI(a[i]->getType(), 2);
    phi->addIncoming(a[i], from_a);
    phi->addIncoming(b[i], from_b);
    out.push_back(phi);
  }
  return out;
}

// -------------------------------------------------------------------------------------------------- values

namespace {

/// Puts the builder right behind a definition, for as long as it lives.
class Behind {
 public:
  Behind(llvm::IRBuilder<>& ir, Value* definition, BasicBlock* otherwise) : guard_(ir) {
    auto* i = llvm::dyn_cast<Instruction>(definition);
    if (!i) {
      if (Instruction* end = otherwise->getTerminator()) {
        ir.SetInsertPoint(end);
      } else {
        ir.SetInsertPoint(otherwise);
      }
    } else if (llvm::isa<llvm::PHINode>(i)) {
      ir.SetInsertPoint(i->getParent(), i->getParent()->getFirstInsertionPt());
    } else if (Instruction* next = i->getNextNode()) {
      ir.SetInsertPoint(next);
    } else {
      ir.SetInsertPoint(i->getParent());
    }
  }

 private:
  llvm::IRBuilderBase::InsertPointGuard guard_;
};

}  // namespace

Value* Widener::Splat(Value* scalar) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(scalar)) {
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(width_), c);
  }
  return ir_.CreateVectorSplat(width_, scalar);
}

Value* Widener::Steps(llvm::Type* integer, int64_t stride) {
  std::vector<llvm::Constant*> c;
  unsigned bits = integer->getIntegerBitWidth();
  for (unsigned i = 0; i < width_; ++i) {
    llvm::APInt step(64, static_cast<uint64_t>(stride * static_cast<int64_t>(i)));
    c.push_back(llvm::ConstantInt::get(integer, step.sextOrTrunc(bits)));
  }
  return llvm::ConstantVector::get(c);
}

Widener::Wide Widener::SplatAll(Value* scalar) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(scalar->getType());
  if (!vector) return {Splat(scalar)};
  Wide out;
  for (unsigned i = 0; i < vector->getNumElements(); ++i) {
    out.push_back(Splat(ir_.CreateExtractElement(scalar, static_cast<uint64_t>(i))));
  }
  return out;
}

Value* Widener::Scalar(Value* v) {
  if (v == thread_.getArg(0)) return out_.getArg(0);
  if (v == thread_.getArg(1)) return out_.getArg(1);
  auto* i = llvm::dyn_cast<Instruction>(v);
  if (!i) return v;
  Value* scalar = scalar_.at(v);
  uint32_t home = flow_.IndexOf(i->getParent());
  if (home == at_ || llvm::isa<llvm::Constant>(scalar) || llvm::isa<llvm::AllocaInst>(scalar) ||
      flow_.Dominates(home, at_)) {
    return scalar;
  }
  Slots& s = spilled_[v];
  if (!s.scalar) {
    s.scalar = NewSlot(scalar->getType());
    Behind here(ir_, scalar, slots_);
    ir_.CreateStore(scalar, s.scalar);
  }
  return ir_.CreateLoad(scalar->getType(), s.scalar);
}

Widener::Wide Widener::Vector(Value* v) {
  auto* i = llvm::dyn_cast<Instruction>(v);
  const Shape& shape = ShapeOf(v);
  if (!i || shape.uniform()) {
    Value* scalar = Scalar(v);
    if (llvm::isa<llvm::Constant>(scalar)) return SplatAll(scalar);
    Wide& known = wide_[v];
    uint32_t home = i ? flow_.IndexOf(i->getParent()) : 0;
    if (known.empty() && (!i || home == at_ || flow_.Dominates(home, at_))) {
      Behind here(ir_, scalar, slots_);
      known = SplatAll(scalar);
    }
    return known.empty() || !(home == at_ || !i || flow_.Dominates(home, at_)) ? SplatAll(scalar) : known;
  }
  uint32_t home = flow_.IndexOf(i->getParent());
  bool here = home == at_ || flow_.Dominates(home, at_);
  if (shape.affine()) {
    llvm::Type* t = v->getType();
    bool pointer = t->isPointerTy();
    llvm::Type* integer = pointer ? ir_.getInt64Ty() : t;
    auto make = [&](Value* scalar) -> Value* {
      Value* base = pointer ? ir_.CreatePtrToInt(scalar, integer) : scalar;
      Value* out = ir_.CreateAdd(Splat(base), Steps(integer, shape.stride));
      for (auto [extension, times] : shape.wraps) {
        Value* off = WrapOf(*extension);
        if (times != 1) {
          off = ir_.CreateMul(off, Splat(llvm::ConstantInt::get(integer, static_cast<uint64_t>(times))));
        }
        out = ir_.CreateAdd(out, off);
      }
      return pointer ? ir_.CreateIntToPtr(out, WideType(t)) : out;
    };
    Value* scalar = Scalar(v);
    if (!here || !shape.wraps.empty()) return {make(scalar)};
    Wide& known = wide_[v];
    if (known.empty()) {
      Behind behind(ir_, scalar, slots_);
      known = {make(scalar)};
    }
    return known;
  }
  Wide wide = wide_.at(v);
  if (here) return wide;
  Slots& s = spilled_[v];
  for (size_t n = 0; n < wide.size(); ++n) {
    if (llvm::isa<llvm::Constant>(wide[n])) continue;
    if (s.wide.size() <= n) s.wide.resize(n + 1);
    if (!s.wide[n]) {
      s.wide[n] = NewSlot(wide[n]->getType());
      Behind behind(ir_, wide[n], slots_);
      ir_.CreateStore(wide[n], s.wide[n]);
    }
    wide[n] = ir_.CreateLoad(wide[n]->getType(), s.wide[n]);
  }
  return wide;
}

/// The lanes' 32 bits count on from the base without passing the end of their range.
Value* Widener::NeverWraps(const Shape& shape) {
  Value* all = nullptr;
  for (auto [extension, times] : shape.wraps) {
    Value*& known = never_wraps_[extension];
    uint32_t home = flow_.IndexOf(extension->getParent());
    bool here = home == at_ || flow_.Dominates(home, at_);
    Value* holds = here ? known : nullptr;
    if (!holds) {
      auto* bound = llvm::dyn_cast<llvm::CallInst>(extension);
      unsigned which = bound && !ShapeOf(bound->getArgOperand(0)).affine() ? 1 : 0;
      Instruction* clone = here ? clones_.at(extension) : nullptr;
      auto operand = [&](unsigned n) {
        return clone ? clone->getOperand(n) : Scalar(extension->getOperand(n));
      };
      Value* narrow = operand(which);
      const Shape& inner = ShapeOf(extension->getOperand(which));
      int64_t stride = inner.stride;
      int64_t span = stride * (static_cast<int64_t>(width_) - 1);
      auto make_own = [&]() -> Value* {
        if (bound) {
          // Both ends on the side of the bound that lets them through, and no wrapping between them.
          Value* limit = operand(1 - which);
          auto id = bound->getIntrinsicID();
          bool is_signed = id == llvm::Intrinsic::smin || id == llvm::Intrinsic::smax;
          bool least = id == llvm::Intrinsic::smin || id == llvm::Intrinsic::umin;
          llvm::Type* i64 = ir_.getInt64Ty();
          auto wide = [&](Value* v) { return is_signed ? ir_.CreateSExt(v, i64) : ir_.CreateZExt(v, i64); };
          Value* first = wide(narrow);
          Value* last = ir_.CreateAdd(first, I64(static_cast<uint64_t>(span)));
          Value* in = ir_.CreateICmpEQ(last, wide(ir_.CreateTrunc(last, ir_.getInt32Ty())));
          auto passes = [&](Value* v) {
            return least ? ir_.CreateICmpSLE(v, wide(limit)) : ir_.CreateICmpSGE(v, wide(limit));
          };
          return ir_.CreateAnd(in, ir_.CreateAnd(passes(first), passes(last)));
        }
        if (llvm::isa<llvm::SExtInst>(extension)) {
          return stride > 0 ? ir_.CreateICmpSLE(narrow, I32(static_cast<uint32_t>(INT32_MAX - span)))
                            : ir_.CreateICmpSGE(narrow, I32(static_cast<uint32_t>(INT32_MIN - span)));
        }
        return stride > 0 ? ir_.CreateICmpULE(narrow, I32(static_cast<uint32_t>(UINT32_MAX - span)))
                          : ir_.CreateICmpUGE(narrow, I32(static_cast<uint32_t>(-span)));
      };
      auto make = [&]() -> Value* {
        Value* own = make_own();
        Value* within = inner.wraps.empty() ? nullptr : NeverWraps(inner);
        return within ? ir_.CreateAnd(own, within) : own;
      };
      if (here && inner.wraps.empty()) {
        Behind behind(ir_, clone, slots_);
        known = make();
        holds = known;
      } else {
        holds = make();
      }
    }
    all = all ? ir_.CreateAnd(all, holds) : holds;
  }
  return all;
}

/// What the extension is off by in each lane.
Value* Widener::WrapOf(const Instruction& extension) {
  if (auto* bound = llvm::dyn_cast<llvm::CallInst>(&extension)) {
    Value *a = bound->getArgOperand(0), *b = bound->getArgOperand(1);
    Value* exact = ir_.CreateBinaryIntrinsic(bound->getIntrinsicID(), Single(a), Single(b));
    Value* affine = ShapeOf(a).affine() ? a : b;
    Value* taken = ir_.CreateAdd(Splat(Scalar(affine)), Steps(bound->getType(), ShapeOf(affine).stride));
    return ir_.CreateSub(exact, taken);
  }
  auto* narrow = extension.getOperand(0);
  Value* exact = Single(narrow);
  auto* wide = WideType(ir_.getInt64Ty());
  bool is_signed = llvm::isa<llvm::SExtInst>(extension);
  exact = is_signed ? ir_.CreateSExt(exact, wide) : ir_.CreateZExt(exact, wide);
  Value* base = Scalar(narrow);
  base = is_signed ? ir_.CreateSExt(base, ir_.getInt64Ty()) : ir_.CreateZExt(base, ir_.getInt64Ty());
  Value* affine = ir_.CreateAdd(Splat(base), Steps(ir_.getInt64Ty(), ShapeOf(narrow).stride));
  return ir_.CreateSub(exact, affine);
}

}  // namespace cuplex::softcuda::lockstep
