#include "softcuda/jit/program.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ptx/parameters.h"
#include "softcuda/jit/code_key.h"
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/initial_bytes.h"
#include "softcuda/jit/kernel.h"
#include "softcuda/jit/machine.h"
#include "softcuda/jit/opcodes.h"
#include "softcuda/jit/system_functions.h"

namespace cuplex::softcuda {
namespace {

using ptx::Space;

/// Addresses that no program sees: for checking instructions before the variables have places.
std::vector<uintptr_t> MadeUpPlaces(const ptx::Module& module, const AddressWindow& window) {
  std::vector<uintptr_t> places(module.variables.size());
  for (uintptr_t& p : places) p = window.device().base;
  return places;
}

uint64_t Product(const ptx::Directive& d) {
  uint64_t n = 1;
  for (uint64_t v : d.values) n *= std::max<uint64_t>(v, 1);
  return n;
}

}  // namespace

class ProgramImpl final : public Program {
 public:
  ProgramImpl(std::shared_ptr<const ptx::Module> module, const AddressWindow& window, CompileOptions options)
      : module_(std::move(module)), window_(window), options_(options) {}

  Status Load() {
    if (module_->address_size != 64) {
      return Fail(Blame::kUnsupported, "the module has addresses of {} bits; softcuda runs those of 64",
                  module_->address_size);
    }
    TRY(facts_, GatherFacts(*module_));
    TRY(layout_, LayOutModule(*module_, facts_));
    machine_ = std::make_unique<Machine>(options_.level, options_.cache);
    TRY(LoadVariables());
    for (uint32_t f = 0; f < module_->functions.size(); ++f) {
      if (module_->functions[f].entry && module_->functions[f].has_body) TRY(LoadKernel(f));
    }
    if (!infos_.empty() &&
        std::ranges::none_of(infos_, [](const KernelInfo& k) { return k.refusal.empty(); })) {
      return Fail(Blame::kUnsupported, "kernel `{}`: {}", infos_[0].name, infos_[0].refusal);
    }
    return {};
  }

  const std::vector<KernelInfo>& kernels() const override { return infos_; }
  const std::vector<VariableInfo>& variables() const override { return variables_; }

  Kernel* FindKernel(std::string_view name) override {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }
  const KernelInfo& Info(const Kernel* kernel) const override { return kernel->info(); }

  Status Place(std::string_view variable, uintptr_t device_address) override {
    auto it = variable_by_name_.find(variable);
    if (it == variable_by_name_.end()) {
      return Fail(Blame::kCaller, "the module has no variable `{}` to place", variable);
    }
    const VariableInfo& info = variables_[it->second.info];
    if (device_address % info.alignment ||
        !window_.all().Contains(device_address, std::max<size_t>(info.size, 1))) {
      return Fail(Blame::kCaller,
                  "variable `{}` cannot lie at {:#x}: it needs {} bytes inside the window, aligned to {}",
                  variable, device_address, info.size, info.alignment);
    }
    std::lock_guard lock(lock_);
    if (built_) return Fail(Blame::kCaller, "variable `{}` is placed after a kernel was compiled", variable);
    layout_.places[it->second.variable] = device_address;
    return {};
  }

  Result<std::vector<std::byte>> InitialBytes(std::string_view variable) const override {
    auto it = variable_by_name_.find(variable);
    if (it == variable_by_name_.end())
      return Fail(Blame::kCaller, "the module has no variable `{}`", variable);
    return BytesOf(*module_, it->second.variable, layout_.places);
  }

  Status Prepare(Kernel* kernel) override {
    TRY(const Code* code, kernel->Ready());
    (void)code;
    return {};
  }

  Result<Code> Build(Kernel& kernel) {
    if (!kernel.info_.refusal.empty()) {
      return Fail(Blame::kUnsupported, "kernel `{}`: {}", kernel.info_.name, kernel.info_.refusal);
    }
    TRY(Link(kernel));
    TRY(Machine::Built built,
        BuildVariant(kernel, "thread",
                     [&](llvm::Module& llvm, const std::string& symbol) -> Result<std::vector<uint32_t>> {
                       softcuda::Build build{*module_, facts_, layout_, kernel.layout_, window_, llvm};
                       TRY(EmitKernel(build, kernel.function_, symbol));
                       return std::vector<uint32_t>{build.waits, build.lane_bytes};
                     }));
    if (built.facts.size() != 2)
      return Fail(Blame::kOurs, "kernel `{}`: the code kept for it is odd", kernel.info_.name);
    Code code;
    code.waits = built.facts[0];
    code.lane_bytes = built.facts[1];
    if (code.waits) {
      code.step = reinterpret_cast<StepCode>(built.address);
    } else {
      code.loop = reinterpret_cast<LoopCode>(built.address);
    }
    return code;
  }

