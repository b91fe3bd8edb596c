// A PTX module as a tree: what Parse() makes, passes rewrite, and Print() turns back into text. Pure data;
// one thread at a time may write it, any number may read it.
//
// Everything an instruction refers to is an index, resolved when parsed; names are kept for printing alone:
//   register            Operand::id is the register's number in its function, 0 .. Function::register_count-1
//   local variable      index in Function::variables (.param, .local, .shared, ... and formal parameters)
//   global variable     index in Module::variables
//   function            index in Module::functions
//   label               index in Function::labels
//   prototype, table    index in Function::prototypes, Function::tables
// A pass may append to these lists; it must never erase or reorder, since indices are the references.
//
// The order of a body is Function::statements: a flat list in which nested scopes are an open and a close
// statement, and each statement indexes the list of its kind. Inserting code is appending an Instruction and
// inserting a Statement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/vocabulary.h"

namespace cuplex::ptx {

inline constexpr uint32_t kNoIndex = UINT32_MAX;

/// Where a thing stands in the PTX text; both count from 1, columns in bytes.
struct Place {
  uint32_t line = 0;
  uint32_t column = 0;
};

// ------------------------------------------------------------------------------------------- operands

enum class SymbolKind : uint8_t {
  kNone,
  kGlobalVariable,
  kLocalVariable,
  kFunction,
  kLabel,
  kPrototype,
  kTable,  // .branchtargets or .calltargets
};

/// What an address is relative to.
enum class BaseKind : uint8_t { kNone, kRegister, kSymbol };

enum class OperandKind : uint8_t {
  kRegister,  // %r1, !%p1, %r1.x             id, negated, component
  kSpecial,   // %tid.x                       id is a Special, component
  kInteger,   // 42, -1, 0xffU                bits: two's complement, 64 bits
  kFloat32,   // 0f3F800000                   bits: IEEE single in the low half
  kFloat64,   // 0d..., 1.5                   bits: IEEE double
  kSymbol,    // x, x+4, a label, a function  symbol, id, bits: signed byte offset
  kAddress,   // [%rd1+8], [x-4], [16]        base, symbol, id, bits: signed byte offset; component
  kVector,    // {a, b, c, d}                 parts
  kSink,      // _
  kPair,      // %r1|%p1                      parts: exactly two
  kList,      // (a, b): only in call         parts, may be empty
  kTexture,   // [tex, smp, {x, y}]           parts: a kAddress, then the rest; also tensor maps
};

struct Operand {
  OperandKind kind = OperandKind::kSink;
  bool negated = false;             // kRegister: `!p`
  BaseKind base = BaseKind::kNone;  // kAddress
  SymbolKind symbol = SymbolKind::kNone;
  Mod component = Mod::kNone;  // kRegister, kSpecial: what follows the dot (kX, kY, kZ, kW, kH0, ...)
  uint32_t id = kNoIndex;
  uint64_t bits = 0;
  std::vector<Operand> parts;

  int64_t offset() const { return static_cast<int64_t>(bits); }
  bool IsRegister() const { return kind == OperandKind::kRegister; }
  bool IsImmediate() const {
    return kind == OperandKind::kInteger || kind == OperandKind::kFloat32 || kind == OperandKind::kFloat64;
  }
  Special special() const { return static_cast<Special>(id); }

  static Operand Register(uint32_t id);
  static Operand Integer(int64_t value);
  static Operand SpecialRegister(Special special, Mod component = Mod::kNone);
  static Operand RegisterAddress(uint32_t id, int64_t offset = 0);
  static Operand SymbolAddress(SymbolKind symbol, uint32_t id, int64_t offset = 0);

  bool operator==(const Operand&) const = default;
};

// --------------------------------------------------------------------------------------- instructions

/// `@p` or `@!p` before an instruction.
struct Guard {
  uint32_t reg = kNoIndex;  // kNoIndex: unguarded
  bool negated = false;

  explicit operator bool() const { return reg != kNoIndex; }
  bool operator==(const Guard&) const = default;
};

struct Instruction {
  Opcode opcode = Opcode::kCount;
  Guard guard;
  std::vector<Mod> mods;          // in the order written
  std::vector<Operand> operands;  // in the order written, destinations first
  Place place;

  bool Has(Mod mod) const;

