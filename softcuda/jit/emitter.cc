#include "softcuda/jit/emitter.h"

#include <algorithm>
#include <bit>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>

#include "softcuda/jit/opcodes.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

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

Status EmitKernel(Build& build, uint32_t function, const std::string& symbol) {
  llvm::LLVMContext& c = build.llvm.getContext();
  auto* ptr = llvm::PointerType::getUnqual(c);
  build.waits = build.facts[function].waits;
  auto* result = build.waits ? llvm::Type::getInt32Ty(c) : llvm::Type::getVoidTy(c);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, {ptr, ptr}, false),
                                   llvm::Function::ExternalLinkage, symbol, build.llvm);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  TRY(Emitter(build, function, build.waits ? Emitter::Shape::kStep : Emitter::Shape::kLoop, f).Emit());
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
  fn_->addParamAttr(0, llvm::Attribute::NoUndef);
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
    StoreLane(offsetof(Lane, linear), linear);
    for (int i = 0; i < 3; ++i) StoreLane(offsetof(Lane, tid) + 4 * i, at[i]);
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
    Value* resume = LaneField(offsetof(Lane, resume), 32);
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

Status Emitter::EmitBody() {
  Frame& f = *frame_;
  MakeRegisters(f);
  const FunctionLayout& layout = build.layout.functions[f.index];
  // What may be read before it is written reads as zero.
  for (uint32_t r : f.facts->live_at_entry.Members()) {
    unsigned bits = ptx::BitsOf(f.fn->TypeOfRegister(r));
    if (f.registers.size() > r) ir.CreateStore(llvm::ConstantInt::get(Int(bits), 0), RegisterSlot(f, r));
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
    } else if (s.kind == ptx::StatementKind::kInstruction) {
      TRY(EmitInstruction(f.fn->instructions[s.index]));
    }
  }
  Return();
  ir.GetInsertBlock()->getTerminator() ? void() : void(ir.CreateUnreachable());
  return {};
}

Status Emitter::EmitInstruction(const Instruction& in) {
  const OpcodeRow* row = FindOpcodeRow(in.opcode);
  if (!row) return Refuse(in, "is not supported by softcuda");
  for (Mod mod : in.mods) {
    if (ptx::TypeOf(mod) != Type::kNone || ptx::SpaceOf(mod) != Space::kNone) continue;
    if (std::find(row->mods.begin(), row->mods.end(), mod) == row->mods.end()) {
      return Refuse(
          in, fmt::format("has the modifier `.{}`, which softcuda does not support", build.module.Text(mod)));
    }
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

// ------------------------------------------------------------------------------------------- suspensions

Status Emitter::Suspend(const Instruction& in, Step step) {
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

// ------------------------------------------------------------------------------------------------- fields

Value* Emitter::ContextField(size_t offset, unsigned bits) {
  Value*& v = fields_[{0, offset}];
  if (!v) {
    llvm::IRBuilder<> at(entry_, entry_->end());
    auto* load = at.CreateLoad(Int(bits), at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), context_, offset));
    load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
    v = load;
  }
  return v;
}

Value* Emitter::LaneField(size_t offset, unsigned bits) {
  Value*& v = fields_[{1, offset}];
  if (!v) {
    llvm::IRBuilder<> at(entry_, entry_->end());
    auto* load = at.CreateLoad(Int(bits), at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), lane_, offset));
    load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
    v = load;
  }
  return v;
}

void Emitter::StoreLane(size_t offset, Value* value) {
  auto* store = ir.CreateStore(value, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, offset));
  store->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
}

Value* Emitter::LoadLane(size_t offset, unsigned bits) {
  auto* load = ir.CreateLoad(Int(bits), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, offset));
  load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
  return load;
}

void Emitter::MarkProgramAccess(llvm::Instruction* access) {
  access->setMetadata(llvm::LLVMContext::MD_noalias, own_scope_);
}

