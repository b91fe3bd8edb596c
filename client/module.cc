#include "client/module.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/log.h"
#include "client/exports.h"
#include "client/jit_options.h"

namespace cuplex::client {
namespace {

constexpr size_t kLongestName = 64 * 1024;  // that fits a frame

std::span<const std::byte> BytesOf(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}

}  // namespace

CUresult ModuleTable::Send(Session& session, uint32_t context, const Image& image) {
  std::lock_guard lock(upload_);
  return Upload(session, context, image);
}

CUresult ModuleTable::Load(Session& session, uint32_t context, const Image& image, std::string* log,
                           Handle* out) {
  if (CUresult r = Send(session, context, image)) return r;
  const Handle h = source_.Take();
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  wire::wireModuleLoadReply reply;
  const uint32_t room = SlotCapacity(session.segment()) - sizeof(reply);
  const wire::wireModuleLoadArgs args(h, image.hash_low, image.hash_high, room);
  if (CUresult r = session.submission().Ask(Op::wireModuleLoad, context, args, &reply, {}, log)) {
    source_.Return(h);
    return r;
  }
  std::lock_guard lock(mutex_);
  modules_[h] = {context, reply.function_count(), {}};
  *out = h;
  return CUDA_SUCCESS;
}

uint32_t ModuleTable::ContextOf(Handle module) {
  std::lock_guard lock(mutex_);
  auto it = modules_.find(module);
  return it == modules_.end() ? 0 : it->second.context;
}

CUresult ModuleTable::Unload(Session& session, Handle module) {
  uint32_t context;
  {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(module);
    if (it == modules_.end()) return CUDA_ERROR_INVALID_HANDLE;
    context = it->second.context;
    modules_.erase(it);
  }
  const CUresult r =
      session.submission().Post(Op::wireModuleUnload, context, wire::wireModuleUnloadArgs(module));
  // Only now may the handles be given out again.
  session.functions.ForgetModule(module);
  session.allocations.ForgetModule(module);
  session.references.ForgetModule(module);
  source_.Return(module);
  return r;
}

CUresult ModuleTable::GetFunction(Session& session, Handle module, std::string_view name, Handle* out) {
  uint32_t context;
  {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(module);
    if (it == modules_.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (auto known = it->second.functions.find(name); known != it->second.functions.end()) {
      *out = known->second;
      return CUDA_SUCCESS;
    }
    context = it->second.context;
  }
  if (name.size() > kLongestName) return CUDA_ERROR_NOT_FOUND;
  Function function;
  function.context = context;
  function.module = module;
  function.name = name;
  const Handle h = session.functions.Insert(function);
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  wire::wireModuleFunctionReply reply;
  std::string facts;
  const uint32_t room = SlotCapacity(session.segment()) - sizeof(reply);
  const wire::wireModuleFunctionArgs args(module, h, static_cast<uint32_t>(name.size()), room);
  CUresult r = session.submission().Ask(Op::wireModuleFunction, context, args, &reply, BytesOf(name), &facts);
  if (!r) {
    if (facts.size() < sizeof(FunctionFacts)) {
      r = CUDA_ERROR_UNKNOWN;
    } else {
      std::memcpy(&function.facts, facts.data(), sizeof(FunctionFacts));
      const uint32_t count = function.facts.parameter_count;
      if ((facts.size() - sizeof(FunctionFacts)) / sizeof(FunctionParameter) < count)
        r = CUDA_ERROR_UNKNOWN;
      else
        function.parameters.resize(count);
    }
  }
  if (r) {
    session.functions.Erase(h);
    return r;
  }
  std::memcpy(function.parameters.data(), facts.data() + sizeof(FunctionFacts),
              function.parameters.size() * sizeof(FunctionParameter));
  *session.functions.Find(h) = std::move(function);
  std::lock_guard lock(mutex_);
  auto it = modules_.find(module);
  if (it == modules_.end()) return CUDA_ERROR_INVALID_HANDLE;
  *out = it->second.functions.emplace(name, h).first->second;  // of two who asked at once, one handle is kept
  return CUDA_SUCCESS;
}

CUresult ModuleTable::GetGlobal(Session& session, Handle module, std::string_view name, CUdeviceptr* address,
                                size_t* bytes) {
  const uint32_t context = ContextOf(module);
  if (!context) return CUDA_ERROR_INVALID_HANDLE;
  if (name.size() > kLongestName) return CUDA_ERROR_NOT_FOUND;
  wire::wireModuleGlobalReply reply;
  const wire::wireModuleGlobalArgs args(module, static_cast<uint32_t>(name.size()));
  if (CUresult r = session.submission().Ask(Op::wireModuleGlobal, context, args, &reply, BytesOf(name)))
    return r;
  Allocation global;
  global.base = reply.address();
  global.bytes = reply.size();
  global.kind = Allocation::kGlobal;
  global.context = context;
  global.module = module;
  session.allocations.Insert(global);
  if (address) *address = reply.address();
  if (bytes) *bytes = reply.size();
  return CUDA_SUCCESS;
}

CUresult ModuleTable::FunctionCount(Handle module, uint32_t* out) {
  std::lock_guard lock(mutex_);
  auto it = modules_.find(module);
  if (it == modules_.end()) return CUDA_ERROR_INVALID_HANDLE;
  *out = it->second.function_count;
  return CUDA_SUCCESS;
}

CUresult ModuleTable::FunctionName(Session& session, Handle module, uint32_t index, std::string* out) {
  const uint32_t context = ContextOf(module);
  if (!context) return CUDA_ERROR_INVALID_HANDLE;
  wire::wireModuleFunctionNameReply reply;
  const uint32_t room = SlotCapacity(session.segment()) - sizeof(reply);
  const wire::wireModuleFunctionNameArgs args(module, index, room);
  return session.submission().Ask(Op::wireModuleFunctionName, context, args, &reply, {}, out);
}

void ModuleTable::Forget(uint32_t context) {
  std::lock_guard lock(mutex_);
  std::erase_if(modules_, [&](auto& entry) {
    if (entry.second.context != context) return false;
    source_.Return(entry.first);
    return true;
  });
}

namespace {

CUresult LoadModule(CUmodule* module, const Result<Image>& image, unsigned count, CUjit_option* options,
                    void** values) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (!image.ok()) {
    Log().debug("{}", image.error().sentence);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  JitOptions wanted;
  if (CUresult r = wanted.Read(count, options, values)) return r;
  std::string text;
  Handle h;
  const CUresult r = caller.session->modules.Load(*caller.session, caller.number, *image, &text, &h);
  wanted.WriteLogs({}, text);
  if (r) {
    // Whoever reads this has a program that does not run; its own error seldom says which instruction.
    if (!text.empty()) Log().warn("a module does not load: {}", text);
    return r;
  }
  *module = reinterpret_cast<CUmodule>(h);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  if (!module || !image || (numOptions && (!options || !optionValues))) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  return LoadModule(module, ImageFrom(image), numOptions, options, optionValues);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return cuModuleLoadDataEx(module, fatCubin, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  if (!module || !fname) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  std::string bytes;
  if (CUresult r = ReadImageFile(fname, &bytes)) return r;
  return LoadModule(module, ImageFrom(BytesOf(bytes)), 0, nullptr, nullptr);
}

CUresult cuModuleUnload(CUmodule hmod) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->modules.Unload(*session, reinterpret_cast<Handle>(hmod));
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  if (!hfunc || !name) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Handle h;
  if (CUresult r = session->modules.GetFunction(*session, reinterpret_cast<Handle>(hmod), name, &h)) return r;
  *hfunc = reinterpret_cast<CUfunction>(h);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->modules.FunctionCount(reinterpret_cast<Handle>(mod), count);
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  if (!functions) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const Handle module = reinterpret_cast<Handle>(mod);
  uint32_t count;
  if (CUresult r = session->modules.FunctionCount(module, &count)) return r;
  for (uint32_t i = 0; i < std::min(count, numFunctions); ++i) {
    std::string name;
    Handle h;
    if (CUresult r = session->modules.FunctionName(*session, module, i, &name)) return r;
    if (CUresult r = session->modules.GetFunction(*session, module, name, &h)) return r;
    functions[i] = reinterpret_cast<CUfunction>(h);
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->modules.GetGlobal(*session, reinterpret_cast<Handle>(hmod), name, dptr, bytes);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

}  // extern "C"
