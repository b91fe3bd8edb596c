// Emitter: registers, and what becomes of them where a thread gives up the processor.
#include "softcuda/jit/emitter.h"

#include <algorithm>

#include "softcuda/jit/opcodes.h"

namespace cuplex::softcuda {

using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

namespace {

// A kernel whose suspensions would save more registers than this altogether keeps them in the record for
// good.
constexpr size_t kMostSaves = 20000;
// Times a waiting loop goes round before it lets others run.
constexpr uint32_t kSpinBudget = 16;

std::vector<const Instruction*> Suspensions(const Build& build, const FunctionFacts& facts) {
  std::vector<const Instruction*> out;
  for (uint32_t i : facts.order) {
    const Instruction& in = facts.function->instructions[i];
    const OpcodeRow* row = FindOpcodeRow(in.opcode);
    bool waits = (row && row->waits) || facts.spins[i] || in.opcode == ptx::Opcode::kNanosleep;
    if (in.opcode == ptx::Opcode::kCall) {
      ptx::CallShape call = ptx::ShapeOfCall(in);
      waits |= call.callee && call.callee->symbol == ptx::SymbolKind::kFunction &&
               build.facts[call.callee->id].inlined;
    }
    if (waits) out.push_back(&in);
  }
  return out;
}

}  // namespace

bool Emitter::ResidentRegisters() {
  size_t saves = 0;
  for (uint32_t f : build.kernel.reachable) {
    if (f != root_ && !build.facts[f].inlined) continue;
    for (const Instruction* in : Suspensions(build, build.facts[f])) {
      uint32_t index = static_cast<uint32_t>(in - build.module.functions[f].instructions.data());
      saves += build.facts[f].LiveAfter(index).Members().size();
      if (saves > kMostSaves) return true;
    }
  }
  return false;
}

void Emitter::MakeRegisters(Frame& frame) {
  frame.registers.assign(frame.fn->register_count, nullptr);
  frame.record_place.assign(frame.fn->register_count, 0);
  frame.labels.assign(frame.fn->labels.size(), nullptr);
  if (resident_) {
    RegisterSet across(frame.fn->register_count);
    for (const Instruction* in : Suspensions(build, *frame.facts)) {
      uint32_t index = static_cast<uint32_t>(in - frame.fn->instructions.data());
      across.Unite(frame.facts->LiveAfter(index));
      if (frame.facts->spins[index] && in->guard) across.Add(in->guard.reg);
    }
    llvm::IRBuilder<> at(entry_, entry_->end());
    for (uint32_t r : across.Members()) {
      frame.registers[r] = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), lane_, RecordPlace(frame, r));
    }
  }
}

uint32_t Emitter::RecordPlace(Frame& frame, uint32_t reg) {
  uint32_t& place = frame.record_place[reg];
  if (!place) {
    uint32_t bytes = std::max(1u, ptx::BitsOf(frame.fn->TypeOfRegister(reg)) / 8);
    place = (build.lane_bytes + bytes - 1) / bytes * bytes;
    build.lane_bytes = place + bytes;
  }
  return place;
}

Value* Emitter::RegisterSlot(Frame& frame, uint32_t reg) {
  Value*& slot = frame.registers[reg];
  if (!slot) {
    Type type = frame.fn->TypeOfRegister(reg);
    llvm::Type* t = type == Type::kF32   ? ir.getFloatTy()
                    : type == Type::kF64 ? ir.getDoubleTy()
                                         : static_cast<llvm::Type*>(Int(ptx::BitsOf(type)));
    slot = llvm::IRBuilder<>(entry_, entry_->begin()).CreateAlloca(t);
  }
  return slot;
}

Status Emitter::Suspend(const Instruction& in, Step step) {
  if (lockstep()) return Refuse(in, "waits in a way that a warp in lockstep cannot");
  ForgetChecks();
  uint32_t id = ++resume_points_;
  std::vector<std::pair<Frame*, uint32_t>> saved;
  if (!resident_) {
    RegisterSet live = frame_->facts->LiveAfter(IndexOf(in));
    if (step == Step::kYield && in.guard) live.Add(in.guard.reg);
    for (Frame* f = frame_; f; f = f->caller) {
      for (uint32_t r : live.Members()) saved.emplace_back(f, r);
      if (f->caller) live = f->live_in_caller;
    }
  }
  auto place = [&](Frame* f, uint32_t r) {
    return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, RecordPlace(*f, r));
  };
  auto own = [&](llvm::Instruction* i) { i->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_); };
  for (auto [f, r] : saved) {
    Value* slot = RegisterSlot(*f, r);
    llvm::Type* t = llvm::cast<llvm::AllocaInst>(slot)->getAllocatedType();
    Value* v = ir.CreateLoad(t, slot);
    if (t->isIntegerTy(1)) v = ir.CreateZExt(v, Int(8));
    own(ir.CreateStore(v, place(f, r)));
  }
  StoreLane(offsetof(Lane, resume), I32(id));
  ir.CreateRet(I32(static_cast<uint32_t>(step)));
  BasicBlock* on = NewBlock("resume");
  resume_->addCase(I32(id), on);
  ir.SetInsertPoint(on);
  for (auto [f, r] : saved) {
    Value* slot = RegisterSlot(*f, r);
    llvm::Type* t = llvm::cast<llvm::AllocaInst>(slot)->getAllocatedType();
    bool predicate = t->isIntegerTy(1);
    llvm::LoadInst* v = ir.CreateLoad(predicate ? Int(8) : t, place(f, r));
    own(v);
    ir.CreateStore(predicate ? ir.CreateTrunc(v, Int(1)) : static_cast<Value*>(v), slot);
  }
  return {};
}

Status Emitter::SpinPoint(const Instruction& in) {
  if (!spin_budget_) {
    llvm::IRBuilder<> at(entry_, entry_->begin());
    spin_budget_ = at.CreateAlloca(Int(32));
    llvm::IRBuilder<>(entry_, entry_->end()).CreateStore(I32(kSpinBudget), spin_budget_);
  }
  Value* left = ir.CreateSub(ir.CreateLoad(Int(32), spin_budget_), I32(1));
  ir.CreateStore(left, spin_budget_);
  BasicBlock* yield = NewBlock("yield");
  BasicBlock* on = NewBlock("spin");
  ir.CreateCondBr(ir.CreateICmpEQ(left, I32(0)), yield, on);
  ir.SetInsertPoint(yield);
  TRY(Suspend(in, Step::kYield));
  ir.CreateBr(on);
  ir.SetInsertPoint(on);
  return {};
}

Value* Emitter::carry_slot() {
  if (!carry_) {
    llvm::IRBuilder<> at(entry_, entry_->begin());
    carry_ = at.CreateAlloca(Int(1));
    llvm::IRBuilder<>(entry_, entry_->end()).CreateStore(ir.getFalse(), carry_);
  }
  return carry_;
}

}  // namespace cuplex::softcuda