Value* Emitter::Special(const Instruction& in, ptx::Special special, Mod component) {
  using S = ptx::Special;
  int axis = component == Mod::kY ? 1 : component == Mod::kZ ? 2 : 0;
  if (component == Mod::kW) return I32(0);
  auto of = [&](size_t offset) { return ContextField(offset + 4 * axis, 32); };
  auto linear = [&]() -> Value* {
    if (shape_ != Shape::kLoop) return LaneField(offsetof(Lane, linear), 32);
    return LoadLane(offsetof(Lane, linear), 32);
  };
  auto laneid = [&] { return ir.CreateAnd(linear(), I32(31)); };
  auto bit = [&] { return ir.CreateShl(I32(1), laneid()); };
  switch (special) {
    case S::kTid:
      return shape_ == Shape::kLoop ? tid_[axis] : LaneField(offsetof(Lane, tid) + 4 * axis, 32);
    case S::kNtid:
      return of(offsetof(BlockContext, ntid));
    case S::kCtaid:
    case S::kClusterid:
      return of(offsetof(BlockContext, ctaid));
    case S::kNctaid:
    case S::kNclusterid:
      return of(offsetof(BlockContext, nctaid));
    case S::kClusterCtaid:
    case S::kClusterCtarank:
      return I32(0);
    case S::kClusterNctaid:
    case S::kClusterNctarank:
      return I32(1);
    case S::kIsExplicitCluster:
      return ir.getFalse();
    case S::kLaneid:
      return laneid();
    case S::kWarpid:
      return ir.CreateLShr(linear(), I32(5));
    case S::kNwarpid:
      return I32(kMaxThreadsPerBlock / kWarpSize);
    case S::kSmid:
      return ContextField(offsetof(BlockContext, smid), 32);
    case S::kNsmid:
      return ContextField(offsetof(BlockContext, nsmid), 32);
    case S::kGridid:
      return ContextField(offsetof(BlockContext, grid_id), 64);
    case S::kLanemaskEq:
      return bit();
    case S::kLanemaskLt:
      return ir.CreateSub(bit(), I32(1));
    case S::kLanemaskLe:
      return ir.CreateSub(ir.CreateShl(bit(), I32(1)), I32(1));
    case S::kLanemaskGe:
      return ir.CreateNeg(bit());
    case S::kLanemaskGt:
      return ir.CreateNeg(ir.CreateShl(bit(), I32(1)));
    case S::kClock:
    case S::kClock64:
    case S::kClockHi: {
      Value* now = ir.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
      if (special == S::kClock64) return now;
      return ir.CreateTrunc(special == S::kClock ? now : ir.CreateLShr(now, I64(32)), Int(32));
    }
    case S::kGlobaltimer:
    case S::kGlobaltimerLo:
    case S::kGlobaltimerHi: {
      Value* now = CallRuntime("cuplex_globaltimer", Int(64), {});
      if (special == S::kGlobaltimer) return now;
      return ir.CreateTrunc(special == S::kGlobaltimerLo ? now : ir.CreateLShr(now, I64(32)), Int(32));
    }
    case S::kDynamicSmemSize:
      return ContextField(offsetof(BlockContext, dynamic_shared), 32);
    case S::kTotalSmemSize:
    case S::kAggrSmemSize:
      return ContextField(offsetof(BlockContext, shared_bytes), 32);
    // Nothing of a block's shared memory is kept for the system here.
    case S::kReservedSmemOffsetBegin:
    case S::kReservedSmemOffsetEnd:
    case S::kReservedSmemOffsetCap:
    case S::kCurrentGraphExec:
      return special == S::kCurrentGraphExec ? I64(0) : static_cast<Value*>(I32(0));
    default:
      if (special == static_cast<S>(static_cast<uint32_t>(S::kEnvreg0) + 1)) {
        return ContextField(offsetof(BlockContext, envreg1), 32);
      }
      if (special == static_cast<S>(static_cast<uint32_t>(S::kEnvreg0) + 2)) {
        return ContextField(offsetof(BlockContext, envreg2), 32);
      }
      if (special >= S::kEnvreg0 &&
          static_cast<uint32_t>(special) < static_cast<uint32_t>(S::kEnvreg0) + 32) {
        return I32(0);
      }
      return nullptr;
  }
}

// ----------------------------------------------------------------------------------------------- operands