 private:
  struct Named {
    size_t info = 0;
    uint32_t variable = 0;
  };

  /// Makes the variables' addresses known to code, the first time; from then on they stay.
  Status Link(const Kernel& kernel) {
    std::lock_guard lock(lock_);
    if (built_) return {};
    for (const auto& [name, v] : variable_by_name_) {
      if (!layout_.places[v.variable]) {
        return Fail(Blame::kCaller, "kernel `{}` is compiled before variable `{}` is placed",
                    kernel.info().name, name);
      }
    }
    for (const auto& [name, v] : variable_by_name_) {
      TRY(machine_->Define(softcuda::Build::SymbolOf(module_->variables[v.variable]),
                           layout_.places[v.variable]));
    }
    built_ = true;
    return {};
  }

  /// The code of one of the ways to compile a kernel, by a name that says all that makes it differ from the
  /// others.
  Result<Machine::Built> BuildVariant(Kernel& kernel, std::string_view variant, const Machine::Emit& emit) {
    std::call_once(kernel.once_,
                   [&] { kernel.content_ = ContentOf(*module_, layout_, kernel.layout_, window_); });
    return machine_->Build(KeyOf(kernel.content_, variant), emit);
  }

  Status LoadVariables() {
    for (uint32_t i = 0; i < module_->variables.size(); ++i) {
      const ptx::Variable& v = module_->variables[i];
      if (v.space == Space::kShared || v.space == Space::kSharedCta) continue;
      if (v.space != Space::kGlobal && v.space != Space::kConst) {
        return Fail(Blame::kUnsupported, "line {}: variable `{}` lies in .{}, which softcuda does not have",
                    v.place.line, v.name, ptx::Text(v.space));
      }
      if (v.linkage == ptx::Linkage::kExtern) {
        return Fail(Blame::kUnsupported, "line {}: variable `{}` is declared and nowhere defined",
                    v.place.line, v.name);
      }
      if (v.type == ptx::Type::kSamplerref) {
        return Fail(Blame::kUnsupported,
                    "line {}: `{}` is a sampler of its own, which softcuda does not have", v.place.line,
                    v.name);
      }
      variable_by_name_[v.name] = {variables_.size(), i};
      variables_.push_back({v.name, v.space == Space::kConst, v.SizeBytes(),
                            std::max<uint32_t>(v.Alignment(), 1),
                            v.type == ptx::Type::kTexref    ? VariableInfo::Reference::kTexture
                            : v.type == ptx::Type::kSurfref ? VariableInfo::Reference::kSurface
                                                            : VariableInfo::Reference::kNone});
      if (v.space == Space::kConst) const_bytes_ += static_cast<uint32_t>(v.SizeBytes());
      if (v.initializer) TRY(BytesOf(*module_, i, MadeUpPlaces(*module_, window_)));
    }
    return {};
  }

