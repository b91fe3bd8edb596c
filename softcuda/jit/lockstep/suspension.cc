#include "softcuda/jit/lockstep/suspension.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include "softcuda/jit/lockstep/warp.h"

namespace cuplex::softcuda::lockstep {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

namespace {

constexpr unsigned kDeepestRemake = 4;

/// What can be made again from scalars for less than keeping a vector costs.
bool IsCheap(const Instruction& i, unsigned depth = 0) {
  if (depth > kDeepestRemake || !i.getType()->isVectorTy()) return false;
  switch (i.getOpcode()) {
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Shl:
      break;
    default:
      return false;
  }
  return std::all_of(i.op_begin(), i.op_end(), [&](const Value* v) {
    if (!v->getType()->isVectorTy() || llvm::isa<llvm::Constant>(v)) return true;
    auto* operand = llvm::dyn_cast<Instruction>(v);
    return operand && IsCheap(*operand, depth + 1);
  });
}

class Splitter {
 public:
  explicit Splitter(llvm::Function& f) : f_(f), layout_(f.getParent()->getDataLayout()) {}

  uint32_t Run() {
    KeepAllocas();
    std::vector<llvm::CallInst*> calls;
    for (BasicBlock& b : f_) {
      for (Instruction& i : b) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
        if (call && call->getCalledFunction() && call->getCalledFunction()->getName() == "warp.suspend") {
          calls.push_back(call);
        }
      }
    }
    if (calls.empty()) return Total();
    HoistLasting();
    for (llvm::CallInst* call : calls) {
      BasicBlock* before = call->getParent();
      BasicBlock* on = llvm::SplitBlock(before, call->getNextNode());
      points_.push_back({call, before, on});
    }
    std::vector<Instruction*> live = LiveAcross();
    for (Instruction* i : live) {
      if (IsCheap(*i)) Remake(*i);
    }
    live = LiveAcross();
    if (RemakeFromKept(live)) live = LiveAcross();
    Split(live);
    return Total();
  }

 private:
  struct Point {
    llvm::CallInst* call = nullptr;
    BasicBlock* before = nullptr;
    BasicBlock* on = nullptr;
  };

  uint32_t Total() const { return (bytes_ + 63) / 64 * 64; }

  uint32_t Place(llvm::Type* t) {
    auto bytes = static_cast<uint32_t>(layout_.getTypeAllocSize(t).getFixedValue());
    uint32_t alignment = std::min<uint32_t>(64, static_cast<uint32_t>(layout_.getPrefTypeAlign(t).value()));
    bytes_ = (bytes_ + alignment - 1) / alignment * alignment;
    uint32_t at = bytes_;
    bytes_ += std::max(1u, bytes);
    return at;
  }

