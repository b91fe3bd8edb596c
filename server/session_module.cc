// The calls of a session that concern modules and functions.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "protocol/function_facts.h"
#include "server/driver_call.h"
#include "server/image_globals.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr size_t kMostLog = 4096;
constexpr size_t kMostParameters = 4096;
constexpr unsigned kMostListed = 65536;  // functions of a module that are known by index

std::string Text(std::span<const std::byte> bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

struct Loaded {
  CUresult code = CUDA_SUCCESS;
  uint64_t taken = 0;  // device memory that is gone since, other clients' included
  CUmodule handle = nullptr;
  std::vector<CUfunction> functions;
  std::string text;
};

void Load(const DriverTable& cu, CUcontext context, const std::string& image, Loaded& loaded) {
  loaded.code = cu.cuCtxSetCurrent(context);
  size_t before = 0, after = 0, total = 0;
  if (!loaded.code) loaded.code = cu.cuMemGetInfo_v2(&before, &total);
  if (!loaded.code) {
    std::string log(kMostLog, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    loaded.code = cu.cuModuleLoadDataEx(&loaded.handle, image.c_str(), 2, options, values);
    if (loaded.code) loaded.text = log.c_str();
    if (!loaded.code && cu.cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS && after < before)
      loaded.taken = before - after;
  }
  unsigned count = 0;
  // A driver that cannot list them is older than programs that ask.
  if (!loaded.code && cu.cuModuleGetFunctionCount(&count, loaded.handle) == CUDA_SUCCESS) {
    loaded.functions.resize(std::min(count, kMostListed));
    if (cu.cuModuleEnumerateFunctions(loaded.functions.data(), static_cast<unsigned>(loaded.functions.size()),
                                      loaded.handle))
      loaded.functions.clear();
  }
  Context::Leave(cu);
}

}  // namespace

Outcome Session::wireImageOffer(const CallFrame&, const wire::wireImageOfferArgs& args,
                                wire::wireImageOfferReply* reply) {
  auto known = uploads_.Offer(tenant_.images, {args.hash_low(), args.hash_high()}, args.image_bytes());
  if (!known.ok()) return Refuse(known.error());
  reply->mutate_known(*known);
  return CUDA_SUCCESS;
}

Outcome Session::wireImageWrite(const CallFrame&, const wire::wireImageWriteArgs& args,
                                std::span<const std::byte> data) {
  Status written = uploads_.Write(tenant_.images, {args.hash_low(), args.hash_high()}, args.offset(), data);
  return written.ok() ? CUDA_SUCCESS : Refuse(written.error());
}

Outcome Session::wireModuleLoad(const CallFrame& frame, const wire::wireModuleLoadArgs& args,
                                wire::wireModuleLoadReply*, std::string* text) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  if (modules_.size() + modules_loading_ >= kMostModules)
    return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  ImageStore::Image image = tenant_.images.Find({args.hash_low(), args.hash_high()});
  if (!image) {
    *text = "The server does not hold the module's image; its bytes did not come, or not those of its hash.";
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_IMAGE);
  }
  ++modules_loading_;
  auto globals = std::make_shared<Result<uint64_t>>(uint64_t{0});
  const Device& device = house_.devices[context->holding().device];
  const uint32_t arch = static_cast<uint32_t>(device.compute_major * 10 + device.compute_minor);
  Post(
      false, [globals, image, arch] { *globals = GlobalBytes(*image, arch); },
      [this, globals, image, slot = frame.slot, bytes = args.text_bytes(), number = frame.context,
       handle = args.module_id()] {
        if (!globals->ok())
          Log().debug("The variables of an image are not known: {}", globals->error().sentence);
        LoadModule(slot, bytes, number, handle, image,
                   globals->ok() ? std::optional(**globals) : std::nullopt);
      });
  return Outcome::Later();
}

void Session::AnswerModule(uint32_t slot, CUresult code, uint32_t functions, std::string text,
                           uint32_t text_bytes) {
  --modules_loading_;
  wire::wireModuleLoadReply reply{};
  if (text.size() > text_bytes) text.resize(text_bytes);
  reply.mutate_function_count(functions);
  reply.mutate_text_bytes(static_cast<uint32_t>(text.size()));
  Answer(slot, code, reply, text);
}

