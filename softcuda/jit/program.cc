#include "softcuda/jit/program.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ptx/parameters.h"
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/initial_bytes.h"
#include "softcuda/jit/kernel.h"
#include "softcuda/jit/machine.h"
#include "softcuda/jit/opcodes.h"

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
    TRY(machine_, Machine::Make(options_.level));
    TRY(LoadVariables());
    for (uint32_t f = 0; f < module_->functions.size(); ++f) {
      if (module_->functions[f].entry && module_->functions[f].has_body) TRY(LoadKernel(f));
    }
    return CheckInstructions();
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
    {
      std::lock_guard lock(lock_);
      for (const auto& [name, v] : variable_by_name_) {
        if (!layout_.places[v.variable]) {
          return Fail(Blame::kCaller, "kernel `{}` is compiled before variable `{}` is placed",
                      kernel.info().name, name);
        }
      }
      built_ = true;
    }
    auto context = std::make_unique<llvm::LLVMContext>();
    std::string symbol = "kernel." + std::to_string(kernel.function_);
    auto llvm = machine_->NewModule(*context, symbol);
    softcuda::Build build{*module_, facts_, layout_, kernel.layout_, window_, *llvm};
    TRY(EmitKernel(build, kernel.function_, symbol));
    Code code;
    code.waits = build.waits;
    code.lane_bytes = build.lane_bytes;
    TRY(void* address, machine_->Build(std::move(context), std::move(llvm), symbol));
    if (code.waits) {
      code.step = reinterpret_cast<StepCode>(address);
    } else {
      code.loop = reinterpret_cast<LoopCode>(address);
    }
    return code;
  }

 private:
  struct Named {
    size_t info = 0;
    uint32_t variable = 0;
  };

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
    TRY(kernel->layout_, LayOutKernel(*module_, facts_, layout_, f));
    KernelInfo& info = kernel->info_;
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
      return Fail(Blame::kUnsupported,
                  "line {}: kernel `{}` wants clusters of blocks, which softcuda does not have",
                  fn.place.line, fn.name);
    }
    by_name_[info.name] = kernel.get();
    infos_.push_back(info);
    kernels_.push_back(std::move(kernel));
    return {};
  }

  /// Emits everything once and throws it away: what can be emitted can run.
  Status CheckInstructions() {
    llvm::LLVMContext context;
    ModuleLayout layout = layout_;
    layout.places = MadeUpPlaces(*module_, window_);
    std::vector<bool> reached(module_->functions.size(), false);
    for (const auto& kernel : kernels_) {
      auto llvm = machine_->NewModule(context, "check");
      softcuda::Build build{*module_, facts_, layout, kernel->layout_, window_, *llvm};
      build.checks_only = true;
      TRY(EmitKernel(build, kernel->function_, "check"));
      for (uint32_t f : kernel->layout_.reachable) reached[f] = true;
    }
    for (uint32_t f = 0; f < module_->functions.size(); ++f) {
      if (reached[f]) continue;
      for (const ptx::Instruction& in : module_->functions[f].instructions) {
        if (!FindOpcodeRow(in.opcode)) {
          return Fail(Blame::kUnsupported, "line {}: `{}` is not supported by softcuda", in.place.line,
                      module_->Text(in));
        }
      }
    }
    return {};
  }

  std::shared_ptr<const ptx::Module> module_;
  const AddressWindow& window_;
  CompileOptions options_;
  std::vector<FunctionFacts> facts_;
  ModuleLayout layout_;
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
