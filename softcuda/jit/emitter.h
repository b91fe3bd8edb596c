// Emitter: turns one PTX function, and the functions inlined into it, into one LLVM function. The opcode
// families (families.h) are written in its words: read an operand as a type, write a result, check an
// address, suspend.
//
// Used by one thread; lives for the making of one kernel's LLVM module.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "softcuda/jit/facts.h"
#include "softcuda/jit/lane.h"
#include "softcuda/jit/layout.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

/// What the code of one kernel is made of, shared by the emitters of its functions.
struct Build {
  const ptx::Module& module;
  const std::vector<FunctionFacts>& facts;
  const ModuleLayout& layout;
  const KernelLayout& kernel;
  const AddressWindow& window;
  llvm::Module& llvm;
  bool waits = false;                                  // the kernel's threads are stepped
  bool steps = false;                                  // step threads also where none waits
  std::array<uint32_t, 3> block = {};                  // with lockstep: the shape of blocks, in threads
  bool lockstep = false;                               // the kernel is one thread for lockstep.h to widen
  size_t instructions = 0;                             // of PTX, emitted so far
  uint32_t lane_bytes = sizeof(Lane);                  // grows as registers get places in the record
  std::map<uint32_t, llvm::Function*> functions = {};  // by index, device functions that are called
  std::vector<uint32_t> to_emit = {};                  // declared, body still missing

  uint32_t collective_area = 0;  // offset in the record, 0 until it is needed

  llvm::Function* DeviceFunction(uint32_t index);
  /// Where in a thread's record the words lie that it hands to a matrix instruction, and gets from it.
  uint32_t CollectiveArea();
  /// The address of a .global or .const variable of the module, 64 bits: known when the code is linked.
  llvm::Constant* VariableAddress(uint32_t index);
  /// The name by which code refers to it.
  static std::string SymbolOf(const ptx::Variable& variable) { return "variable." + variable.name; }
};

/// Emits a kernel and every function it calls into build.llvm, under the name `symbol`. With build.lockstep
/// it is the code of one thread, void(BlockContext*, Lane*), which says by calls of the functions of
/// markers.h what depends on the thread and where threads meet.
Status EmitKernel(Build& build, uint32_t function, const std::string& symbol);

class Emitter {
 public:
  using Value = llvm::Value;

  enum class Shape { kLoop, kStep, kDevice, kThread };  // LoopCode, StepCode, a called .func, lockstep

  Emitter(Build& build, uint32_t function, Shape shape, llvm::Function* llvm_function);
  Status Emit();

  llvm::IRBuilder<> ir;
  Build& build;

  // ---- words for the families

  /// Blamed on support: "line N: `text` ...why".
  Error Refuse(const ptx::Instruction& in, const std::string& why) const;

  llvm::Type* TypeFor(
      ptx::Type type);  // the LLVM type values of the type have; bf16 is i16, packed types vectors
  llvm::IntegerType* Int(unsigned bits) { return ir.getIntNTy(bits); }
  llvm::ConstantInt* I32(uint32_t v) { return ir.getInt32(v); }
  llvm::ConstantInt* I64(uint64_t v) { return ir.getInt64(v); }

  /// The operand's value as `type`; registers wider than the type are truncated, narrower ones zero-extended.
  Result<Value*> Read(const ptx::Instruction& in, const ptx::Operand& operand, ptx::Type type);
  /// Writes to a register or `_`; a register wider than the value gets it sign-extended where `is_signed`.
  Status Write(const ptx::Instruction& in, const ptx::Operand& operand, Value* value, bool is_signed = false);
  /// Bits as an integer of that width, and back.
  Value* ToBits(Value* value);
  Value* FromBits(Value* bits, ptx::Type type);

  /// Calls runtime function `name` (runtime.h). Pure ones may be moved and merged.
  Value* CallPure(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args);
  Value* CallRuntime(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args);

  // Float words.
  Value* Flush(Value* f, ptx::Type type = ptx::Type::kF32);  // subnormal to zero of its sign; not f64
  Value* Saturate(Value* f);                                 // to [0, 1], NaN to 0
  Value* HalfToFloat(Value* v, ptx::Type type);              // f16 or bf16 (i16) or vectors of them, to float
  Value* FloatToHalf(Value* v, ptx::Type type);              // rounded to nearest even
  Value* DoubleToHalf(Value* v, ptx::Type type);             // rounded once

  /// The pointer of a memory operand, checked so that `bytes` bytes there may be touched and are aligned so.
  /// `space` is the instruction's, kNone for generic.
  Result<Value*> Address(const ptx::Instruction& in, const ptx::Operand& operand, ptx::Space space,
                         unsigned bytes);
  /// What a memory operand says, as an address in its state space, 64 bits, not checked: for instructions
  /// that are carried out by a function, which checks (reach.h).
  Result<Value*> PlainAddress(const ptx::Instruction& in, const ptx::Operand& operand, ptx::Space space);
  /// Address of a symbol in its own state space, as PTX sees it.
  Result<Value*> SymbolValue(const ptx::Instruction& in, const ptx::Operand& operand);
  /// Marks a load or store of the program's own memory: it never touches contexts and records.
  void MarkProgramAccess(llvm::Instruction* access);
  /// Whether a .param address lies in the kernel's parameters, which never change.
  bool IsKernelParameter(const ptx::Operand& operand) const;