void Session::LoadModule(uint32_t slot, uint32_t text_bytes, uint32_t number, uint64_t handle,
                         ImageStore::Image image, std::optional<uint64_t> known) {
  CUresult why;
  Context* context = ending_ ? nullptr : Live(number, &why);
  if (ending_) why = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!context) return AnswerModule(slot, why, 0, {}, text_bytes);
  const uint64_t globals = known.value_or(0);
  Holding& holding = context->holding();
  if (globals > holding.free() && frees_) {
    after_frees_.push_back([=, this] { LoadModule(slot, text_bytes, number, handle, image, known); });
    return;
  }
  const auto no_room = [=, this, &holding] {
    AnswerModule(slot, CUDA_ERROR_OUT_OF_MEMORY, 0,
                 fmt::format("The module's variables take {} bytes of device memory, {} are left.", globals,
                             holding.free()),
                 text_bytes);
  };
  if (AwaitBudget(holding, globals, [=, this](bool enough) {
        enough ? LoadModule(slot, text_bytes, number, handle, image, known) : no_room();
      }))
    return;
  if (!holding.Charge(globals)) return no_room();
  auto loaded = std::make_shared<Loaded>();
  Post(
      true,
      [loaded, image, driver = context->driver(), &cu = house_.cu] { Load(cu, driver, *image, *loaded); },
      [this, loaded, image, slot, text_bytes, number, handle, known, globals, &holding] {
        CUresult code = loaded->code;
        if (code) {
          holding.Refund(globals);
          if (!ending_ && IsSticky(code))
            if (auto at = contexts_.find(number); at != contexts_.end() && at->second.context)
              at->second.context->Fail(code);
          return AnswerModule(slot, code, 0, loaded->text, text_bytes);
        }
        uint64_t charged = globals;
        if (!known) {  // an image that only the driver can read: what it took is what it costs
          charged = loaded->taken;
          if (!holding.Charge(charged)) {
            ++frees_;
            UnloadJob(number, loaded->handle, 0, holding);
            return AnswerModule(slot, CUDA_ERROR_OUT_OF_MEMORY, 0, {}, text_bytes);
          }
        }
        auto module = std::make_unique<OwnModule>();
        module->handle = loaded->handle;
        module->context = number;
        module->charged = charged;
        module->image = image;
        module->functions = std::move(loaded->functions);
        const uint32_t count = static_cast<uint32_t>(module->functions.size());
        if (!modules_.Insert(handle, std::move(module))) {
          // The handle is taken: nobody will ever name this module, so it goes again.
          ++frees_;
          UnloadJob(number, loaded->handle, charged, holding);
          return AnswerModule(slot, Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE), 0, {},
                              text_bytes);
        }
        AnswerModule(slot, CUDA_SUCCESS, count, {}, text_bytes);
      });
}

/// Ends one of frees_.
void Session::UnloadJob(uint32_t number, CUmodule handle, uint64_t charged, Holding& holding) {
  Post(
      true,
      [handle, driver = contexts_.at(number).context->driver(), &cu = house_.cu] {
        if (!driver) return;  // it has gone with its context
        CUresult code = cu.cuCtxSetCurrent(driver);
        if (!code) code = cu.cuModuleUnload(handle);
        // A module that the driver keeps goes with its context.
        if (code) Log().warn("A module is not unloaded: cuModuleUnload answered {}.", static_cast<int>(code));
        Context::Leave(cu);
      },
      [this, charged, &holding] {
        holding.Refund(charged);
        FreeDone();
      });
}