  Value* Record(llvm::IRBuilder<>& ir, uint32_t at) {
    return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), f_.getArg(1), at);
  }

  /// Memory that threads see keeps its contents while the warp waits.
  void KeepAllocas() {
    std::vector<llvm::AllocaInst*> kept;
    for (Instruction& i : f_.getEntryBlock()) {
      auto* alloca = llvm::dyn_cast<llvm::AllocaInst>(&i);
      if (alloca && alloca->getName().starts_with("kept")) kept.push_back(alloca);
    }
    for (llvm::AllocaInst* a : kept) {
      bytes_ = (bytes_ + 63) / 64 * 64;
      uint32_t at = Place(a->getAllocatedType());
      llvm::IRBuilder<> ir(a);
      a->replaceAllUsesWith(Record(ir, at));
      a->eraseFromParent();
    }
  }

  /// A scalar that can be made wherever what it is made of is there.
  static bool MayMove(const Instruction& i) {
    if (i.getType()->isVectorTy() || i.getType()->isVoidTy() || llvm::isa<llvm::PHINode>(i) ||
        llvm::isa<llvm::AllocaInst>(i)) {
      return false;
    }
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      return load->hasMetadata(llvm::LLVMContext::MD_invariant_load);
    }
    return llvm::isSafeToSpeculativelyExecute(&i);
  }

  /// What follows from the block and the warp alone is made after every entry instead of being kept: moves
  /// such scalars into the entry block.
  void HoistLasting() {
    BasicBlock* entry = &f_.getEntryBlock();
    auto lasts = [&](const Value* v) {
      auto* i = llvm::dyn_cast<Instruction>(v);
      return !i || i->getParent() == entry;
    };
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&f_);
    for (BasicBlock* b : order) {
      if (b == entry) continue;
      for (Instruction& i : llvm::make_early_inc_range(*b)) {
        if (MayMove(i) && std::all_of(i.op_begin(), i.op_end(), lasts)) {
          i.moveBefore(entry->getTerminator());
        }
      }
    }
  }

  /// Instructions, outside of the entry, that are needed after some suspension and made before it.
  std::vector<Instruction*> LiveAcross() {
    llvm::DenseMap<const Value*, unsigned> number;
    std::vector<Instruction*> values;
    BasicBlock* entry = &f_.getEntryBlock();
    for (BasicBlock& b : f_) {
      if (&b == entry) continue;
      for (Instruction& i : b) {
        bool crosses = std::any_of(i.user_begin(), i.user_end(), [&](const llvm::User* u) {
          auto* user = llvm::cast<Instruction>(u);
          return user->getParent() != &b || llvm::isa<llvm::PHINode>(user);
        });
        if (!crosses) continue;
        number[&i] = static_cast<unsigned>(values.size());
        values.push_back(&i);
      }
    }
    llvm::DenseMap<const BasicBlock*, llvm::BitVector> in, uses, makes;
    auto n = static_cast<unsigned>(values.size());
    for (BasicBlock& b : f_) {
      llvm::BitVector use(n), make(n);
      for (Instruction& i : b) {
        if (!llvm::isa<llvm::PHINode>(i)) {
          for (Value* v : i.operands()) {
            auto it = number.find(v);
            if (it != number.end() && !make.test(it->second)) use.set(it->second);
          }
        }
        auto it = number.find(&i);
        if (it != number.end()) make.set(it->second);
      }
      uses[&b] = use;
      makes[&b] = make;
      in[&b] = llvm::BitVector(n);
    }
    // Suspended blocks do not reach what follows by themselves any more, but their values do.
    std::vector<BasicBlock*> order;
    for (BasicBlock& b : f_) order.push_back(&b);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = order.size(); k-- > 0;) {
        BasicBlock* b = order[k];
        llvm::BitVector out(n);
        for (BasicBlock* s : llvm::successors(b)) {
          out |= in[s];
          for (llvm::PHINode& phi : s->phis()) {
            auto it = number.find(phi.getIncomingValueForBlock(b));
            if (it != number.end()) out.set(it->second);
          }
        }
        out.reset(makes[b]);
        out |= uses[b];
        if (out != in[b]) {
          in[b] = std::move(out);
          changed = true;
        }
      }
    }
    live_.clear();
    llvm::BitVector all(n);
    for (const Point& p : points_) {
      all |= in[p.on];
      std::vector<Instruction*> here;
      for (unsigned v : in[p.on].set_bits()) here.push_back(values[v]);
      live_.push_back(std::move(here));
    }
    std::vector<Instruction*> out;
    for (unsigned v : all.set_bits()) out.push_back(values[v]);
    return out;
  }

  Value* Copy(Value* v, Instruction* before) {
    auto* i = llvm::dyn_cast<Instruction>(v);
    if (!i || !i->getType()->isVectorTy() || anchors_.contains(v)) return v;
    Instruction* clone = i->clone();
    clone->insertBefore(before);
    for (unsigned n = 0; n < clone->getNumOperands(); ++n) {
      clone->setOperand(n, Copy(clone->getOperand(n), clone));
    }
    return clone;
  }

  /// Whether the value follows, for less than keeping it costs, from what `kept` holds for certain.
  static bool Follows(const Value* v, const std::set<const Value*>& kept, unsigned depth = 0) {
    if (!v->getType()->isVectorTy() || llvm::isa<llvm::Constant>(v) || (depth && kept.contains(v))) {
      return true;
    }
    auto* i = llvm::dyn_cast<Instruction>(v);
    if (!i || depth > kDeepestRemake) return false;
    switch (i->getOpcode()) {
      case Instruction::InsertElement:
      case Instruction::ShuffleVector:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Shl:
      case Instruction::GetElementPtr:
      case Instruction::IntToPtr:
      case Instruction::PtrToInt:
        break;
      default:
        return false;
    }
    return std::all_of(i->op_begin(), i->op_end(),
                       [&](const Value* o) { return Follows(o, kept, depth + 1); });
  }

  /// Remakes what follows from other values that are kept wherever it would be. True where there was any.
  bool RemakeFromKept(const std::vector<Instruction*>& live) {
    llvm::DenseMap<const Value*, llvm::BitVector> where;
    for (const Instruction* i : live) where[i] = llvm::BitVector(static_cast<unsigned>(live_.size()));
    for (unsigned k = 0; k < live_.size(); ++k) {
      for (const Instruction* i : live_[k]) where[i].set(k);
    }
    // What others are made from stays kept.
    std::set<const Value*> base, remade;
    std::vector<Instruction*> work;
    for (Instruction* i : live) {
      if (!i->getType()->isVectorTy() || base.contains(i)) continue;
      std::set<const Value*> kept;
      std::vector<const Value*> near = {i};
      for (unsigned depth = 0; depth <= kDeepestRemake; ++depth) {
        std::vector<const Value*> next;
        for (const Value* v : near) {
          auto* user = llvm::dyn_cast<Instruction>(v);
          if (!user || (depth && kept.contains(v))) continue;
          for (const Value* o : user->operands()) {
            auto it = where.find(o);
            if (it != where.end() && !remade.contains(o) && !where[i].test(it->second)) kept.insert(o);
            next.push_back(o);
          }
        }
        near = std::move(next);
      }
      if (!Follows(i, kept)) continue;
      base.insert(kept.begin(), kept.end());
      remade.insert(i);
      work.push_back(i);
      anchors_.insert(kept.begin(), kept.end());
    }
    for (Instruction* i : work) Remake(*i);
    anchors_.clear();
    return !work.empty();
  }

  /// Makes the value anew in every block that uses it.
  void Remake(Instruction& i) {
    std::vector<llvm::Use*> uses;
    for (llvm::Use& u : i.uses()) uses.push_back(&u);
    llvm::DenseMap<BasicBlock*, Value*> made;
    for (llvm::Use* u : uses) {
      auto* user = llvm::cast<Instruction>(u->getUser());
      auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
      BasicBlock* where = phi ? phi->getIncomingBlock(*u) : user->getParent();
      if (where == i.getParent()) continue;
      if (phi) {
        u->set(Copy(&i, where->getTerminator()));
        continue;
      }
      Value*& v = made[where];
      if (!v) v = Copy(&i, &*where->getFirstInsertionPt());
      u->set(v);
    }
    if (i.use_empty()) llvm::RecursivelyDeleteTriviallyDeadInstructions(&i);
  }

  void Split(const std::vector<Instruction*>& live) {
    BasicBlock* entry = &f_.getEntryBlock();
    // Each value that crosses gets a slot, which promotion turns back into values at the end.
    std::vector<llvm::AllocaInst*> slots;
    llvm::DenseMap<const Instruction*, llvm::AllocaInst*> slot_of;
    llvm::DenseMap<const Instruction*, uint32_t> place_of;
    for (Instruction* i : live) {
      uint32_t at = Place(i->getType());
      llvm::AllocaInst* slot = llvm::DemoteRegToStack(*i, false, entry->begin());
      slot_of[i] = slot;
      place_of[i] = at;
      slots.push_back(slot);
    }
    Instruction* start = entry->getTerminator();
    BasicBlock* first = start->getSuccessor(0);
    llvm::IRBuilder<> top(start);
    Value* resume = top.CreateLoad(top.getInt32Ty(), Record(top, offsetof(Warp, resume)));
    BasicBlock* lost = BasicBlock::Create(f_.getContext(), "lost", &f_);
    llvm::IRBuilder<>(lost).CreateUnreachable();
    llvm::SwitchInst* choose = top.CreateSwitch(resume, lost, static_cast<unsigned>(points_.size()) + 1);
    BasicBlock* begin = BasicBlock::Create(f_.getContext(), "begin", &f_, first);
    llvm::IRBuilder<>(begin).CreateBr(first);
    first->replacePhiUsesWith(entry, begin);
    choose->addCase(top.getInt32(0), begin);
    start->eraseFromParent();
    std::vector<BasicBlock*> ways = {begin};
    for (size_t k = 0; k < points_.size(); ++k) {
      const Point& p = points_[k];
      llvm::IRBuilder<> ir(p.call);
      for (Instruction* i : live_[k]) {
        llvm::AllocaInst* slot = slot_of.lookup(i);
        if (!slot) continue;
        Value* v = ir.CreateLoad(slot->getAllocatedType(), slot);
        ir.CreateStore(v, Record(ir, place_of[i]));
      }
      auto id = ir.getInt32(static_cast<uint32_t>(k) + 1);
      ir.CreateStore(id, Record(ir, offsetof(Warp, resume)));
      BasicBlock* again = BasicBlock::Create(f_.getContext(), "resume", &f_);
      choose->addCase(id, again);
      ways.push_back(again);
      llvm::IRBuilder<> in(again);
      for (Instruction* i : live_[k]) {
        llvm::AllocaInst* slot = slot_of.lookup(i);
        if (!slot) continue;
        in.CreateStore(in.CreateLoad(slot->getAllocatedType(), Record(in, place_of[i])), slot);
      }
      in.CreateBr(p.on);
      ir.SetInsertPoint(p.before->getTerminator());
      ir.CreateRet(ir.getInt32(static_cast<uint32_t>(Step::kBarrier)));
      p.before->getTerminator()->eraseFromParent();
      p.call->eraseFromParent();
    }
    SinkLasting(ways, &slots);
    llvm::DominatorTree dominators(f_);
    slots.erase(std::remove_if(slots.begin(), slots.end(),
                               [](llvm::AllocaInst* a) { return !llvm::isAllocaPromotable(a); }),
                slots.end());
    llvm::PromoteMemToReg(slots, dominators);
  }

  /// Of what is made at every entry, has each way on make only what is needed on it, up to where the warp
  /// waits the next time.
  void SinkLasting(const std::vector<BasicBlock*>& ways, std::vector<llvm::AllocaInst*>* slots) {
    BasicBlock* entry = &f_.getEntryBlock();
    std::vector<Instruction*> lasting;
    llvm::DenseMap<const Value*, unsigned> number;
    for (Instruction& i : *entry) {
      if (!MayMove(i) || i.isTerminator()) continue;
      number[&i] = static_cast<unsigned>(lasting.size());
      lasting.push_back(&i);
    }
    const auto n = static_cast<unsigned>(lasting.size());
    llvm::DenseMap<const BasicBlock*, llvm::BitVector> needs;
    for (BasicBlock& b : f_) needs[&b] = llvm::BitVector(n);
    std::vector<llvm::Use*> outside;
    for (Instruction* i : lasting) {
      for (llvm::Use& u : i->uses()) {
        auto* user = llvm::cast<Instruction>(u.getUser());
        auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
        const BasicBlock* where = phi ? phi->getIncomingBlock(u) : user->getParent();
        if (where == entry) continue;
        needs[where].set(number[i]);
        outside.push_back(&u);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (BasicBlock* b : llvm::post_order(&f_)) {
        for (BasicBlock* next : llvm::successors(b)) {
          if (b == entry) continue;
          const unsigned before = needs[b].count();
          needs[b] |= needs[next];
          changed |= needs[b].count() != before;
        }
      }
    }
    llvm::DenseMap<const Value*, llvm::AllocaInst*> slot_of;
    for (llvm::Use* u : outside) {
      Value* value = u->get();
      llvm::AllocaInst*& slot = slot_of[value];
      if (!slot) {
        slot = new llvm::AllocaInst(value->getType(), layout_.getAllocaAddrSpace(), "", entry->begin());
        slots->push_back(slot);
      }
      auto* user = llvm::cast<Instruction>(u->getUser());
      auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
      Instruction* before = phi ? phi->getIncomingBlock(*u)->getTerminator() : user;
      u->set(new llvm::LoadInst(value->getType(), slot, "", before));
    }
    for (BasicBlock* way : ways) {
      llvm::BitVector wanted = needs[way];
      for (unsigned v = n; v-- > 0;) {
        if (!wanted.test(v)) continue;
        for (Value* operand : lasting[v]->operands())
          if (auto it = number.find(operand); it != number.end()) wanted.set(it->second);
      }
      Instruction* at = &*way->getFirstInsertionPt();
      llvm::DenseMap<const Value*, Value*> made;
      for (unsigned v : wanted.set_bits()) {
        Instruction* clone = lasting[v]->clone();
        for (llvm::Use& operand : clone->operands())
          if (Value* own = made.lookup(operand.get())) operand.set(own);
        clone->insertBefore(at);
        made[lasting[v]] = clone;
        if (needs[way].test(v)) new llvm::StoreInst(clone, slot_of.lookup(lasting[v]), at);
      }
    }
    for (Instruction* i : llvm::reverse(lasting))
      if (i->use_empty()) i->eraseFromParent();
  }

  llvm::Function& f_;
  const llvm::DataLayout& layout_;
  uint32_t bytes_ = sizeof(Warp);
  std::vector<Point> points_;
  std::set<const Value*> anchors_;               // what is kept while others are made from it
  std::vector<std::vector<Instruction*>> live_;  // by point
};

}  // namespace

uint32_t SplitSuspensions(llvm::Function& function) { return Splitter(function).Run(); }

}  // namespace cuplex::softcuda::lockstep
