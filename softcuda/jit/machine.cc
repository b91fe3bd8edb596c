#include "softcuda/jit/machine.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <elf.h>
#include <link.h>

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "softcuda/jit/runtime.h"

namespace cuplex::softcuda {
namespace {

Error FromLlvm(llvm::Error error, const char* what) {
  return Fail(Blame::kOurs, "softcuda: {}: {}", what, llvm::toString(std::move(error)));
}

/// What code is generated for: this processor.
Result<llvm::orc::JITTargetMachineBuilder> Host() {
  static const auto host = []() -> Result<llvm::orc::JITTargetMachineBuilder> {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto found = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!found) return FromLlvm(found.takeError(), "cannot tell what processor this is");
    found->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    // What lies outside of a kernel's code may lie anywhere.
    found->setRelocationModel(llvm::Reloc::PIC_);
    found->setCodeModel(llvm::CodeModel::Small);
    return *std::move(found);
  }();
  return host;
}

/// The build identifier of the object (program or shared library) that holds `address`; empty where it has
/// none.
std::string BuildIdOf(const void* address) {
  struct Search {
    uintptr_t address;
    std::string id;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        bool holds = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& h = info->dlpi_phdr[i];
          holds |= h.p_type == PT_LOAD && s.address - (info->dlpi_addr + h.p_vaddr) < h.p_memsz;
        }
        if (!holds) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& h = info->dlpi_phdr[i];
          if (h.p_type != PT_NOTE) continue;
          auto* at = reinterpret_cast<const char*>(info->dlpi_addr + h.p_vaddr);
          size_t align = h.p_align == 8 ? 8 : 4;
          auto round = [&](size_t n) { return (n + align - 1) / align * align; };
          for (size_t used = 0; used + sizeof(ElfW(Nhdr)) <= h.p_memsz;) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at + used, sizeof(note));
            size_t name = used + sizeof(note), text = round(name + note.n_namesz);
            if (text + note.n_descsz > h.p_memsz) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(at + name, "GNU", 4)) {
              s.id.assign(at + text, note.n_descsz);
              return 1;
            }
            used = round(text + note.n_descsz);
          }
        }
        return 1;
      },
      &search);
  return search.id;
}

/// What pays for one function full of registers kept in memory and of checked accesses. It makes code as good
/// as the compiler's default passes do, in half of their time.
llvm::FunctionPassManager KernelPasses() {
  llvm::FunctionPassManager f;
  f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopRotatePass());
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::GVNPass());
  f.addPass(llvm::DSEPass());
  f.addPass(llvm::ADCEPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  return f;
}

void Optimise(llvm::Module& module, llvm::TargetMachine& target, int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager groups;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(groups);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, groups, modules);
  size_t bodies = 0;
  for (const llvm::Function& f : module) bodies += !f.isDeclaration();
  llvm::ModulePassManager passes;
  if (level <= 0) {
    passes = builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0);
  } else if (level >= 3) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  } else if (bodies > 1) {  // functions to inline
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(KernelPasses()));
  }
  passes.run(module, modules);
}

}  // namespace

/// What links code for the process. Starting one takes longer than linking a kernel; so it starts once and
/// stays, and each machine has a place of its own in it.
Result<llvm::orc::LLJIT*> Linker() {
  static const auto linker = []() -> Result<llvm::orc::LLJIT*> {
    TRY(auto host, Host());
    auto jit = llvm::orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(host))
                   .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                   .create();
    if (!jit) return FromLlvm(jit.takeError(), "cannot start the compiler");
    // Code sees the runtime's functions and nothing else of the process.
    llvm::orc::SymbolMap symbols;
    for (const RuntimeSymbol& s : RuntimeSymbols()) {
      symbols[(*jit)->mangleAndIntern(s.name)] = {llvm::orc::ExecutorAddr::fromPtr(s.address),
                                                  llvm::JITSymbolFlags::Exported};
    }
    if (auto error = (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
      return FromLlvm(std::move(error), "cannot define the runtime's functions");
    }
    return jit->release();
  }();
  return linker;
}

Machine::Machine(int level, CodeCache* cache) : level_(level), cache_(cache) {}

Machine::~Machine() {
  if (!code_) return;
  // Takes the code away. What could fail here is a platform's, and there is none.
  llvm::consumeError(jit_->getExecutionSession().removeJITDylib(*code_));
}