Outcome Session::wireModuleUnload(const CallFrame&, const wire::wireModuleUnloadArgs& args) {
  std::unique_ptr<OwnModule>* found = modules_.Find(args.module_id());
  if (!found) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  OwnModule& module = **found;
  if (contexts_.at(module.context).ending) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  // Launches that are queued still use the functions; they go when these are done.
  auto functions = std::make_shared<std::vector<std::unique_ptr<Function>>>();
  for (uint64_t handle : module.found) {
    if (OwnFunction* own = functions_.Find(handle)) functions->push_back(std::move(own->function));
    functions_.Erase(handle);
  }
  for (uint64_t address : module.globals) memory_.Take(address);
  std::shared_ptr<OwnModule> gone(std::move(*found));
  modules_.Erase(args.module_id());
  ++gone_;
  Holding& holding = contexts_.at(gone->context).context->holding();
  ++frees_;
  contexts_.at(gone->context).context->WhenAllDone([this, gone, functions, &holding](CUresult code) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
      holding.Refund(gone->charged);  // it goes with its context
      return FreeDone();
    }
    for (CUmodule sliced : gone->sliced) {
      ++frees_;
      UnloadJob(gone->context, sliced, 0, holding);
    }
    UnloadJob(gone->context, gone->handle, gone->charged, holding);
  });
  return CUDA_SUCCESS;
}

void Session::WantSliced(Context& context, Function& function) {
  const OwnFunction* own = functions_.Find(function.number);
  std::unique_ptr<OwnModule>* module = own ? modules_.Find(own->module) : nullptr;
  if (!module || own->function.get() != &function) return context.SlicingKnown(function, nullptr);
  auto made = std::make_shared<Result<SlicedFunction>>(SlicedFunction{});
  const Device& device = house_.devices[context.holding().device];
  const uint32_t arch = static_cast<uint32_t>(device.compute_major * 10 + device.compute_minor);
  Post(
      true,
      [made, arch, driver = context.driver(), original = (*module)->handle, whole = function.handle,
       image = (*module)->image, name = function.name, &texts = tenant_.sliced,
       &cu = house_.cu] { *made = MakeSliced(cu, driver, original, whole, texts, *image, arch, name); },
      [this, made, number = own->context, module_id = own->module, function_id = function.number] {
        // Any of them may have gone meanwhile.
        auto at = contexts_.find(number);
        Context* context = at == contexts_.end() ? nullptr : at->second.context.get();
        if (!context || at->second.ending || context->fault()) return;  // the driver's module goes with it
        std::unique_ptr<OwnModule>* module = modules_.Find(module_id);
        OwnFunction* own = functions_.Find(function_id);
        if (!module || !own || own->module != module_id) {
          if (!made->ok()) return;
          ++frees_;
          return UnloadJob(number, (**made).module, 0, context->holding());
        }
        if (!made->ok()) {
          Log().info("The kernel {} of {} runs whole: {}", own->function->name, tenant_.name,
                     made->error().sentence);
          return context->SlicingKnown(*own->function, nullptr);
        }
        (*module)->sliced.push_back((**made).module);
        context->SlicingKnown(*own->function, std::make_unique<SlicedFunction>(std::move(**made)));
      });
}

Outcome Session::wireModuleFunction(const CallFrame&, const wire::wireModuleFunctionArgs& args,
                                    std::span<const std::byte> name, wire::wireModuleFunctionReply*,
                                    std::string* facts) {
  std::unique_ptr<OwnModule>* module = modules_.Find(args.module_id());
  if (!module) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUresult why;
  Context* context = Live((*module)->context, &why);
  if (!context) return why;
  if (functions_.size() >= kMostFunctions) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (CUresult code = context->Enter()) return code;
  const DriverTable& cu = house_.cu;
  auto function = std::make_unique<Function>();
  if (CUresult code = cu.cuModuleGetFunction(&function->handle, (*module)->handle, Text(name).c_str()))
    return code;
  FunctionFacts f;
  const std::pair<CUfunction_attribute, int32_t*> asked[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &f.max_threads_per_block},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &f.shared_bytes},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &f.const_bytes},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &f.local_bytes},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, &f.registers},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, &f.ptx_version},
      {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &f.binary_version},
      {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &f.cache_mode_ca},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &f.max_dynamic_shared_bytes},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &f.preferred_carveout},
  };
  for (auto [attribute, value] : asked)
    if (CUresult code = cu.cuFuncGetAttribute(value, attribute, function->handle)) return code;
  for (size_t i = 0; i < kMostParameters; ++i) {
    size_t offset = 0, size = 0;
    const CUresult code = cu.cuFuncGetParamInfo(function->handle, i, &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE) break;  // there are no more
    if (code) return code;
    function->parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
    function->parameter_bytes = std::max(function->parameter_bytes, static_cast<uint32_t>(offset + size));
  }
  f.parameter_count = static_cast<uint32_t>(function->parameters.size());
  f.parameter_bytes = function->parameter_bytes;
  facts->assign(reinterpret_cast<const char*>(&f), sizeof(f));
  facts->append(reinterpret_cast<const char*>(function->parameters.data()),
                function->parameters.size() * sizeof(FunctionParameter));
  function->number = args.function();
  function->name = Text(name);
  if (!functions_.Insert(args.function(), {std::move(function), (*module)->context, args.module_id()}))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  (*module)->found.push_back(args.function());
  return CUDA_SUCCESS;
}

