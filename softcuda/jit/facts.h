// Facts about a PTX function that code is made from: control flow, which registers are live where, where
// threads may have to wait for each other. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::softcuda {

/// A set of register numbers.
class RegisterSet {
 public:
  explicit RegisterSet(size_t registers = 0) : words_((registers + 63) / 64) {}
  bool Has(uint32_t r) const { return words_[r / 64] >> (r % 64) & 1; }
  void Add(uint32_t r) { words_[r / 64] |= uint64_t{1} << (r % 64); }
  void Remove(uint32_t r) { words_[r / 64] &= ~(uint64_t{1} << (r % 64)); }
  /// True where the set grew.
  bool Unite(const RegisterSet& other);
  std::vector<uint32_t> Members() const;

 private:
  std::vector<uint64_t> words_;
};

struct FunctionFacts {
  // Per instruction (index in Function::instructions).
  std::vector<uint32_t> order;           // instructions in the order of the body
  std::vector<uint32_t> position;        // and back: where in `order` an instruction stands
  std::vector<uint32_t> label_position;  // per label: position of the first instruction after it
  /// Branches (by instruction index) that close a loop in which a thread may wait for another one to change
  /// memory.
  std::vector<bool> spins;
  std::vector<uint32_t> callees;  // functions called directly
  bool indirect_calls = false;
  bool waits_itself = false;  // contains a suspension, not counting callees
  bool exits = false;         // contains `exit`
  bool has_calls = false;
  RegisterSet live_at_entry;  // registers that may be read before they are written

  // Over the call graph.
  bool waits = false;    // it or a callee waits
  bool inlined = false;  // a .func that must become part of its caller: waits or exits
  bool recursive = false;
  std::string refusal;  // why softcuda cannot run it, whatever its instructions; empty where it can

  /// Registers live after the instruction.
  RegisterSet LiveAfter(uint32_t instruction) const;

  // How LiveAfter finds out.
  struct Block {
    uint32_t begin = 0, end = 0;  // positions
    std::vector<uint32_t> next;
    RegisterSet live_out;
  };
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of;  // per position
  const ptx::Function* function = nullptr;
};

/// The operand an instruction writes: a register, a vector or pair of them, the results of a call; null where
/// there is none.
const ptx::Operand* WrittenOperand(const ptx::Instruction& in);

/// Visits the registers in an operand, addresses' bases included.
template <typename F>
void EachRegister(const ptx::Operand& op, F&& visit) {
  if (op.kind == ptx::OperandKind::kRegister ||
      (op.kind == ptx::OperandKind::kAddress && op.base == ptx::BaseKind::kRegister)) {
    visit(op.id);
  }
  for (const ptx::Operand& part : op.parts) EachRegister(part, visit);
}

template <typename F>
void EachWrittenRegister(const ptx::Instruction& in, F&& visit) {
  if (const ptx::Operand* written = WrittenOperand(in)) EachRegister(*written, visit);
}

/// Facts of every function with a body; the others have empty ones. Refuses functions that are too large, and
/// recursion through functions that wait.
Result<std::vector<FunctionFacts>> GatherFacts(const ptx::Module& module);

}  // namespace cuplex::softcuda
