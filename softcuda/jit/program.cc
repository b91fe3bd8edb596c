#include "softcuda/jit/program.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/log.h"
#include "ptx/parameters.h"
#include "softcuda/jit/code_key.h"
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/initial_bytes.h"
#include "softcuda/jit/kernel.h"
#include "softcuda/jit/lockstep/lockstep.h"
#include "softcuda/jit/machine.h"
#include "softcuda/jit/markers.h"
#include "softcuda/jit/opcodes.h"
#include "softcuda/jit/plain.h"
#include "softcuda/jit/system_functions.h"

namespace cuplex::softcuda {
namespace {

using ptx::Space;

// Kernels of more instructions run in warps of fewer lanes, if their lanes do not mind.
constexpr size_t kMostForWide = 250;

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

  Status Prepare(Kernel* kernel, const std::array<uint32_t, 3>& block) override {
    TRY(const Code* code, kernel->Ready(block));
    (void)code;
    return {};
  }

  bool IsReady(const Kernel* kernel, const std::array<uint32_t, 3>& block) const override {
    return kernel->Find(block) != nullptr;
  }

  Result<Code> Build(Kernel& kernel) {
    if (!kernel.info_.refusal.empty()) {
      return Fail(Blame::kUnsupported, "kernel `{}`: {}", kernel.info_.name, kernel.info_.refusal);
    }
    TRY(Link(kernel));
    TRY(Machine::Built built,
        BuildVariant(kernel, options_.path == Path::kSteps ? "steps" : "thread",
                     [&](llvm::Module& llvm, const std::string& symbol) -> Result<std::vector<uint32_t>> {
                       softcuda::Build build{*module_, facts_, layout_, kernel.layout_, window_, llvm};
                       build.steps = options_.path == Path::kSteps;
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

  bool InLockstep() const { return options_.path == Path::kAuto; }

  /// Code that runs warps of such blocks in lockstep; nullopt where the kernel cannot.
  Result<std::optional<Code>> BuildLockstep(Kernel& kernel, const Kernel::BlockShape& block) {
    if (!kernel.info_.refusal.empty()) return std::optional<Code>();
    TRY(Link(kernel));
    // The second number tells whether it went; that it does not is worth keeping, too.
    auto emit = [&](llvm::Module& llvm, const std::string& symbol) -> Result<std::vector<uint32_t>> {
      auto made = EmitLockstep(kernel, block, llvm, symbol);
      if (made.ok() || made.error().blame == Blame::kOurs) return made;
      Log().debug("softcuda: kernel `{}` runs thread by thread: {}", kernel.info_.name,
                  made.error().sentence);
      MakeEmpty(llvm, symbol);
      return std::vector<uint32_t>{0, 0};
    };
    TRY(Machine::Built built,
        BuildVariant(kernel, fmt::format("lockstep {}x{}x{}", block[0], block[1], block[2]), emit));
    if (built.facts.size() != 2)
      return Fail(Blame::kOurs, "kernel `{}`: the code kept for it is odd", kernel.info_.name);
    if (!built.facts[1]) return std::optional<Code>();
    Code code;
    code.warp_lanes = built.facts[0];
    code.warp_bytes = built.facts[1];
    code.warp = reinterpret_cast<WarpCode>(built.address);
    return std::optional<Code>(code);
  }

 private:
  /// Lanes and bytes of a warp's record.
  Result<std::vector<uint32_t>> EmitLockstep(Kernel& kernel, const Kernel::BlockShape& block,
                                             llvm::Module& llvm, const std::string& symbol) {
    softcuda::Build build{*module_, facts_, layout_, kernel.layout_, window_, llvm};
    build.lockstep = true;
    build.block = block;
    TRY(EmitKernel(build, kernel.function_, symbol));
    TRY(auto target, MakeTarget());
    lockstep::WarpShape shape;
    shape.block = block;
    shape.local_bytes = kernel.layout_.local_bytes;
    shape.dot_products = target->getTargetFeatureString().contains("+avx512vnni") &&
                         target->getTargetFeatureString().contains("+avx512vl");
    shape.lanes = LanesFor(llvm, block, build.instructions);
    TRY(uint32_t bytes, lockstep::Widen(*llvm.getFunction(symbol), shape, window_, *target));
    return std::vector<uint32_t>{shape.lanes, bytes};
  }

  static void MakeEmpty(llvm::Module& llvm, const std::string& symbol) {
    for (llvm::Function& f : llvm) f.deleteBody();
    while (!llvm.empty()) llvm.begin()->eraseFromParent();
    auto* i32 = llvm::Type::getInt32Ty(llvm.getContext());
    auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, false), llvm::Function::ExternalLinkage,
                                     symbol, llvm);
    llvm::ReturnInst::Create(llvm.getContext(), llvm::ConstantInt::get(i32, 0),
                             llvm::BasicBlock::Create(llvm.getContext(), "", f));
  }

  /// Lanes of a warp as code sees it: 32 where lanes exchange values, else what makes rows of the block.
  static uint32_t LanesFor(const llvm::Module& module, const Kernel::BlockShape& block, size_t instructions) {
    for (const char* name : {marker::kCollective, marker::kCollective64}) {
      if (module.getFunction(name)) return 32;
    }
    for (const llvm::Function& f : module) {
      if (f.getName().starts_with(marker::kMatrix)) return 32;
    }
    // Half the lanes are half the code, and still fill the widest registers.
    bool rows = block[1] == 1 && block[2] == 1;
    if (instructions > kMostForWide && (rows || block[0] % 16 == 0)) return 16;
    if (rows) return 32;
    return block[0] % 32 == 0 ? 32 : block[0] % 16 == 0 ? 16 : block[0] % 8 == 0 ? 8 : 32;
  }

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
    info.reserved_shared = static_cast<uint32_t>(kernel->layout_.reserved_shared);
    info.local_bytes = static_cast<uint32_t>(kernel->layout_.local_bytes);
    info.const_bytes = const_bytes_;
    for (const std::string& word : module_->target)
      if (word.starts_with("sm_")) std::from_chars(word.data() + 3, word.data() + word.size(), info.target);
    info.waits = facts_[f].waits;
    for (uint32_t reached : kernel->layout_.reachable) {
      for (uint32_t callee : facts_[reached].callees) {
        const ptx::Function& called = module_->functions[callee];
        info.uses_heap |= !called.has_body && (called.name == "malloc" || called.name == "free");
      }
    }
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
    // A cluster of one block is a block; what .explicitcluster leaves to the launch, the launch decides.
    if (const ptx::Directive* d = fn.FindDirective("reqnctapercluster"); d && Product(*d) > 1) {
      info.refusal = fmt::format(
          "line {}: it wants clusters of more than one block, which softcuda does not have", fn.place.line);
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

namespace {
// Shapes of blocks that a kernel gets code of its own for; more of them share code for any shape.
constexpr size_t kMostVariants = 16;
}  // namespace

const Code* Kernel::Find(const BlockShape& block) const {
  if (any_.load(std::memory_order_acquire)) return &code_;
  for (const Variant* v = newest_.load(std::memory_order_acquire); v; v = v->next) {
    if (v->block == block) return &v->code;
  }
  return nullptr;
}

Result<const Code*> Kernel::Ready(const BlockShape& block) {
  if (const Code* code = Find(block)) return code;
  return MakeReady(block);
}

Result<const Code*> Kernel::MakeReady(const BlockShape& block) {
  std::lock_guard lock(lock_);
  if (any_.load(std::memory_order_relaxed)) return &code_;
  for (const auto& v : variants_) {
    if (v->block == block) return &v->code;
  }
  if (!program_.InLockstep()) {
    TRY(const Code* code, MakeAny());
    any_.store(true, std::memory_order_release);
    return code;
  }
  if (variants_.size() >= kMostVariants) {
    // From here on every new shape runs what runs any.
    TRY(const Code* any, MakeAny());
    auto variant = std::make_unique<Variant>();
    variant->block = block;
    variant->code = *any;
    return Add(std::move(variant));
  }
  auto variant = std::make_unique<Variant>();
  variant->block = block;
  TRY(auto made, program_.BuildLockstep(*this, block));
  if (!made) {
    TRY(const Code* code, MakeAny());
    any_.store(true, std::memory_order_release);
    return code;
  }
  variant->code = *made;
  return Add(std::move(variant));
}

const Code* Kernel::Add(std::unique_ptr<Variant> variant) {
  variant->next = newest_.load(std::memory_order_relaxed);
  variants_.push_back(std::move(variant));
  newest_.store(variants_.back().get(), std::memory_order_release);
  return &variants_.back()->code;
}

Result<const Code*> Kernel::MakeAny() {
  if (ready_.load(std::memory_order_relaxed)) return &code_;
  if (failed_) return *failed_;
  auto code = program_.Build(*this);
  if (!code.ok()) {
    // A missing placement is the caller's to mend; anything else stays as it is.
    if (code.error().blame != Blame::kCaller) failed_ = code.error();
    return code.error();
  }
  code_ = *code;
  ready_.store(true, std::memory_order_release);
  return &code_;
}

Result<std::shared_ptr<Program>> Compile(std::shared_ptr<const ptx::Module> module,
                                         const AddressWindow& window, CompileOptions options) {
  TRY(std::shared_ptr<const ptx::Module> plain, MakePlain(std::move(module)));
  auto program = std::make_shared<ProgramImpl>(std::move(plain), window, options);
  TRY(program->Load());
  return std::shared_ptr<Program>(std::move(program));
}

}  // namespace cuplex::softcuda
