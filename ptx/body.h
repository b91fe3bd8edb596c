// Body: parses what stands between the braces of a function. One thread at a time.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ptx/declaration.h"
#include "ptx/module.h"

namespace cuplex::ptx {

/// Whether a debug directive (.loc, .file, .section) is at hand; steps over it if so.
Result<bool> SkipDebug(Cursor& cursor);

class BodyParser {
 public:
  BodyParser(Parsing& parsing, Function& function)
      : parsing_(parsing), cursor_(parsing.cursor), function_(function) {}

  /// The `{` is taken; takes up to and with the `}` that closes the body.
  Status Parse();

 private:
  // A name used before it is declared: a branch target, a prototype or a table.
  struct Pending {
    Token name;
    uint32_t scope = 0;
    uint32_t instruction = kNoIndex, operand = 0;  // or
    uint32_t table = kNoIndex, target = 0;
  };

  Status Statement();
  Status Declaration();
  Status LocalVariables();
  Status LabelOrNamed();
  Status TargetTable(const Token& name, bool calls);
  Status Declare(const Token& name, Meaning meaning);
  Status ResolvePending();

  // instruction.cc
  Status ParseInstruction();
  Status Guarded(Instruction& instruction);
  Status Modifiers(Instruction& instruction);
  Result<Mod> TakeMod();
  Result<Operand> ParseOperand(unsigned depth);
  Result<Operand> Primary(unsigned depth);
  Result<Operand> Named(bool in_brackets);
  Result<Operand> Bracketed(unsigned depth);
  Result<std::vector<Operand>> Sequence(std::string_view close, unsigned depth);
  Status CallOperands(Instruction& instruction);
  bool TakePending(Instruction& instruction);

  Parsing& parsing_;
  Cursor& cursor_;
  Function& function_;
  std::vector<Pending> pending_;
};

}  // namespace cuplex::ptx