llvm::Type* Emitter::TypeFor(Type type) {
  switch (type) {
    case Type::kF16:
      return ir.getHalfTy();
    case Type::kF32:
    case Type::kTf32:
      return ir.getFloatTy();
    case Type::kF64:
      return ir.getDoubleTy();
    case Type::kF16x2:
      return llvm::FixedVectorType::get(ir.getHalfTy(), 2);
    case Type::kBf16x2:
    case Type::kU16x2:
    case Type::kS16x2:
      return llvm::FixedVectorType::get(Int(16), 2);
    case Type::kF32x2:
      return llvm::FixedVectorType::get(ir.getFloatTy(), 2);
    default:
      return Int(std::max(1u, ptx::BitsOf(type)));
  }
}

Value* Emitter::ToBits(Value* value) {
  llvm::Type* t = value->getType();
  if (t->isIntegerTy()) return value;
  return ir.CreateBitCast(value, Int(static_cast<unsigned>(t->getPrimitiveSizeInBits())));
}

Value* Emitter::FromBits(Value* bits, Type type) {
  llvm::Type* want = TypeFor(type);
  unsigned width = static_cast<unsigned>(want->getPrimitiveSizeInBits());
  Value* v = ir.CreateZExtOrTrunc(ToBits(bits), Int(width));
  return want->isIntegerTy() ? v : ir.CreateBitCast(v, want);
}

Result<Value*> Emitter::Read(const Instruction& in, const Operand& operand, Type type) {
  llvm::Type* want = TypeFor(type);
  switch (operand.kind) {
    case OperandKind::kRegister: {
      if (operand.component != Mod::kNone)
        return Refuse(in, "reads a part of a register, which softcuda does not support");
      if (frame_->fn->RangeOf(operand.id).vector != 1) {
        return Refuse(in, "uses a vector register, which softcuda does not support");
      }
      Type declared = frame_->fn->TypeOfRegister(operand.id);
      llvm::Type* t = declared == Type::kF32   ? ir.getFloatTy()
                      : declared == Type::kF64 ? ir.getDoubleTy()
                                               : static_cast<llvm::Type*>(Int(ptx::BitsOf(declared)));
      llvm::LoadInst* load = ir.CreateLoad(t, RegisterSlot(*frame_, operand.id));
      if (resident_) load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
      Value* v = load;
      if (operand.negated) v = ir.CreateNot(v);
      return t == want ? v : FromBits(v, type);
    }
    case OperandKind::kSpecial: {
      Value* v = Special(in, operand.special(), operand.component);
      if (!v) {
        return Refuse(in,
                      fmt::format("reads {}, which softcuda does not have", ptx::Text(operand.special())));
      }
      return FromBits(v, type);
    }
    case OperandKind::kInteger: {
      if (want->isFloatingPointTy())
        return llvm::ConstantFP::get(want, static_cast<double>(operand.offset()));
      unsigned width = static_cast<unsigned>(want->getPrimitiveSizeInBits());
      Value* v = llvm::ConstantInt::get(Int(width), llvm::APInt(64, operand.bits).sextOrTrunc(width));
      return FromBits(v, type);
    }
    case OperandKind::kFloat32:
    case OperandKind::kFloat64: {
      bool narrow = operand.kind == OperandKind::kFloat32;
      if (want->isFloatTy() && narrow) return FromBits(I32(static_cast<uint32_t>(operand.bits)), type);
      if (want->isFloatTy() || want->isDoubleTy() || want->isHalfTy()) {
        double d = narrow ? std::bit_cast<float>(static_cast<uint32_t>(operand.bits))
                          : std::bit_cast<double>(operand.bits);
        return llvm::ConstantFP::get(want, d);
      }
      return FromBits(
          narrow ? static_cast<Value*>(I32(static_cast<uint32_t>(operand.bits))) : I64(operand.bits), type);
    }
    case OperandKind::kSymbol: {
      TRY(Value * v, SymbolValue(in, operand));
      return FromBits(v, type);
    }
    default:
      return Refuse(in, "has an operand that softcuda does not take there");
  }
}