  // The n-th type, or state space, among the modifiers: setp.lt.f32 has one type, cvt.f32.s32 two,
  // cp.async.ca.shared.global two spaces. kNone where there are fewer.
  Type TypeAt(size_t n = 0) const;
  Space SpaceAt(size_t n = 0) const;
  size_t TypeCount() const;

  /// 1, 2, 4 or 8, from .v2, .v4, .v8.
  unsigned VectorWidth() const;

  // The first modifier of each of these sorts, kNone without: .rn .rz .rm .rp .rna .rs .rni .rzi .rmi .rpi;
  // .eq .. .geu .num .nan .lo .ls .hi .hs (ask it of set, setp and the like alone); .cta .cluster .gpu .gl
  // .sys; .weak .volatile .relaxed .acquire .release .acq_rel .sc .mmio.
  Mod Rounding() const;
  Mod Comparison() const;
  Mod Scope() const;
  Mod Order() const;

  /// Places are not compared.
  bool operator==(const Instruction& other) const;
};

/// A call taken apart: `call (returns), callee, (arguments), prototype;`. Null where not written.
struct CallShape {
  const Operand* returns = nullptr;    // kList
  const Operand* callee = nullptr;     // kSymbol of a function, or kRegister
  const Operand* arguments = nullptr;  // kList
  const Operand* prototype = nullptr;  // kSymbol of a prototype or a table; only with a register callee
};
CallShape ShapeOfCall(const Instruction& call);

// --------------------------------------------------------------------------------------- declarations

enum class Linkage : uint8_t { kNone, kVisible, kExtern, kWeak, kCommon };

/// What initialises a variable: a tree, since PTX nests braces as C does.
struct Initializer {
  enum class Kind : uint8_t {
    kList,     // {a, b, ...}: parts; elements not listed are zero
    kInteger,  // bits
    kFloat32,  // bits
    kFloat64,  // bits
    kAddress,  // symbol + offset (bits): its address in its state space, or generic(symbol)
    kField,    // Module::words[id]: `addr_mode_0 = wrap`, only of texrefs, samplerrefs and surfrefs
  };
  Kind kind = Kind::kInteger;
  bool generic = false;  // kAddress: written generic(symbol)
  SymbolKind symbol = SymbolKind::kNone;
  uint32_t id = kNoIndex;
  uint64_t mask = 0;  // kAddress: written 0xff00(symbol), one byte of the address; 0 without
  uint64_t bits = 0;
  std::vector<Initializer> parts;

  bool operator==(const Initializer&) const = default;
};

struct Variable {
  std::string name;
  Space space = Space::kNone;
  Linkage linkage = Linkage::kNone;
  Type type = Type::kNone;
  uint8_t vector = 1;            // 1, 2, 4 or 8
  uint32_t bank = kNoIndex;      // .const[N], kNoIndex without
  uint32_t align = 0;            // as written, bytes; 0 where not written
  std::vector<uint64_t> dims;    // array sizes, outermost first; dims[0] == 0: `[]`, size known elsewhere
  bool pointer = false;          // formal parameter written .ptr
  Space pointee = Space::kNone;  // .ptr .global: where it points; kNone: generic
  uint32_t pointee_align = 0;    // .ptr .align N; 0 without
  std::vector<std::string> attributes;  // contents of .attribute(...): "managed", "unified(1,2)"
  std::optional<Initializer> initializer;
  Place place;

  uint64_t ElementBytes() const;  // type and vector
  uint64_t SizeBytes() const;     // whole variable; 0 for `[]`. Parse() refuses what passes 2^40.
  uint32_t Alignment() const;     // as written, else natural
  bool IsUnsizedArray() const { return !dims.empty() && dims[0] == 0; }
  bool HasAttribute(std::string_view name) const;
  bool operator==(const Variable& other) const;
};

/// `.reg .b32 %r<10>;` declares the registers first .. first+count-1, named %r0 .. %r9; `.reg .b32 a;` one.
struct RegisterRange {
  std::string name;  // `%r` of `%r<10>`, or the whole name
  bool parametrised = false;
  Type type = Type::kNone;
  uint8_t vector = 1;
  uint32_t first = 0;
  uint32_t count = 1;

  bool operator==(const RegisterRange&) const = default;
};

/// A formal parameter or return value: a register (.reg, only of a .func) or a variable (.param).
struct Parameter {
  bool in_register = false;
  uint32_t id = 0;  // register number, or index in Function::variables

