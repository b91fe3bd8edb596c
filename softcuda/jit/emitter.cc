#include "softcuda/jit/emitter.h"

#include <algorithm>
#include <bit>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>

#include "softcuda/jit/markers.h"
#include "softcuda/jit/matrix.h"
#include "softcuda/jit/opcodes.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {

using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

// Inlining can multiply code without end.
constexpr size_t kMostInstructions = 1000000;
// And frames nest, on this thread's stack.
constexpr size_t kMostFrames = 64;

llvm::Function* Build::DeviceFunction(uint32_t index) {
  llvm::Function*& f = functions[index];
  if (!f) {
    llvm::LLVMContext& c = llvm.getContext();
    auto* ptr = llvm::PointerType::getUnqual(c);
    auto* i64 = llvm::Type::getInt64Ty(c);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(c), {ptr, ptr, i64, ptr, ptr}, false);
    f = llvm::Function::Create(type, llvm::Function::InternalLinkage, "function." + std::to_string(index),
                               llvm);
    f->addFnAttr(llvm::Attribute::NoUnwind);
    to_emit.push_back(index);
  }
  return f;
}

uint32_t Build::CollectiveArea() {
  if (!collective_area) {
    collective_area = (lane_bytes + 15) / 16 * 16;
    lane_bytes = collective_area + 4 * kMatrixWords;
  }
  return collective_area;
}

llvm::Constant* Build::VariableAddress(uint32_t index) {
  const ptx::Variable& v = module.variables[index];
  llvm::LLVMContext& c = llvm.getContext();
  std::string name = SymbolOf(v);
  llvm::GlobalVariable* g = llvm.getNamedGlobal(name);
  if (!g) {
    auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(c), std::max<uint64_t>(v.SizeBytes(), 1));
    g = new llvm::GlobalVariable(llvm, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, name);
  }
  return llvm::ConstantExpr::getPtrToInt(g, llvm::Type::getInt64Ty(c));
}

Status EmitKernel(Build& build, uint32_t function, const std::string& symbol) {
  llvm::LLVMContext& c = build.llvm.getContext();
  auto* ptr = llvm::PointerType::getUnqual(c);
  build.waits = (build.facts[function].waits || build.steps) && !build.lockstep;
  auto* result = build.waits ? llvm::Type::getInt32Ty(c) : llvm::Type::getVoidTy(c);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, {ptr, ptr}, false),
                                   llvm::Function::ExternalLinkage, symbol, build.llvm);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  Emitter::Shape shape = build.lockstep ? Emitter::Shape::kThread
                         : build.waits  ? Emitter::Shape::kStep
                                        : Emitter::Shape::kLoop;
  TRY(Emitter(build, function, shape, f).Emit());
  while (!build.to_emit.empty()) {
    uint32_t index = build.to_emit.back();
    build.to_emit.pop_back();
    TRY(Emitter(build, index, Emitter::Shape::kDevice, build.functions[index]).Emit());
  }
  build.lane_bytes = (build.lane_bytes + 15) / 16 * 16;
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(build.llvm, &stream)) {
    return Fail(Blame::kOurs, "kernel `{}`: the code made for it is malformed: {}",
                build.module.functions[function].name, complaint);
  }
  return {};
}

Emitter::Emitter(Build& b, uint32_t function, Shape shape, llvm::Function* llvm_function)
    : ir(b.llvm.getContext()), build(b), shape_(shape), root_(function), fn_(llvm_function) {
  context_ = fn_->getArg(0);
  lane_ = fn_->getArg(1);
  // Their fields may be read early, out of a loop or before a branch.
  fn_->addDereferenceableParamAttr(0, sizeof(BlockContext));
  fn_->addDereferenceableParamAttr(1, sizeof(Lane));
  entry_ = BasicBlock::Create(b.llvm.getContext(), "entry", fn_);
  // Own memory and program memory never overlap: contexts and records lie outside the window.
  llvm::MDBuilder md(b.llvm.getContext());
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("memory");
  own_scope_ = llvm::MDNode::get(b.llvm.getContext(), {md.createAnonymousAliasScope(domain, "own")});
}

