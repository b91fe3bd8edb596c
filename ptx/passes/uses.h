// Uses: what a function takes from the launch and from its module, by itself and through what it calls, and
// whether that lets it be sliced. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.h"

namespace cuplex::ptx {

/// What a sliced kernel gets by its arguments and passes on to the functions that it calls: %ctaid and
/// %nctaid by axis, then the addresses of .global variables.
using Value = uint32_t;
inline constexpr Value kCtaid = 0;      // + axis
inline constexpr Value kNctaid = 3;     // + axis
inline constexpr Value kAddressOf = 6;  // + index in Module::variables

struct Uses {
  std::set<Value> values;
  std::set<uint32_t> constants;  // indices of .const variables
  std::string obstacle;          // "line 12 reads %gridid, which ..."; empty: none
};

class UsesOfFunctions {
 public:
  explicit UsesOfFunctions(const Module& module);

  /// Of a function, with all that it calls.
  const Uses& Of(uint32_t function);

  /// What an alias stands for; any other function is itself.
  uint32_t Resolve(uint32_t function) const { return resolved_[function]; }

 private:
  struct Row {
    bool scanned = false, complete = false;
    Uses uses;
    std::vector<uint32_t> callees, callers;
  };

  void Scan(uint32_t function);
  void ScanOperand(const Function& function, const Instruction& instruction, const Operand& operand,
                   bool callee, Row& row);
  void ScanVariable(const Instruction& instruction, const Operand& operand, Row& row);
  bool Merge(const Uses& from, Uses& to) const;

  const Module& module_;
  std::vector<uint32_t> resolved_;
  std::vector<Row> rows_;
};

/// 0, 1, 2 or 3 for .x, .y, .z or .w; nullopt for anything else.
std::optional<unsigned> AxisOf(Mod component);

/// Functions that every driver has: they can be called without being defined.
bool IsProvided(std::string_view name);

}  // namespace cuplex::ptx
