// What a loaded PTX module is: LoadedModule and its Functions belong to one context; LoadedLibrary and its
// LibraryKernels to none, and are loaded into a context when first used there. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cuda/driver_types.h"
#include "ptx/linker.h"
#include "softcuda/handles.h"
#include "softcuda/image.h"
#include "softcuda/jit/program.h"
#include "softcuda/texture_reference.h"

namespace cuplex::softcuda {

class Context;
class Device;
class Driver;
class LoadedModule;

/// What cuFuncSetAttribute and cuKernelSetAttribute set.
struct FunctionSettings {
  std::atomic<int> max_dynamic_shared{-1};  // bytes; -1: what is left of 48 KiB beside static shared memory
  std::atomic<int> carveout{-1};
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};

  /// Bytes of dynamic shared memory that a launch may ask for.
  uint32_t MaxDynamicShared(const KernelInfo& info) const;
  CUresult Get(CUfunction_attribute attribute, const KernelInfo& info, const Device& device,
               int* value) const;
  CUresult Set(CUfunction_attribute attribute, const KernelInfo& info, const Device& device, int value);
};

class Function {
 public:
  Function(Context& context, LoadedModule& module, std::shared_ptr<Program> program, Kernel* kernel)
      : context(context),
        module(module),
        program(std::move(program)),
        kernel(kernel),
        info(this->program->Info(kernel)) {}

  Context& context;      // as long as the handle lives
  LoadedModule& module;  // the same
  const std::shared_ptr<Program> program;
  Kernel* const kernel;
  const KernelInfo& info;  // the program's
  FunctionSettings settings;

  /// The id of the library's kernel that this is in its context; 0 for a module's function.
  std::atomic<uint64_t> of_kernel{0};

  /// What to answer where softcuda cannot run it, after a line in the log; CUDA_SUCCESS where it can, as far
  /// as loading tells.
  CUresult Refused() const;
  /// Makes the machine code for blocks of that shape, the first time; cheap afterwards.
  CUresult Prepare(const std::array<uint32_t, 3>& block);
  /// Whether the code for any blocks, or for such, is there.
  bool prepared() const { return prepared_.load(std::memory_order_acquire); }
  bool PreparedFor(const std::array<uint32_t, 3>& block) const { return program->IsReady(kernel, block); }

 private:
  std::atomic<bool> prepared_{false};
};

class LoadedModule {
 public:
  struct Variable {
    uintptr_t address = 0;
    size_t size = 0;
  };

  LoadedModule(Context& context, std::shared_ptr<Program> program)
      : context(context), program(std::move(program)) {}

  Context& context;  // as long as the handle lives
  const std::shared_ptr<Program> program;
  uintptr_t memory = 0;  // the block all variables are in; 0 without variables
  std::map<std::string, Variable, std::less<>> variables;
  std::vector<Ref<Function>> functions;  // as Program::kernels
  std::map<std::string_view, Function*> by_name;
  bool of_library = false;  // cuModuleUnload must leave it alone

  Function* Find(std::string_view name) const;
  /// The reference of that variable, made when first asked for. CUDA_ERROR_NOT_FOUND where there is no such
  /// variable; what sort it is, the caller has looked.
  CUresult ReferenceTo(std::string_view name, bool surface, Ref<TextureReference>* found);
  /// Makes their handles void. `unbind`: also what they are bound to, for the context goes on.
  void RetireReferences(bool unbind);

 private:
  std::mutex references_lock_;
  std::map<std::string, Ref<TextureReference>, std::less<>> references_;
};

/// Places the program's variables in the context's device memory and makes the handles.
Result<Ref<LoadedModule>> LoadInto(Context& context, std::shared_ptr<Program> program, bool of_library);
/// Waits for the context, then frees what LoadInto made. False where someone else unloaded it.
bool Unload(Context& context, const Ref<LoadedModule>& module);

/// What cuLinkCreate makes. Fields are guarded by the lock.
struct PendingLink {
  explicit PendingLink(JitOptions options) : options(options) {}

  std::mutex lock;
  JitOptions options;
  std::vector<ptx::LinkInput> inputs;  // until it is complete
  std::string image;                   // from then on: PTX text
};

class LoadedLibrary;

class LibraryKernel {
 public:
  LibraryKernel(LoadedLibrary& library, std::string name, uint64_t id)
      : library(library), name(std::move(name)), id(id) {}

  LoadedLibrary& library;  // as long as the handle lives
  const std::string name;
  const uint64_t id;
  FunctionSettings settings;

  /// The function that it was in the context of its last launch, if that is still one of `context`; otherwise
  /// null, and FindFunction knows. Under the context's lock.
  Function* FunctionIn(const HandleTable<Function>& functions, const Context& context) const {
    Function* function = functions.Peek(last_.load(std::memory_order_relaxed), &context);
    return function && function->of_kernel.load(std::memory_order_relaxed) == id ? function : nullptr;
  }
  /// What FunctionIn answers from here on; null: nothing.
  void Remember(Function* function) {
    if (function) function->of_kernel.store(id);
    last_.store(function);
  }

 private:
  std::atomic<Function*> last_{nullptr};
};

class LoadedLibrary {
 public:
  LoadedLibrary(Driver& driver, std::shared_ptr<const ptx::Module> tree, CompileOptions options,
                std::shared_ptr<Program> program)
      : driver(driver),
        tree_(std::move(tree)),
        options_(options),
        infos(std::move(program)),
        unplaced_(infos) {}

  Driver& driver;
  std::vector<Ref<LibraryKernel>> kernels;

  /// The library in that context; loads it there the first time. Errors are those of LoadInto.
  Result<Ref<LoadedModule>> In(Context& context);
  /// Unloads it everywhere and makes its kernels' handles void.
  void UnloadAll();

 private:
  const std::shared_ptr<const ptx::Module> tree_;
  const CompileOptions options_;

 public:
  const std::shared_ptr<Program> infos;  // for what is the same in every context

 private:
  std::mutex lock_;
  std::shared_ptr<Program> unplaced_;  // for the first context; null once taken
  std::map<uint64_t, std::pair<Ref<Context>, Ref<LoadedModule>>> loaded_;  // by the context's id
};

/// The function that a handle means in `context`: one of its own, or a kernel of a library, which is loaded
/// for it. CUDA_ERROR_INVALID_HANDLE where it is neither.
CUresult FindFunction(Context& context, CUfunction handle, Ref<Function>* found);

}  // namespace cuplex::softcuda
