// Names: what each name of a module means while its text is parsed: file scope, and the nested scopes of the
// function at hand. One thread at a time; keys view the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/module.h"

namespace cuplex::ptx {

/// What a name stands for.
struct Meaning {
  bool is_register = false;
  SymbolKind symbol = SymbolKind::kNone;  // where not a register
  uint32_t id = 0;
};

class Names {
 public:
  /// False where the scope already has the name.
  bool DeclareGlobal(std::string_view name, Meaning meaning) { return global_.emplace(name, meaning).second; }
  std::optional<Meaning> FindGlobal(std::string_view name) const;

  /// Forgets the scopes of the last function and opens the outermost scope of the next.
  void BeginFunction();

  void OpenScope();
  /// False where only the outermost scope is open.
  bool CloseScope();
  uint32_t scope() const { return current_; }
  uint32_t depth() const { return scopes_[current_].depth; }

  // In the scope at hand. False where the scope already has the name, alone or in a range.
  bool DeclareLocal(std::string_view name, Meaning meaning);
  /// Registers prefix0 .. prefix(count-1), numbered from `first`.
  bool DeclareRange(std::string_view prefix, uint32_t first, uint32_t count);

  /// From the scope at hand, or from `scope`, outwards, file scope last.
  std::optional<Meaning> Find(std::string_view name) const { return FindFrom(current_, name); }
  std::optional<Meaning> FindFrom(uint32_t scope, std::string_view name) const;

 private:
  struct Range {
    uint32_t first, count;
  };
  struct Tables {
    std::unordered_map<std::string_view, Meaning> names;
    std::unordered_map<std::string_view, Range> ranges;
    // The lowest number with which a name of `names`, or of a range, follows the prefix.
    std::unordered_map<std::string_view, uint32_t> lowest;
  };
  struct Scope {
    uint32_t parent = 0;
    uint32_t depth = 0;
    std::unique_ptr<Tables> tables;  // made by the first declaration: most scopes of hostile text have none
  };

  Tables& TablesAtHand();
  static bool Claim(Tables& tables, std::string_view name);

  std::unordered_map<std::string_view, Meaning> global_;
  std::vector<Scope> scopes_;  // of the function at hand; [0] is the outermost
  uint32_t current_ = 0;
};

}  // namespace cuplex::ptx