  bool operator==(const Parameter&) const = default;
};

/// A directive kept as words: `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.noreturn`, `.pragma "nounroll"`.
struct Directive {
  std::string name;  // without the dot
  std::vector<uint64_t> values;
  std::vector<std::string> strings;

  bool operator==(const Directive&) const = default;
};

struct Label {
  std::string name;
  uint32_t statement = kNoIndex;  // where it stood when parsed; a pass that inserts makes it stale

  bool operator==(const Label& other) const { return name == other.name; }
};

/// `name: .callprototype (returns) _ (parameters) ...;` Variables as declared; names are often `_`.
struct Prototype {
  std::string name;
  std::vector<Variable> returns, parameters;  // space kReg or kParam
  std::vector<Directive> directives;          // .noreturn and the like

  bool operator==(const Prototype&) const = default;
};

/// `name: .branchtargets a, b, c;` (labels) or `.calltargets f, g;` (functions).
struct Table {
  std::string name;
  bool calls = false;
  std::vector<uint32_t> targets;

  bool operator==(const Table&) const = default;
};

enum class StatementKind : uint8_t {
  kInstruction,  // index in instructions
  kLabel,        // labels
  kRegisters,    // registers
  kVariable,     // variables
  kPrototype,    // prototypes
  kTable,        // tables
  kPragma,       // directives of the body, body_directives
  kOpen,         // `{`; index unused
  kClose,        // `}`; index unused
};

struct Statement {
  StatementKind kind = StatementKind::kInstruction;
  uint32_t index = 0;

  bool operator==(const Statement&) const = default;
};

struct Function {
  std::string name;
  bool entry = false;     // .entry, else .func
  bool has_body = false;  // defined here, not just declared
  Linkage linkage = Linkage::kNone;
  std::vector<Parameter> returns, parameters;
  std::vector<Directive> directives;  // .maxntid .reqntid .minnctapersm .maxnreg .noreturn .pragma ...
  std::vector<std::string> attributes;
  Place place;

  uint32_t register_count = 0;
  std::vector<RegisterRange> registers;
  std::vector<Variable> variables;
  std::vector<Label> labels;
  std::vector<Prototype> prototypes;
  std::vector<Table> tables;
  std::vector<Directive> body_directives;
  std::vector<Instruction> instructions;
  std::vector<Statement> statements;  // without the outermost braces

  /// The range that declares register `id` (< register_count): its type and vector width.
  const RegisterRange& RangeOf(uint32_t id) const;
  Type TypeOfRegister(uint32_t id) const { return RangeOf(id).type; }
  std::string NameOfRegister(uint32_t id) const;

  /// Null where the directive is not there.
  const Directive* FindDirective(std::string_view name) const;

  bool operator==(const Function&) const;
};

// --------------------------------------------------------------------------------------------- module

struct Alias {
  uint32_t alias = 0, aliasee = 0;  // functions

  bool operator==(const Alias&) const = default;
};

/// What stands at file scope, in order.
struct Item {
  enum class Kind : uint8_t { kVariable, kDeclaration, kDefinition, kAlias, kPragma };
  Kind kind = Kind::kVariable;
  uint32_t index = 0;  // variables, functions, functions, aliases, pragmas

  bool operator==(const Item&) const = default;
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;
  std::vector<std::string> target;  // `sm_90`, then options: `texmode_independent`, `debug`
  uint32_t address_size = 64;       // 32 or 64; 64 where not written
  std::vector<std::string> words;   // spellings of unknown opcodes and modifiers, and fields of samplers
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<Alias> aliases;
  std::vector<Directive> pragmas;
  std::vector<Item> items;

  std::string_view Text(Opcode opcode) const;
  std::string_view Text(Mod mod) const;

  /// "ld.global.u32", for sentences.
  std::string Text(const Instruction& instruction) const;

  /// Declares `count` new registers at the start of the function's body, under a name that nothing in the
  /// function or the module has or begins with; the number of the first.
  uint32_t AddRegisters(Function& function, Type type, uint32_t count);

  /// The definition, or else the declaration, of that name; null where there is none.
  const Function* FindFunction(std::string_view name) const;
  const Variable* FindVariable(std::string_view name) const;

  bool operator==(const Module&) const = default;
};

}  // namespace cuplex::ptx