Status Emitter::Write(const Instruction& in, const Operand& operand, Value* value, bool is_signed) {
  if (operand.kind == OperandKind::kSink) return {};
  if (!operand.IsRegister() || operand.component != Mod::kNone) {
    return Refuse(in, "writes to something other than a register");
  }
  if (frame_->fn->RangeOf(operand.id).vector != 1) {
    return Refuse(in, "uses a vector register, which softcuda does not support");
  }
  Type declared = frame_->fn->TypeOfRegister(operand.id);
  llvm::Type* t = declared == Type::kF32   ? ir.getFloatTy()
                  : declared == Type::kF64 ? ir.getDoubleTy()
                                           : static_cast<llvm::Type*>(Int(ptx::BitsOf(declared)));
  if (value->getType() != t) {
    Value* bits = ToBits(value);
    unsigned width = static_cast<unsigned>(t->getPrimitiveSizeInBits());
    bits = is_signed ? ir.CreateSExtOrTrunc(bits, Int(width)) : ir.CreateZExtOrTrunc(bits, Int(width));
    value = t->isIntegerTy() ? bits : ir.CreateBitCast(bits, t);
  }
  llvm::StoreInst* store = ir.CreateStore(value, RegisterSlot(*frame_, operand.id));
  if (resident_) store->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
  return {};
}

Value* Emitter::CallPure(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  auto* call = llvm::cast<llvm::CallInst>(CallRuntime(name, result, args));
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

Value* Emitter::CallRuntime(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto callee = build.llvm.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  auto* call = ir.CreateCall(callee, args);
  call->setDoesNotThrow();
  return call;
}

// ------------------------------------------------------------------------------------------------- floats

Value* Emitter::Flush(Value* f, Type type) {
  if (type == Type::kF64) return f;
  bool pair = f->getType()->isVectorTy();
  unsigned bits = static_cast<unsigned>(f->getType()->getScalarSizeInBits());
  llvm::Type* ints = pair ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(Int(bits), 2)) : Int(bits);
  uint64_t exponent = bits == 32 ? 0x7f800000 : type == Type::kF16 || type == Type::kF16x2 ? 0x7c00 : 0x7f80;
  Value* raw = ir.CreateBitCast(f, ints);
  Value* tiny = ir.CreateICmpEQ(ir.CreateAnd(raw, llvm::ConstantInt::get(ints, exponent)),
                                llvm::Constant::getNullValue(ints));
  Value* zero = ir.CreateAnd(raw, llvm::ConstantInt::get(ints, uint64_t{1} << (bits - 1)));
  return ir.CreateBitCast(ir.CreateSelect(tiny, zero, raw), f->getType());
}

Value* Emitter::Saturate(Value* f) {
  llvm::Type* t = f->getType();
  Value* zero = llvm::ConstantFP::get(t, 0.0);
  Value* one = llvm::ConstantFP::get(t, 1.0);
  Value* low = ir.CreateSelect(ir.CreateFCmpOGT(f, zero), f, zero);
  return ir.CreateSelect(ir.CreateFCmpOLT(low, one), low, one);
}

Value* Emitter::HalfToFloat(Value* v, Type type) {
  if (type == Type::kF16) return ir.CreateFPExt(v, ir.getFloatTy());
  if (type == Type::kF16x2) return ir.CreateFPExt(v, llvm::FixedVectorType::get(ir.getFloatTy(), 2));
  bool pair = type == Type::kBf16x2;
  llvm::Type* wide = pair ? llvm::FixedVectorType::get(Int(32), 2) : static_cast<llvm::Type*>(Int(32));
  llvm::Type* f = pair ? llvm::FixedVectorType::get(ir.getFloatTy(), 2) : ir.getFloatTy();
  Value* bits = ir.CreateShl(ir.CreateZExt(v, wide), llvm::ConstantInt::get(wide, 16));
  return ir.CreateBitCast(bits, f);
}

