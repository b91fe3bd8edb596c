// The opcodes softcuda runs: one row each, saying which modifiers it takes, whether its first operand is
// written, whether a thread may wait at it, and which function emits it. What has no row is refused by name.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::softcuda {

class Emitter;

struct OpcodeRow {
  ptx::Opcode opcode = ptx::Opcode::kCount;
  Status (*emit)(Emitter&, const ptx::Instruction&) = nullptr;
  bool writes = true;              // the first operand is a destination
  bool waits = false;              // a suspension
  std::span<const ptx::Mod> mods;  // modifiers allowed besides types and state spaces
};

/// nullptr where softcuda has no such opcode.
const OpcodeRow* FindOpcodeRow(ptx::Opcode opcode);

/// Why softcuda cannot run the instruction, as far as its opcode and modifiers tell: "line N: `text` ...why".
/// What depends on types and operands the families decide when they emit it.
std::optional<std::string> WhyNot(const ptx::Module& module, const ptx::Instruction& in);

/// All of them, in the order of the enum.
std::span<const OpcodeRow> OpcodeRows();

}  // namespace cuplex::softcuda
