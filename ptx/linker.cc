#include "ptx/linker.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "ptx/printer.h"

namespace cuplex::ptx {
namespace {

bool IsGlobal(Linkage linkage) { return linkage != Linkage::kNone; }

bool IsShared(const Variable& v) { return v.space == Space::kShared || v.space == Space::kSharedCta; }

unsigned ArchOf(const Module& module) {
  unsigned arch = 0;
  for (const std::string& word : module.target) {
    if (word.starts_with("sm_")) std::from_chars(word.data() + 3, word.data() + word.size(), arch);
  }
  return arch;
}

class Linker {
 public:
  Linker(std::vector<LinkInput> inputs, const std::function<bool(std::string_view)>& provided)
      : inputs_(std::move(inputs)), provided_(provided) {}

  Result<std::string> Run() {
    for (const LinkInput& input : inputs_) {
      if (input.module.address_size != inputs_[0].module.address_size) {
        return Fail(Blame::kCaller, "`{}` has addresses of {} bits, `{}` of {}", input.name,
                    input.module.address_size, inputs_[0].name, inputs_[0].module.address_size);
      }
    }
    for (size_t i = 0; i < inputs_.size(); ++i) TRY(Collect(i));
    TRY(Resolve());
    RenameOwn();
    return Print();
  }

 private:
  enum class Kind { kFunction, kVariable };
  /// What a name that all modules share stands for.
  struct Symbol {
    size_t input = 0;
    uint32_t index = 0;
    Kind kind = Kind::kFunction;
    bool defined = false;
    bool weak = false;
  };

  const Variable& VariableOf(const Symbol& s) const { return inputs_[s.input].module.variables[s.index]; }
  const Function& FunctionOf(const Symbol& s) const { return inputs_[s.input].module.functions[s.index]; }
  const std::string& NameOf(size_t input) const { return inputs_[input].name; }

  static bool IsKnownToAll(const Function& f) { return f.entry || IsGlobal(f.linkage) || !f.has_body; }

  Status Collect(size_t input) {
    const Module& module = inputs_[input].module;
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      const Function& f = module.functions[i];
      if (!IsKnownToAll(f)) continue;
      TRY(Add(f.name, {input, i, Kind::kFunction, f.has_body, f.linkage == Linkage::kWeak}));
    }
    for (uint32_t i = 0; i < module.variables.size(); ++i) {
      const Variable& v = module.variables[i];
      if (!IsGlobal(v.linkage)) continue;
      bool weak = v.linkage == Linkage::kWeak || v.linkage == Linkage::kCommon;
      TRY(Add(v.name, {input, i, Kind::kVariable, v.linkage != Linkage::kExtern, weak}));
    }
    return {};
  }

  Status Add(const std::string& name, Symbol symbol) {
    auto [at, fresh] = symbols_.emplace(name, symbol);
    Symbol& known = at->second;
    if (fresh || known.input == symbol.input) {
      if (!known.defined) known = symbol;
      return {};
    }
    if (known.kind != symbol.kind) {
      return Fail(Blame::kCaller, "`{}` is a function in one of `{}` and `{}`, and a variable in the other",
                  name, NameOf(known.input), NameOf(symbol.input));
    }
    TRY(CheckAlike(name, known, symbol));
    if (known.defined && symbol.defined && !known.weak && !symbol.weak) {
      return Fail(Blame::kCaller, "multiple definition of `{}` in `{}`, first defined in `{}`", name,
                  NameOf(symbol.input), NameOf(known.input));
    }
    bool larger = symbol.kind == Kind::kVariable && symbol.defined == known.defined &&
                  symbol.weak == known.weak && VariableOf(symbol).SizeBytes() > VariableOf(known).SizeBytes();
    if ((symbol.defined && !known.defined) ||
        (known.defined && known.weak && symbol.defined && !symbol.weak) || larger) {
      known = symbol;
    }
    return {};
  }

  Status CheckAlike(const std::string& name, const Symbol& a, const Symbol& b) const {
    if (a.kind == Kind::kVariable) {
      const Variable &va = VariableOf(a), &vb = VariableOf(b);
      bool sized = !va.IsUnsizedArray() && !vb.IsUnsizedArray();
      bool common = va.linkage == Linkage::kCommon || vb.linkage == Linkage::kCommon;
      if (va.space != vb.space || (sized && !common && va.SizeBytes() != vb.SizeBytes())) {
        return Fail(Blame::kCaller, "variable `{}` has {} bytes in .{} in `{}`, and {} bytes in .{} in `{}`",
                    name, va.SizeBytes(), Text(va.space), NameOf(a.input), vb.SizeBytes(), Text(vb.space),
                    NameOf(b.input));
      }
      return {};
    }
    const Function &fa = FunctionOf(a), &fb = FunctionOf(b);
    if (SizesOf(fa, fa.parameters) != SizesOf(fb, fb.parameters) ||
        SizesOf(fa, fa.returns) != SizesOf(fb, fb.returns)) {
      return Fail(Blame::kCaller, "function `{}` takes or gives other parameters in `{}` than in `{}`", name,
                  NameOf(a.input), NameOf(b.input));
    }
    return {};
  }