Status Emitter::Emit() {
  auto frame = std::make_unique<Frame>();
  frame->index = root_;
  frame->fn = &build.module.functions[root_];
  frame->facts = &build.facts[root_];
  frame_ = frame.get();
  frames_.push_back(std::move(frame));
  local_top_ = build.layout.functions[root_].frame_bytes;
  llvm::LLVMContext& c = build.llvm.getContext();
  BasicBlock* body = NewBlock("body");
  switch (shape_) {
    case Shape::kStep:
      resident_ = ResidentRegisters();
      thread_end_ = NewBlock("done");
      ir.SetInsertPoint(thread_end_);
      ir.CreateRet(I32(static_cast<uint32_t>(Step::kDone)));
      frame_->end = thread_end_;
      break;
    case Shape::kLoop:
      thread_end_ = NewBlock("next");
      frame_->end = thread_end_;
      break;
    case Shape::kThread:
      frame_->end = NewBlock("return");
      thread_end_ = frame_->end;
      ir.SetInsertPoint(frame_->end);
      ir.CreateRetVoid();
      break;
    case Shape::kDevice:
      frame_->end = NewBlock("return");
      thread_end_ = frame_->end;
      local_start_ = fn_->getArg(2);
      frame_->args = fn_->getArg(3);
      frame_->returns = fn_->getArg(4);
      ir.SetInsertPoint(frame_->end);
      ir.CreateRetVoid();
      break;
  }
  if (shape_ == Shape::kLoop) {
    Value* n[3];
    ir.SetInsertPoint(entry_);
    for (int i = 0; i < 3; ++i) n[i] = ContextField(offsetof(BlockContext, ntid) + 4 * i, 32);
    BasicBlock* head[3];
    BasicBlock* latch[3] = {thread_end_, NewBlock("next.y"), NewBlock("next.z")};
    for (int i = 0; i < 3; ++i) head[i] = NewBlock("threads");
    BasicBlock* out = NewBlock("out");
    llvm::PHINode* at[3];
    for (int i = 2; i >= 0; --i) {
      ir.SetInsertPoint(head[i]);
      at[i] = ir.CreatePHI(Int(32), 2);
      at[i]->addIncoming(I32(0), i == 2 ? entry_ : head[i + 1]);
      tid_[i] = at[i];
      if (i) ir.CreateBr(head[i - 1]);
    }
    Value* linear = ir.CreateAdd(ir.CreateMul(ir.CreateAdd(ir.CreateMul(at[2], n[1]), at[1]), n[0]), at[0]);
    // For whoever must say which thread faulted; volatile, since no code here reads it.
    StoreLane(offsetof(Lane, linear), linear, true);
    if (build.kernel.reachable.size() > 1) {
      for (int i = 0; i < 3; ++i) StoreLane(offsetof(Lane, tid) + 4 * i, at[i]);
    }
    ir.CreateBr(body);
    for (int i = 0; i < 3; ++i) {
      ir.SetInsertPoint(latch[i]);
      Value* next = ir.CreateAdd(at[i], I32(1));
      at[i]->addIncoming(next, latch[i]);
      ir.CreateCondBr(ir.CreateICmpULT(next, n[i]), head[i], i == 2 ? out : latch[i + 1]);
    }
    ir.SetInsertPoint(out);
    ir.CreateRetVoid();
    ir.SetInsertPoint(body);
    TRY(EmitBody());
    ir.SetInsertPoint(entry_);
    ir.CreateBr(head[2]);
    return {};
  }
  ir.SetInsertPoint(body);
  if (shape_ == Shape::kStep) {
    ir.SetInsertPoint(entry_);
    Value* resume = LoadLane(offsetof(Lane, resume), 32);
    ir.SetInsertPoint(body);
    BasicBlock* lost = NewBlock("lost");
    llvm::IRBuilder<>(lost).CreateUnreachable();
    resume_ =
        llvm::SwitchInst::Create(resume, lost, 8);  // inserted at the end of the entry, once that is whole
    resume_->addCase(I32(0), body);
    Status made = EmitBody();
    if (!made.ok()) {
      resume_->deleteValue();
      return made;
    }
    resume_->insertInto(entry_, entry_->end());
    return {};
  }
  TRY(EmitBody());
  ir.SetInsertPoint(entry_);
  ir.CreateBr(body);
  (void)c;
  return {};
}