  Status LoadKernel(uint32_t f) {
    const ptx::Function& fn = module_->functions[f];
    auto kernel = std::make_unique<Kernel>(*this, f);
    TRY(ptx::ParameterLayout params, ptx::LayoutOf(fn));
    KernelInfo& info = kernel->info_;
    if (auto layout = LayOutKernel(*module_, facts_, layout_, f); layout.ok()) {
      kernel->layout_ = *std::move(layout);
      info.refusal = WhyNotKernel(kernel->layout_);
    } else {
      info.refusal = layout.error().sentence;
    }
    info.name = fn.name;
    // Code reads parameters where the emitter's own layout has them; both follow the same rule.
    layout_.functions[f].params = {};
    for (const ptx::ParameterSlot& slot : params.slots) {
      info.params.push_back({slot.offset, slot.size, slot.alignment});
      layout_.functions[f].params.offsets.push_back(slot.offset);
      layout_.functions[f].params.sizes.push_back(slot.size);
    }
    info.param_bytes = params.size;
    layout_.functions[f].params.bytes = params.size;
    info.static_shared = static_cast<uint32_t>(kernel->layout_.static_shared);
    info.local_bytes = static_cast<uint32_t>(kernel->layout_.local_bytes);
    info.const_bytes = const_bytes_;
    for (const std::string& word : module_->target)
      if (word.starts_with("sm_")) std::from_chars(word.data() + 3, word.data() + word.size(), info.target);
    info.waits = facts_[f].waits;
    size_t live = facts_[f].live_at_entry.Members().size();
    for (const FunctionFacts::Block& b : facts_[f].blocks) live = std::max(live, b.live_out.Members().size());
    info.registers = static_cast<uint32_t>(std::clamp<size_t>(live + 12, 16, 255));
    if (const ptx::Directive* d = fn.FindDirective("maxntid")) {
      info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(Product(*d), kMaxThreadsPerBlock));
    }
    if (const ptx::Directive* d = fn.FindDirective("reqntid")) {
      info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(Product(*d), kMaxThreadsPerBlock));
      for (size_t i = 0; i < 3; ++i) {
        info.reqntid[i] =
            i < d->values.size() ? static_cast<uint32_t>(std::max<uint64_t>(d->values[i], 1)) : 1;
      }
    }
    if (fn.FindDirective("explicitcluster") || fn.FindDirective("reqnctapercluster")) {
      info.refusal =
          fmt::format("line {}: it wants clusters of blocks, which softcuda does not have", fn.place.line);
    }
    by_name_[info.name] = kernel.get();
    infos_.push_back(info);
    kernels_.push_back(std::move(kernel));
    return {};
  }

  /// What is in the way of the kernel in the functions that it reaches; empty where nothing is.
  std::string WhyNotKernel(const KernelLayout& kernel) {
    whys_.resize(module_->functions.size());
    for (uint32_t f : kernel.reachable) {
      if (!whys_[f]) whys_[f] = WhyNotFunction(f);
      if (!whys_[f]->empty()) return *whys_[f];
    }
    return {};
  }

  std::string WhyNotFunction(uint32_t f) const {
    if (!facts_[f].refusal.empty()) return facts_[f].refusal;
    if (!layout_.functions[f].refusal.empty()) return layout_.functions[f].refusal;
    for (const ptx::Instruction& in : module_->functions[f].instructions) {
      if (auto why = WhyNot(*module_, in)) return *why;
      const ptx::Operand* callee = in.opcode == ptx::Opcode::kCall ? ptx::ShapeOfCall(in).callee : nullptr;
      if (!callee || callee->symbol != ptx::SymbolKind::kFunction) continue;
      const ptx::Function& fn = module_->functions[callee->id];
      if (!fn.has_body && !FindSystemFunction(fn.name, layout_.functions[callee->id])) {
        return fmt::format(
            "line {}: `{}` calls `{}`, which the module does not define and softcuda does not have",
            in.place.line, module_->Text(in), fn.name);
      }
    }
    return {};
  }

  std::shared_ptr<const ptx::Module> module_;
  const AddressWindow& window_;
  CompileOptions options_;
  std::vector<FunctionFacts> facts_;
  ModuleLayout layout_;
  std::vector<std::optional<std::string>> whys_;  // by function, while loading
  std::unique_ptr<Machine> machine_;
  std::vector<VariableInfo> variables_;
  std::map<std::string, Named, std::less<>> variable_by_name_;
  uint32_t const_bytes_ = 0;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<KernelInfo> infos_;
  std::map<std::string, Kernel*, std::less<>> by_name_;
  std::mutex lock_;
  bool built_ = false;
};

Result<const Code*> Kernel::Ready() {
  if (ready_.load(std::memory_order_acquire)) return &code_;
  std::lock_guard lock(lock_);
  if (failed_) return *failed_;
  if (!ready_.load(std::memory_order_relaxed)) {
    auto code = program_.Build(*this);
    if (!code.ok()) {
      // A missing placement is the caller's to mend; anything else stays as it is.
      if (code.error().blame != Blame::kCaller) failed_ = code.error();
      return code.error();
    }
    code_ = *code;
    ready_.store(true, std::memory_order_release);
  }
  return &code_;
}

Result<std::shared_ptr<Program>> Compile(std::shared_ptr<const ptx::Module> module,
                                         const AddressWindow& window, CompileOptions options) {
  auto program = std::make_shared<ProgramImpl>(std::move(module), window, options);
  TRY(program->Load());
  return std::shared_ptr<Program>(std::move(program));
}

}  // namespace cuplex::softcuda