  static std::vector<uint64_t> SizesOf(const Function& f, const std::vector<Parameter>& parameters) {
    std::vector<uint64_t> out;
    for (const Parameter& p : parameters) {
      out.push_back(p.in_register ? BitsOf(f.TypeOfRegister(p.id)) / 8 : f.variables[p.id].SizeBytes());
    }
    return out;
  }

  /// What is declared must be defined somewhere.
  Status Resolve() const {
    for (const auto& [name, symbol] : symbols_) {
      if (symbol.defined) continue;
      // Memory of a launch, not of a module.
      if (symbol.kind == Kind::kVariable && IsShared(VariableOf(symbol)) &&
          VariableOf(symbol).IsUnsizedArray())
        continue;
      if (symbol.kind == Kind::kFunction && provided_(name)) continue;
      return Fail(Blame::kCaller, "undefined reference to `{}` in `{}`", name, NameOf(symbol.input));
    }
    return {};
  }

  void RenameOwn() {
    std::set<std::string> taken;
    for (const auto& [name, symbol] : symbols_) taken.insert(name);
    auto rename = [&](std::string& name) {
      std::string wanted = name;
      for (int n = 1; !taken.insert(wanted).second; ++n) wanted = fmt::format("{}${}", name, n);
      name = wanted;
    };
    for (LinkInput& input : inputs_) {
      // A function may be declared ahead of its definition; both are one name.
      std::map<std::string, std::string> renamed;
      for (Function& f : input.module.functions) {
        if (IsKnownToAll(f)) continue;
        std::string before = f.name;
        rename(f.name);
        renamed[before] = f.name;
      }
      for (Variable& v : input.module.variables) {
        if (!IsGlobal(v.linkage)) rename(v.name);
      }
    }
  }

  bool IsTheOne(size_t input, uint32_t index, Kind kind, const std::string& name) const {
    auto it = symbols_.find(name);
    return it != symbols_.end() && it->second.kind == kind && it->second.input == input &&
           it->second.index == index;
  }

  Result<std::string> Print() {
    const Module* newest = &inputs_[0].module;
    const Module* highest = newest;
    for (const LinkInput& input : inputs_) {
      const Module& m = input.module;
      if (std::pair(m.version_major, m.version_minor) >
          std::pair(newest->version_major, newest->version_minor))
        newest = &m;
      if (ArchOf(m) > ArchOf(*highest)) highest = &m;
    }
    Module head;
    head.version_major = newest->version_major;
    head.version_minor = newest->version_minor;
    head.target = highest->target;
    head.address_size = newest->address_size;
    text_ = PrintHead(head);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (uint32_t f = 0; f < inputs_[i].module.functions.size(); ++f) Declare(i, f);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (uint32_t v = 0; v < inputs_[i].module.variables.size(); ++v) PutVariable(i, v);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Module& module = inputs_[i].module;
      for (uint32_t f = 0; f < module.functions.size(); ++f) {
        const Function& fn = module.functions[f];
        if (!fn.has_body || (IsKnownToAll(fn) && !IsTheOne(i, f, Kind::kFunction, fn.name))) continue;
        text_ += ptx::Print(module, fn);
      }
      for (const Alias& alias : module.aliases) {
        text_ += fmt::format(".alias {}, {};\n", module.functions[alias.alias].name,
                             module.functions[alias.aliasee].name);
      }
    }
    return std::move(text_);
  }

  void Declare(size_t input, uint32_t index) {
    const Function& f = inputs_[input].module.functions[index];
    if (f.entry || (IsKnownToAll(f) && !IsTheOne(input, index, Kind::kFunction, f.name))) return;
    Function declared = f;
    declared.has_body = false;
    text_ += ptx::Print(inputs_[input].module, declared);
  }

  /// After the variables whose addresses it holds.
  void PutVariable(size_t input, uint32_t index) {
    const Variable* v = &inputs_[input].module.variables[index];
    if (IsGlobal(v->linkage)) {
      const Symbol& s = symbols_.at(v->name);
      input = s.input;
      index = s.index;
      v = &VariableOf(s);
    }
    if (!put_.insert({input, index}).second) return;
    if (v->initializer) PutReferences(input, *v->initializer);
    text_ += ptx::Print(inputs_[input].module, *v);
  }

  void PutReferences(size_t input, const Initializer& init) {
    if (init.symbol == SymbolKind::kGlobalVariable) PutVariable(input, init.id);
    for (const Initializer& part : init.parts) PutReferences(input, part);
  }

  std::vector<LinkInput> inputs_;
  const std::function<bool(std::string_view)>& provided_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::set<std::pair<size_t, uint32_t>> put_;
  std::string text_;
};

}  // namespace

Result<std::string> Link(std::vector<LinkInput> inputs,
                         const std::function<bool(std::string_view)>& provided) {
  if (inputs.empty()) return Fail(Blame::kCaller, "nothing was given to link");
  return Linker(std::move(inputs), provided).Run();
}

}  // namespace cuplex::ptx