Outcome Session::wireModuleGlobal(const CallFrame&, const wire::wireModuleGlobalArgs& args,
                                  std::span<const std::byte> name, wire::wireModuleGlobalReply* reply) {
  std::unique_ptr<OwnModule>* module = modules_.Find(args.module_id());
  if (!module) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUresult why;
  Context* context = Live((*module)->context, &why);
  if (!context) return why;
  if (CUresult code = context->Enter()) return code;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (CUresult code = house_.cu.cuModuleGetGlobal_v2(&address, &bytes, (*module)->handle, Text(name).c_str()))
    return code;
  if (!memory_.At(address)) {
    memory_.Add({Allocation::Kind::kGlobal, address, bytes, (*module)->context, {}, nullptr, 0});
    (*module)->globals.push_back(address);
  }
  reply->mutate_address(address);
  reply->mutate_size(bytes);
  return CUDA_SUCCESS;
}

Outcome Session::wireModuleFunctionName(const CallFrame&, const wire::wireModuleFunctionNameArgs& args,
                                        wire::wireModuleFunctionNameReply*, std::string* name) {
  std::unique_ptr<OwnModule>* module = modules_.Find(args.module_id());
  if (!module) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUresult why;
  Context* context = Live((*module)->context, &why);
  if (!context) return why;
  if (args.index() >= (*module)->functions.size())
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  if (CUresult code = context->Enter()) return code;
  const char* text = nullptr;
  if (CUresult code = house_.cu.cuFuncGetName(&text, (*module)->functions[args.index()])) return code;
  *name = text;
  return CUDA_SUCCESS;
}

Outcome Session::cuFuncSetAttribute(const CallFrame&, const wire::cuFuncSetAttributeArgs& args,
                                    wire::cuFuncSetAttributeReply*) {
  if (args.attrib() < 0 || args.attrib() >= CU_FUNC_ATTRIBUTE_MAX)
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  OwnFunction* own = functions_.Find(args.hfunc());
  if (!own) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUresult why;
  Context* context = Live(own->context, &why);
  if (!context) return why;
  if (CUresult code = context->Enter()) return code;
  const auto attribute = static_cast<CUfunction_attribute>(args.attrib());
  if (CUresult code = house_.cu.cuFuncSetAttribute(own->function->handle, attribute, args.value()))
    return code;
  if (own->function->sliced)
    return house_.cu.cuFuncSetAttribute(own->function->sliced->handle, attribute, args.value());
  return CUDA_SUCCESS;
}

Outcome Session::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    const CallFrame&, const wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsArgs& args,
    wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsReply* reply) {
  OwnFunction* own = functions_.Find(args.func());
  if (!own) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUresult why;
  Context* context = Live(own->context, &why);
  if (!context) return why;
  if (CUresult code = context->Enter()) return code;
  int blocks = 0;
  const CUresult code = house_.cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      &blocks, own->function->handle, args.block_size(), args.dynamic_s_mem_size(), args.flags());
  reply->mutate_num_blocks(blocks);
  return code;
}

}  // namespace cuplex::server