Value* Emitter::FloatToHalf(Value* v, Type type) {
  if (type == Type::kF16) return ir.CreateFPTrunc(v, ir.getHalfTy());
  if (type == Type::kF16x2) return ir.CreateFPTrunc(v, llvm::FixedVectorType::get(ir.getHalfTy(), 2));
  bool pair = type == Type::kBf16x2;
  llvm::Type* wide = pair ? llvm::FixedVectorType::get(Int(32), 2) : static_cast<llvm::Type*>(Int(32));
  llvm::Type* narrow = pair ? llvm::FixedVectorType::get(Int(16), 2) : static_cast<llvm::Type*>(Int(16));
  auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(wide, c); };
  Value* bits = ir.CreateBitCast(v, wide);
  Value* odd = ir.CreateAnd(ir.CreateLShr(bits, constant(16)), constant(1));
  Value* rounded = ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(bits, constant(0x7fff)), odd), constant(16));
  Value* nan = ir.CreateFCmpUNO(v, v);
  return ir.CreateTrunc(ir.CreateSelect(nan, constant(0x7fff), rounded), narrow);
}

Value* Emitter::DoubleToHalf(Value* v, Type type) {
  Value* odd = CallPure("cuplex_f64_to_f32_odd", ir.getFloatTy(), {v});
  return FloatToHalf(odd, type);
}

// ---------------------------------------------------------------------------------------------- addresses

Value* Emitter::CheckedPointer(Value* base, int64_t offset, unsigned bytes) {
  const Window& window = build.window.all();
  bool near = offset > -static_cast<int64_t>(AddressWindow::kGuardBytes) &&
              offset < static_cast<int64_t>(AddressWindow::kGuardBytes - 64);
  bool keeps_alignment = offset % static_cast<int64_t>(bytes) == 0;
  Value* address = offset ? ir.CreateAdd(base, I64(static_cast<uint64_t>(offset))) : base;
  Value* checked = near && keeps_alignment ? base : address;
  Value* distance = ir.CreateSub(checked, I64(window.base));
  unsigned shift = static_cast<unsigned>(std::countr_zero(bytes));
  // Rotating right brings the low bits, which alignment wants zero, to the top: one compare sees both.
  if (shift)
    distance = ir.CreateIntrinsic(llvm::Intrinsic::fshr, {Int(64)}, {distance, distance, I64(shift)});
  BasicBlock* on = NewBlock("inside");
  BasicBlock* outside = NewBlock("outside");
  llvm::MDBuilder md(ir.getContext());
  ir.CreateCondBr(ir.CreateICmpULT(distance, I64(window.size >> shift)), on, outside,
                  md.createBranchWeights(1 << 20, 1));
  ir.SetInsertPoint(outside);
  CallRuntime("cuplex_outside_window", ir.getVoidTy(), {context_, lane_, address, I32(bytes)});
  ir.CreateBr(on);
  ir.SetInsertPoint(on);
  return ir.CreateIntToPtr(address, ir.getPtrTy());
}

Value* Emitter::BoundedOffset(Value* offset, Value* limit, Value* base, unsigned bytes) {
  unsigned shift = static_cast<unsigned>(std::countr_zero(bytes));
  Value* turned = offset;
  if (shift) turned = ir.CreateIntrinsic(llvm::Intrinsic::fshr, {Int(64)}, {offset, offset, I64(shift)});
  Value* ok = ir.CreateICmpULT(turned, ir.CreateLShr(limit, I64(shift)));
  Value* address = ir.CreateAdd(base, offset);
  BasicBlock* on = NewBlock("inside");
  BasicBlock* outside = NewBlock("outside");
  llvm::MDBuilder md(ir.getContext());
  ir.CreateCondBr(ok, on, outside, md.createBranchWeights(1 << 20, 1));
  ir.SetInsertPoint(outside);
  CallRuntime("cuplex_bad_offset", ir.getVoidTy(), {context_, lane_, address, I32(bytes)});
  ir.CreateUnreachable();
  ir.SetInsertPoint(on);
  return ir.CreateIntToPtr(address, ir.getPtrTy());
}

