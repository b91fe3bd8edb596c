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

  // A source written `register + constant`, which an instruction before its own computes.
  struct Sum {
    uint32_t statement = kNoIndex, instruction = kNoIndex, operand = 0;
    uint32_t bits = 0;  // of the register: 16, 32 or 64
    uint64_t constant = 0;
    Place place;
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
  Status TakeSum(Instruction& instruction);
  Status PlaceSums();

  Parsing& parsing_;
  Cursor& cursor_;
  Function& function_;
  std::vector<Pending> pending_;
  std::vector<Sum> sums_;  // in the order of the statements
};

}  // namespace cuplex::ptx