Status Emitter::EmitBody() {
  Frame& f = *frame_;
  MakeRegisters(f);
  const FunctionLayout& layout = build.layout.functions[f.index];
  // What may be read before it is written reads as zero.
  for (uint32_t r : f.facts->live_at_entry.Members()) {
    unsigned bits = ptx::BitsOf(f.fn->TypeOfRegister(r));
    if (f.registers.size() > r) ir.CreateStore(llvm::ConstantInt::get(Int(bits), 0), RegisterSlot(f, r));
  }
  if (f.fn->entry && build.kernel.stack_base) {
    StoreLane(offsetof(Lane, stack), I32(static_cast<uint32_t>(build.kernel.stack_base)));
  } else if (!f.fn->entry && UsesStack(*f.fn)) {
    f.stack_before = Scratch(4, 4);
    ir.CreateStore(LoadLane(offsetof(Lane, stack), 32), f.stack_before);
  }
  if (!f.fn->entry) {
    llvm::IRBuilder<> top(entry_, entry_->end());  // valid whichever way a suspended thread comes back
    for (size_t i = 0; i < f.fn->parameters.size(); ++i) {
      const ptx::Parameter& p = f.fn->parameters[i];
      Value* at = top.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), f.args, layout.params.offsets[i]);
      if (p.in_register) {
        unsigned bits = ptx::BitsOf(f.fn->TypeOfRegister(p.id));
        ir.CreateStore(ir.CreateLoad(Int(bits), at), RegisterSlot(f, p.id));
      } else {
        f.params[p.id] = at;
      }
    }
    for (size_t i = 0; i < f.fn->returns.size(); ++i) {
      const ptx::Parameter& p = f.fn->returns[i];
      if (!p.in_register) {
        f.params[p.id] = top.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), f.returns, layout.returns.offsets[i]);
      }
    }
  }
  for (const ptx::Statement& s : f.fn->statements) {
    if (s.kind == ptx::StatementKind::kLabel) {
      BasicBlock* next = LabelBlock(s.index);
      ir.CreateBr(next);
      ir.SetInsertPoint(next);
      ForgetChecks();
    } else if (s.kind == ptx::StatementKind::kInstruction) {
      TRY(EmitInstruction(f.fn->instructions[s.index]));
    }
  }
  Return();
  ir.GetInsertBlock()->getTerminator() ? void() : void(ir.CreateUnreachable());
  return {};
}

Status Emitter::EmitInstruction(const Instruction& in) {
  if (auto why = WhyNot(build.module, in)) return Fail(Blame::kUnsupported, "{}", *why);
  const OpcodeRow* row = FindOpcodeRow(in.opcode);
  if (++build.instructions > kMostInstructions) {
    return Refuse(in, "makes the kernel, with the functions inlined into it, larger than softcuda compiles");
  }
  // Code that relies on threads taking turns, one at a time.
  if (lockstep() && (in.opcode == ptx::Opcode::kMbarrier || in.Has(Mod::kMbarrier) || in.Has(Mod::kBulk) ||
                     in.Has(Mod::kMbarrierCompleteTxBytes))) {
    return Refuse(in, "changes memory in steps that lanes in lockstep would take together");
  }
  BasicBlock* after = nullptr;
  if (in.guard) {
    Value* p = ir.CreateLoad(Int(1), RegisterSlot(*frame_, in.guard.reg));
    BasicBlock* then = NewBlock("then");
    after = NewBlock("after");
    // A guarded waiting branch may yield whichever way it goes, so the yield comes first.
    if (waits() && frame_->facts->spins[IndexOf(in)]) {
      TRY(SpinPoint(in));
      p = ir.CreateLoad(Int(1), RegisterSlot(*frame_, in.guard.reg));
    }
    if (in.guard.negated) {
      ir.CreateCondBr(p, after, then);
    } else {
      ir.CreateCondBr(p, then, after);
    }
    ir.SetInsertPoint(then);
  } else if (waits() && frame_->facts->spins[IndexOf(in)]) {
    TRY(SpinPoint(in));
  }
  TRY(row->emit(*this, in));
  ForgetChecks(in);
  if (after) {
    ir.CreateBr(after);
    ir.SetInsertPoint(after);
  }
  return {};
}