Result<Value*> Emitter::SymbolValue(const Instruction& in, const Operand& op) {
  switch (op.symbol) {
    case ptx::SymbolKind::kFunction:
      if (!build.module.functions[op.id].has_body) {
        return Refuse(in, fmt::format("takes the address of `{}`, which the module does not define",
                                      build.module.functions[op.id].name));
      }
      return I64(ModuleLayout::FunctionToken(op.id));
    case ptx::SymbolKind::kGlobalVariable: {
      const ptx::Variable& v = build.module.variables[op.id];
      if (v.space == Space::kShared || v.space == Space::kSharedCta) {
        return I64(build.kernel.shared.at({kModuleScope, op.id}) + op.bits);
      }
      if (v.space != Space::kGlobal && v.space != Space::kConst) {
        return Refuse(
            in, fmt::format("uses `{}`, which lies in a state space that softcuda does not have", v.name));
      }
      return I64(build.layout.places[op.id] + op.bits);
    }
    case ptx::SymbolKind::kLocalVariable: {
      const ptx::Variable& v = frame_->fn->variables[op.id];
      if (v.space == Space::kShared || v.space == Space::kSharedCta) {
        return I64(build.kernel.shared.at({frame_->index, op.id}) + op.bits);
      }
      if (v.space == Space::kLocal) {
        uint64_t at = frame_->local_base + build.layout.functions[frame_->index].locals.at(op.id) + op.bits;
        return local_start_ ? ir.CreateAdd(local_start_, I64(at)) : static_cast<Value*>(I64(at));
      }
      if (v.space == Space::kParam && frame_->fn->entry) {
        for (size_t i = 0; i < frame_->fn->parameters.size(); ++i) {
          if (frame_->fn->parameters[i].id == op.id) {
            return I64(build.layout.functions[frame_->index].params.offsets[i] + op.bits);
          }
        }
      }
      return Refuse(in, fmt::format("takes the address of `{}`, which has none in softcuda", v.name));
    }
    default:
      return Refuse(in, "uses a symbol that has no address");
  }
}

Result<Value*> Emitter::ParamVariable(const Instruction& in, uint32_t variable, int64_t offset,
                                      unsigned bytes) {
  const ptx::Variable& v = frame_->fn->variables[variable];
  uint64_t size = v.SizeBytes();
  if (offset < 0 || static_cast<uint64_t>(offset) + bytes > size) {
    return Refuse(
        in, fmt::format("touches bytes {}..{} of `{}`, which has {}", offset, offset + bytes, v.name, size));
  }
  Value*& at = frame_->params[variable];
  if (!at) {
    if (frame_->fn->entry) {
      for (size_t i = 0; i < frame_->fn->parameters.size(); ++i) {
        if (frame_->fn->parameters[i].id != variable) continue;
        llvm::IRBuilder<> top(entry_, entry_->end());
        Value* params = ContextField(offsetof(BlockContext, params), 64);
        top.SetInsertPoint(entry_, entry_->end());
        at = top.CreateIntToPtr(
            top.CreateAdd(params, I64(build.layout.functions[frame_->index].params.offsets[i])),
            ir.getPtrTy());
      }
    }
    if (!at) at = Scratch(size, v.Alignment());
  }
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), at, static_cast<uint64_t>(offset));
}

Value* Emitter::Scratch(uint64_t bytes, uint64_t align) {
  if (waits()) {
    build.lane_bytes = (build.lane_bytes + 15) / 16 * 16;
    llvm::IRBuilder<> at(entry_, entry_->end());
    Value* v = at.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, build.lane_bytes);
    build.lane_bytes += static_cast<uint32_t>(std::max<uint64_t>(bytes, 1));
    return v;
  }
  llvm::IRBuilder<> at(entry_, entry_->begin());
  auto* v = at.CreateAlloca(llvm::ArrayType::get(Int(8), std::max<uint64_t>(bytes, 1)));
  v->setAlignment(llvm::Align(std::max<uint64_t>(std::bit_ceil(std::max<uint64_t>(align, 1)), 16)));
  return v;
}

Value* Emitter::LocalTop() {
  return local_start_ ? ir.CreateAdd(local_start_, I64(local_top_)) : static_cast<Value*>(I64(local_top_));
}

