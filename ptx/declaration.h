// Declaration: parses what declares variables, registers, parameters and prototypes. One thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ptx/cursor.h"
#include "ptx/module.h"
#include "ptx/names.h"

namespace cuplex::ptx {

/// The most registers that one function may have.
inline constexpr uint32_t kMostRegisters = 1u << 20;

/// What the parts of the parser share.
struct Parsing {
  Parsing(std::string_view text, Module& to) : cursor(text), module(to) {}

  Cursor cursor;
  Module& module;
  Names names;
  std::unordered_map<std::string_view, uint32_t> words;  // indices in module.words
  std::vector<Token> addresses;  // names in initialisers, resolved when the module is complete

  /// The index in module.words of an unknown opcode or modifier.
  Result<uint32_t> Intern(const Token& token);
};

/// The linkage at hand, if any, stepping over it.
Linkage ParseLinkage(Cursor& cursor);

/// The space of a declaration: `.shared`, `.const[2]`. kNone, and no step, where there is none.
Space SpaceAtHand(const Cursor& cursor);

/// `.maxntid 256, 1, 1`, `.pragma "x";`, with the dot word at hand.
Result<Directive> ParseDirective(Cursor& cursor);

/// `.attribute(.managed, .unified(1, 2))` with `.attribute` taken.
Result<std::vector<std::string>> ParseAttributes(Cursor& cursor);

/// The attributes and the first name of a variable, its space at hand: `.global .align 4 .v2 .f32 x[3]`. A
/// formal parameter may also have .ptr. `nameless`: the name may be missing, as in a prototype. `view` gets
/// the name as it stands in the text.
Result<Variable> ParseVariable(Cursor& cursor, bool nameless = false, std::string_view* view = nullptr);

/// Name and dimensions of one more variable of the same kind, after a comma.
Result<Variable> ParseNextVariable(Cursor& cursor, const Variable& like, std::string_view* view = nullptr);

/// ` = {1, 2, x+4}` where it follows, checked against the variable's size.
Status ParseInitializer(Parsing& parsing, Variable& variable);

/// Points the addresses of an initialiser at what they name, once the module is complete.
Status ResolveInitializer(const Parsing& parsing, Initializer& initializer);

/// `.reg .b32 %r<10>, x;` with `.reg` taken; names go to the scope at hand.
Status ParseRegisters(Parsing& parsing, Function& function);

/// A `(...)` of formal parameters or of return values, the `(` at hand; names go to the scope at hand.
Result<std::vector<Parameter>> ParseParameters(Parsing& parsing, Function& function);

/// `.callprototype (...) _ (...) .noreturn;` with `.callprototype` taken.
Result<Prototype> ParsePrototype(Cursor& cursor, std::string_view name);

}  // namespace cuplex::ptx