const std::string& MachineIdentity() {
  static const std::string identity = []() -> std::string {
    auto host = Host();
    std::string self = BuildIdOf(reinterpret_cast<const void*>(&MachineIdentity));
    std::string llvm = BuildIdOf(reinterpret_cast<const void*>(&llvm::sys::getHostCPUName));
    if (!host.ok() || self.empty()) return {};
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", host->getTargetTriple().str(), host->getCPU(),
                       host->getFeatures().getString(), LLVM_VERSION_STRING, llvm, self);
  }();
  return identity;
}

Result<std::unique_ptr<llvm::TargetMachine>> MakeTarget() {
  TRY(auto host, Host());
  auto target = host.createTargetMachine();
  if (!target) return FromLlvm(target.takeError(), "cannot generate code for this processor");
  return std::move(*target);
}

Status Machine::Start() {
  if (code_) return {};
  TRY(jit_, Linker());
  static std::atomic<uint64_t> machines{0};
  auto& code = jit_->getExecutionSession().createBareJITDylib(fmt::format("machine {}", ++machines));
  code.addToLinkOrder(jit_->getMainJITDylib());
  code_ = &code;
  return {};
}

Status Machine::Define(const std::string& symbol, uintptr_t address) {
  std::lock_guard hold(lock_);
  TRY(Start());
  llvm::orc::SymbolMap symbols;
  symbols[jit_->mangleAndIntern(symbol)] = {llvm::orc::ExecutorAddr(address), llvm::JITSymbolFlags::Exported};
  if (auto error = code_->define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
    return FromLlvm(std::move(error), "cannot define a symbol");
  }
  return {};
}

/// Optimises, and makes a relocatable object.
Result<std::vector<std::byte>> Machine::Generate(llvm::Module& module) {
  TRY(auto target, MakeTarget());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    // A frame may be larger than the guard below the stack; it must not be stepped over.
    f.addFnAttr("probe-stack", "inline-asm");
    f.addFnAttr("target-cpu", target->getTargetCPU());
    f.addFnAttr("target-features", target->getTargetFeatureString());
  }
  Optimise(module, *target, level_);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  llvm::MCContext* context = nullptr;
  if (target->addPassesToEmitMC(passes, context, stream)) {
    return Fail(Blame::kOurs, "softcuda: LLVM makes no objects for this processor");
  }
  passes.run(module);
  auto* bytes = reinterpret_cast<const std::byte*>(object.data());
  return std::vector<std::byte>(bytes, bytes + object.size());
}

Result<Machine::Built> Machine::Build(const Digest& key, const Emit& emit) {
  Digester whole;
  whole.Add(key);
  whole.Add(MachineIdentity());
  whole.Add(static_cast<uint64_t>(level_));
  Digest digest = whole.Finish();
  std::string symbol = "code." + Hexadecimal(digest);
  {
    std::lock_guard hold(lock_);
    if (auto it = built_.find(symbol); it != built_.end()) return it->second;
    TRY(Start());
  }
  bool keeps = cache_ && !MachineIdentity().empty();
  std::optional<CodeCache::Entry> entry;
  if (keeps) entry = cache_->Find(digest);
  if (!entry) {
    llvm::LLVMContext context;
    llvm::Module module(symbol, context);
    module.setDataLayout(jit_->getDataLayout());
    module.setTargetTriple(jit_->getTargetTriple().str());
    CodeCache::Entry made;
    TRY(made.facts, emit(module, symbol));
    TRY(made.code, Generate(module));
    if (keeps) cache_->Keep(digest, made.facts, made.code);
    entry = std::move(made);
  }
  std::lock_guard hold(lock_);
  if (auto it = built_.find(symbol); it != built_.end()) return it->second;  // another thread was faster
  llvm::StringRef bytes(reinterpret_cast<const char*>(entry->code.data()), entry->code.size());
  if (auto error = jit_->addObjectFile(*code_, llvm::MemoryBuffer::getMemBufferCopy(bytes, symbol))) {
    return FromLlvm(std::move(error), "cannot add a kernel's code");
  }
  auto address = jit_->lookup(*code_, symbol);
  if (!address) return FromLlvm(address.takeError(), "cannot link a kernel's code");
  Built built{address->toPtr<void*>(), std::move(entry->facts)};
  built_.emplace(symbol, built);
  return built;
}

}  // namespace cuplex::softcuda