  // Fields of the context and of the record, as they stay while a thread runs.
  Value* Special(const ptx::Instruction& in, ptx::Special special, ptx::Mod component);
  Value* ContextField(size_t offset, unsigned bits);
  Value* LaneField(size_t offset, unsigned bits);
  void StoreLane(size_t offset, Value* value, bool is_volatile = false);
  Value* LoadLane(size_t offset, unsigned bits);
  Value* shared_base() { return ContextField(offsetof(BlockContext, shared), 64); }
  Value* local_base() { return LaneField(offsetof(Lane, local), 64); }
  Value* context() { return context_; }
  Value* lane() { return lane_; }

  /// Leaves the function with `step` and goes on here when the thread is resumed. `in` is what waits.
  Status Suspend(const ptx::Instruction& in, Step step);
  bool waits() const { return shape_ == Shape::kStep; }
  bool lockstep() const { return shape_ == Shape::kThread; }
  /// Calls a function of markers.h. Pure ones may be moved and merged; the others stay where they are.
  Value* Mark(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args, bool pure = false);
  /// Which other threads an atomic operation on the space must be atomic against.
  llvm::SyncScope::ID AtomicScope(ptx::Space space) const {
    return space == ptx::Space::kShared ? llvm::SyncScope::SingleThread : llvm::SyncScope::System;
  }

  /// The carry flag, i1.
  Value* carry_slot();

  // Control flow.
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::BasicBlock* LabelBlock(uint32_t label);
  const FunctionFacts& facts() const;
  const ptx::Function& function() const;
  uint32_t IndexOf(const ptx::Instruction& in) const;
  void Return();  // of the innermost frame
  void Exit();    // of the thread
  /// Yields after a while; before the branch `in`, which closes a loop that waits for memory.
  Status SpinPoint(const ptx::Instruction& in);
  /// Raises a fault that does not come back.
  void RaiseTrap();

  // Calls.
  struct Frame;
  Frame* frame() { return frame_; }
  Status InlineCall(const ptx::Instruction& in, uint32_t callee, Value* args, Value* returns);
  /// Memory for a .param variable of a call site, or for call arguments: survives suspensions.
  Value* Scratch(uint64_t bytes, uint64_t align);
  Result<Value*> ParamVariable(const ptx::Instruction& in, uint32_t variable, int64_t offset, unsigned bytes);
  Value* LocalTop();  // where a callee's local frame starts

 private:
  Status EmitBody();
  Status EmitInstruction(const ptx::Instruction& in);
  void MakeRegisters(Frame& frame);
  Value* RegisterSlot(Frame& frame, uint32_t reg);
  /// Bytes around a register's value, and the alignment, that a check answers for.
  struct Extent {
    int64_t low = 0, high = 0;
    unsigned alignment = 1;
  };
  Extent ExtentAround(const ptx::Instruction& in, uint32_t reg, int64_t offset, unsigned bytes) const;
  Value* CheckedPointer(const ptx::Instruction& in, Value* base, uint32_t reg, int64_t offset,
                        unsigned bytes);
  /// A state space whose addresses are offsets: its number in the fault zone, where it starts, its bytes.
  struct Bounds {
    unsigned zone = 0;
    Value* base = nullptr;
    Value* limit = nullptr;
  };
  Value* BoundedPointer(const ptx::Instruction& in, Bounds bounds, Value* origin, uint32_t reg,
                        int64_t offset, unsigned bytes);
  Result<Value*> SharedOffset(const ptx::Instruction& in, uint32_t scope, const ptx::Operand& op);
  void ForgetChecks(const ptx::Instruction& in);
  void ForgetChecks() {
    checked_.clear();
    bounded_.clear();
  }
  uint32_t RecordPlace(Frame& frame, uint32_t reg);
  Status BeginLoop();
  Status BeginStep();
  bool ResidentRegisters();

  Shape shape_;
  uint32_t root_;
  llvm::Function* fn_;
  Value* context_ = nullptr;
  Value* lane_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;       // allocas and the like, ends in a branch made last
  llvm::BasicBlock* thread_end_ = nullptr;  // where a thread that ends goes
  llvm::SwitchInst* resume_ = nullptr;
  uint32_t resume_points_ = 0;
  bool resident_ =
      false;  // registers live across suspensions stay in the record instead of being saved to it
  Value* carry_ = nullptr;
  Value* spin_budget_ = nullptr;
  Value* tid_[3] = {};                       // kLoop
  std::map<size_t, Value*> context_fields_;  // kThread
  Frame* frame_ = nullptr;
  std::vector<std::unique_ptr<Frame>> frames_;
  uint64_t local_top_ = 0;        // bytes of local memory the frames on the way take
  Value* local_start_ = nullptr;  // kDevice: where its local frame starts
  llvm::MDNode* own_scope_ = nullptr;
  // What is checked on this straight line of code, by register of the innermost frame; for bounded spaces
  // also by zone, and with the address that offset zero from the register has.
  std::map<uint32_t, Extent> checked_;
  std::map<std::pair<unsigned, uint32_t>, std::pair<Extent, Value*>> bounded_;
};

/// One PTX function on its way: the root, or one inlined.
struct Emitter::Frame {
  uint32_t index = 0;
  const ptx::Function* fn = nullptr;
  const FunctionFacts* facts = nullptr;
  Frame* caller = nullptr;
  RegisterSet live_in_caller;  // registers of the caller live after the call
  std::vector<Value*> registers;
  std::vector<uint32_t> record_place;  // 0: none yet
  std::vector<llvm::BasicBlock*> labels;
  std::map<uint32_t, Value*> params;  // memory of .param variables
  Value* args = nullptr;
  Value* returns = nullptr;
  llvm::BasicBlock* end = nullptr;
  uint64_t local_base = 0;
  Value* stack_before =
      nullptr;  // memory: the top of the stack of alloca, to go back to; null where it stays
};

}  // namespace cuplex::softcuda