Result<Value*> Emitter::Address(const Instruction& in, const Operand& op, Space space, unsigned bytes) {
  if (op.kind != OperandKind::kAddress) return Refuse(in, "needs an address there");
  bool shared = space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
  bool param = space == Space::kParam || space == Space::kParamEntry || space == Space::kParamFunc;
  if (!op.parts.empty()) return Refuse(in, "indexes a symbol, which softcuda does not support");
  if (op.base == ptx::BaseKind::kSymbol && op.symbol == ptx::SymbolKind::kLocalVariable &&
      frame_->fn->variables[op.id].space == Space::kParam) {
    if (!param) return Refuse(in, "names a parameter in another state space");
    TRY(Value * at, ParamVariable(in, op.id, op.offset(), bytes));
    return at;
  }
  Value* base = nullptr;
  int64_t offset = op.offset();
  if (op.base == ptx::BaseKind::kRegister) {
    Operand r = Operand::Register(op.id);
    unsigned width = ptx::BitsOf(frame_->fn->TypeOfRegister(op.id));
    TRY(base, Read(in, r, width == 64 ? Type::kB64 : Type::kB32));
    base = ir.CreateZExt(base, Int(64));
  } else if (op.base == ptx::BaseKind::kSymbol) {
    Operand symbol = op;
    symbol.kind = OperandKind::kSymbol;
    symbol.bits = 0;
    const ptx::Variable* v = op.symbol == ptx::SymbolKind::kGlobalVariable  ? &build.module.variables[op.id]
                             : op.symbol == ptx::SymbolKind::kLocalVariable ? &frame_->fn->variables[op.id]
                                                                            : nullptr;
    if (!v) return Refuse(in, "has an address that is no variable's");
    Space of = v->space == Space::kSharedCta ? Space::kShared : v->space;
    Space wanted = shared ? Space::kShared : space;
    if (wanted != Space::kNone && wanted != of) return Refuse(in, "names a variable of another state space");
    TRY(base, SymbolValue(in, symbol));
    bool within = offset >= 0 && static_cast<uint64_t>(offset) + bytes <= v->SizeBytes();
    bool aligned = (offset % bytes) == 0 && v->Alignment() % bytes == 0;
    if (of == Space::kShared && space == Space::kNone)
      return Refuse(in, "names a shared variable without .shared");
    if (of == Space::kLocal && space == Space::kNone)
      return Refuse(in, "names a local variable without .local");
    if (within && aligned) {
      Value* at = ir.CreateAdd(base, I64(static_cast<uint64_t>(offset)));
      if (of == Space::kShared) at = ir.CreateAdd(shared_base(), at);
      // A called function's frame may lie past the thread's stack, so there the bound is still checked.
      if (of == Space::kLocal && !local_start_) at = ir.CreateAdd(local_base(), at);
      if (of != Space::kLocal || !local_start_) return ir.CreateIntToPtr(at, ir.getPtrTy());
    }
  } else {
    base = I64(0);
  }
  if (shared || space == Space::kLocal || param) {
    Value* at = ir.CreateAdd(base, I64(static_cast<uint64_t>(offset)));
    if (shared) {
      Value* limit = ir.CreateZExt(ContextField(offsetof(BlockContext, shared_bytes), 32), Int(64));
      return BoundedOffset(at, limit, shared_base(), bytes);
    }
    if (param) {
      if (!frame_->fn->entry)
        return Refuse(in, "computes an address of a parameter, which softcuda supports in kernels only");
      Value* limit = I64((build.layout.functions[frame_->index].params.bytes + 15) / 16 * 16);
      return BoundedOffset(at, limit, ContextField(offsetof(BlockContext, params), 64), bytes);
    }
    Value* limit = ir.CreateZExt(ContextField(offsetof(BlockContext, local_bytes), 32), Int(64));
    return BoundedOffset(at, limit, local_base(), bytes);
  }
  if (space != Space::kNone && space != Space::kGlobal && space != Space::kConst) {
    return Refuse(in, "addresses a state space that softcuda does not have");
  }
  return CheckedPointer(base, offset, bytes);
}

// ------------------------------------------------------------------------------------------------ inlining

Status Emitter::InlineCall(const Instruction& in, uint32_t callee, Value* args, Value* returns) {
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
  TRY(EmitBody());
  ir.SetInsertPoint(frame_->end);
  local_top_ = frame_->local_base;
  frame_ = caller;
  return {};
}

}  // namespace cuplex::softcuda
