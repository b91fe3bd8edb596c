#include "softcuda/module.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "softcuda/context.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {

// --------------------------------------------------------------------------------------- FunctionSettings

uint32_t FunctionSettings::MaxDynamicShared(const KernelInfo& info) const {
  int set = max_dynamic_shared.load(std::memory_order_relaxed);
  if (set >= 0) return static_cast<uint32_t>(set);
  return info.static_shared < kMaxStaticShared ? kMaxStaticShared - info.static_shared : 0;
}

CUresult FunctionSettings::Get(CUfunction_attribute attribute, const KernelInfo& info, const Device& device,
                               int* value) const {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(info.const_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(info.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:  // programs pick their launch parameters by it
      *value = static_cast<int>(info.target);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = static_cast<int>(device.capability_major * 10 + device.capability_minor);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(MaxDynamicShared(info));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = carveout.load();
      return CUDA_SUCCESS;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult FunctionSettings::Set(CUfunction_attribute attribute, const KernelInfo& info, const Device& device,
                               int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || static_cast<uint32_t>(value) + info.static_shared > device.MaxSharedOptIn()) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      max_dynamic_shared.store(value);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      carveout.store(value);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// ----------------------------------------------------------------------------------------------- Function

CUresult Function::Refused() const {
  if (info.refusal.empty()) return CUDA_SUCCESS;
  Log().error("kernel `{}` cannot run: {}", info.name, info.refusal);
  return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

CUresult Function::Prepare(const std::array<uint32_t, 3>& block) {
  if (PreparedFor(block)) return CUDA_SUCCESS;
  if (auto made = program->Prepare(kernel, block); !made.ok()) {
    Log().error("{}: {}", info.name, made.error().sentence);
    switch (made.error().blame) {
      case Blame::kExhausted:
        return CUDA_ERROR_OUT_OF_MEMORY;
      case Blame::kUnsupported:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
      default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
  }
  prepared_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------- LoadedModule

Function* LoadedModule::Find(std::string_view name) const {
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

CUresult LoadedModule::ReferenceTo(std::string_view name, bool surface, Ref<TextureReference>* found) {
  std::lock_guard guard(references_lock_);
  auto known = references_.find(name);
  if (known == references_.end()) {
    auto variable = variables.find(name);
    if (variable == variables.end()) return CUDA_ERROR_NOT_FOUND;
    Ref<TextureReference> made =
        context.driver.texture_references.Make(&context, context, variable->second.address, surface);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    known = references_.emplace(std::string(name), std::move(made)).first;
  }
  *found = known->second;
  return CUDA_SUCCESS;
}

void LoadedModule::RetireReferences(bool unbind) {
  std::lock_guard guard(references_lock_);
  for (auto& [name, reference] : references_) {
    HandleTable<TextureReference>::Retire(reference.get());
    if (unbind) reference->Unbind();
  }
  references_.clear();
}

namespace {

Error Refused(CUresult code, std::string sentence) {
  return Error{code == CUDA_ERROR_OUT_OF_MEMORY ? Blame::kExhausted : Blame::kOurs, std::move(sentence),
               code};
}

// One block for all variables of the module, each where its alignment wants it.
Status PlaceVariables(Context& context, LoadedModule& module) {
  const auto& infos = module.program->variables();
  std::vector<size_t> offsets;
  size_t size = 0;
  for (const auto& info : infos) {
    size_t alignment = std::max<size_t>(info.alignment, 16);
    size = (size + alignment - 1) / alignment * alignment;
    offsets.push_back(size);
    size += std::max<size_t>(info.size, 1);
  }
  if (infos.empty()) return {};
  Block want;
  want.kind = Block::Kind::kModule;
  want.size = size;
  want.device = &context.device;
  want.context = &context;
  if (CUresult failed = context.driver.memory.Allocate(std::move(want), &module.memory)) {
    return Refused(failed,
                   fmt::format("{} bytes of device memory for the module's variables are not there", size));
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    uintptr_t at = module.memory + offsets[i];
    TRY(module.program->Place(infos[i].name, at));
    module.variables.emplace(infos[i].name, LoadedModule::Variable{at, infos[i].size});
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    TRY(auto bytes, module.program->InitialBytes(infos[i].name));
    std::memcpy(reinterpret_cast<void*>(module.memory + offsets[i]), bytes.data(), bytes.size());
  }
  return {};
}

void FreeVariables(Context& context, LoadedModule& module) {
  if (!module.memory) return;
  (void)context.driver.memory.Free(module.memory, 1u << static_cast<unsigned>(Block::Kind::kModule));
}

}  // namespace

Result<Ref<LoadedModule>> LoadInto(Context& context, std::shared_ptr<Program> program, bool of_library) {
  Driver& driver = context.driver;
  Ref<LoadedModule> module = driver.modules.Make(&context, context, program);
  if (!module) return Refused(CUDA_ERROR_OUT_OF_MEMORY, "no more modules can be loaded");
  module->of_library = of_library;
  auto fail = [&](Error error) {
    for (auto& function : module->functions) HandleTable<Function>::Retire(function.get());
    HandleTable<LoadedModule>::Retire(module.get());
    FreeVariables(context, *module);
    return error;
  };
  if (auto placed = PlaceVariables(context, *module); !placed.ok()) return fail(placed.error());
  for (const auto& info : program->kernels()) {
    Ref<Function> function =
        driver.functions.Make(&context, context, *module, program, program->FindKernel(info.name));
    if (!function) return fail(Refused(CUDA_ERROR_OUT_OF_MEMORY, "no more functions can be loaded"));
    module->by_name.emplace(function->info.name, function.get());
    module->functions.push_back(std::move(function));
  }
  std::unique_lock guard(context.lock);
  if (context.dead()) {
    guard.unlock();
    return fail(Refused(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed meanwhile"));
  }
  context.modules.push_back(module);
  return module;
}

bool Unload(Context& context, const Ref<LoadedModule>& module) {
  {
    std::lock_guard guard(context.lock);
    if (!HandleTable<LoadedModule>::Retire(module.get())) return false;
    for (auto& function : module->functions) HandleTable<Function>::Retire(function.get());
    std::erase_if(context.modules, [&](const Ref<LoadedModule>& m) { return m.get() == module.get(); });
  }
  context.Synchronize();
  module->RetireReferences(true);
  FreeVariables(context, *module);
  return true;
}

// ------------------------------------------------------------------------------------------ LoadedLibrary

Result<Ref<LoadedModule>> LoadedLibrary::In(Context& context) {
  std::lock_guard guard(lock_);
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.first->dead(); });
  if (auto it = loaded_.find(context.id); it != loaded_.end()) return it->second.second;
  std::shared_ptr<Program> program = std::exchange(unplaced_, nullptr);
  if (!program) {
    TRY(program, CompileImage(tree_, *driver.window, options_));
  }
  TRY(auto module, LoadInto(context, std::move(program), true));
  loaded_.emplace(context.id, std::pair(HandleTable<Context>::Share(&context), module));
  return module;
}

void LoadedLibrary::UnloadAll() {
  for (auto& kernel : kernels) HandleTable<LibraryKernel>::Retire(kernel.get());
  std::lock_guard guard(lock_);
  for (auto& [id, where] : loaded_) {
    if (!where.first->dead()) (void)Unload(*where.first, where.second);
  }
  loaded_.clear();
}

CUresult FindFunction(Context& context, CUfunction handle, Ref<Function>* found) {
  Driver& driver = context.driver;
  if (Ref<Function> function = driver.functions.Find(handle)) {
    if (&function->context != &context) return CUDA_ERROR_INVALID_HANDLE;
    *found = std::move(function);
    return CUDA_SUCCESS;
  }
  Ref<LibraryKernel> kernel = driver.kernels.Find(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  Ref<LoadedLibrary> library = driver.libraries.Find(&kernel->library);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  auto module = library->In(context);
  if (!module.ok()) {
    JitOptions none;
    return RefuseImage(module.error(), none);
  }
  Function* function = (*module)->Find(kernel->name);
  if (!function) return CUDA_ERROR_NOT_FOUND;
  if (CUresult refused = function->Refused()) return refused;
  if (int set = kernel->settings.max_dynamic_shared.load(); set >= 0)
    function->settings.max_dynamic_shared.store(set);
  kernel->Remember(function);
  *found = HandleTable<Function>::Share(function);
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