Error Emitter::Refuse(const Instruction& in, const std::string& why) const {
  return Fail(Blame::kUnsupported, "line {}: `{}` {}", in.place.line, build.module.Text(in), why);
}

BasicBlock* Emitter::NewBlock(const char* name) { return BasicBlock::Create(ir.getContext(), name, fn_); }

BasicBlock* Emitter::LabelBlock(uint32_t label) {
  BasicBlock*& b = frame_->labels[label];
  if (!b) b = NewBlock("label");
  return b;
}

const FunctionFacts& Emitter::facts() const { return *frame_->facts; }
const ptx::Function& Emitter::function() const { return *frame_->fn; }
uint32_t Emitter::IndexOf(const Instruction& in) const {
  return static_cast<uint32_t>(&in - frame_->fn->instructions.data());
}

void Emitter::Return() {
  Frame& f = *frame_;
  if (f.stack_before) StoreLane(offsetof(Lane, stack), ir.CreateLoad(Int(32), f.stack_before));
  const FunctionLayout& layout = build.layout.functions[f.index];
  for (size_t i = 0; i < f.fn->returns.size(); ++i) {
    const ptx::Parameter& p = f.fn->returns[i];
    if (!p.in_register || f.fn->entry) continue;
    unsigned bits = ptx::BitsOf(f.fn->TypeOfRegister(p.id));
    ir.CreateStore(ir.CreateLoad(Int(bits), RegisterSlot(f, p.id)),
                   ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), f.returns, layout.returns.offsets[i]));
  }
  ir.CreateBr(f.end);
  ir.SetInsertPoint(NewBlock("dead"));
}

void Emitter::Exit() {
  ir.CreateBr(thread_end_);
  ir.SetInsertPoint(NewBlock("dead"));
}

void Emitter::RaiseTrap() {
  CallRuntime("cuplex_trap", ir.getVoidTy(), {context_, lane_});
  ir.CreateUnreachable();
  ir.SetInsertPoint(NewBlock("dead"));
}

Status Emitter::InlineCall(const Instruction& in, uint32_t callee, Value* args, Value* returns) {
  size_t depth = 0;
  for (Frame* f = frame_; f; f = f->caller) ++depth;
  if (depth > kMostFrames) return Refuse(in, "nests inlined functions deeper than softcuda compiles");
  auto frame = std::make_unique<Frame>();
  frame->index = callee;
  frame->fn = &build.module.functions[callee];
  frame->facts = &build.facts[callee];
  frame->caller = frame_;
  frame->live_in_caller = frame_->facts->LiveAfter(IndexOf(in));
  frame->args = args;
  frame->returns = returns;
  frame->end = NewBlock("returned");
  frame->local_base = local_top_;
  local_top_ += build.layout.functions[callee].frame_bytes;
  Frame* caller = frame_;
  frame_ = frame.get();
  frames_.push_back(std::move(frame));
  ForgetChecks();
  TRY(EmitBody());
  ForgetChecks();
  ir.SetInsertPoint(frame_->end);
  local_top_ = frame_->local_base;
  frame_ = caller;
  return {};
}

}  // namespace cuplex::softcuda
