// Linking: several PTX inputs become one image, which the module calls take. The image is PTX again.
#include <cstring>
#include <mutex>

#include "ptx/linker.h"
#include "ptx/parser.h"
#include "softcuda/exports.h"
#include "softcuda/jit/system_functions.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Create(unsigned count, CUjit_option* names, void** values, CUlinkState* out) {
  return InContext([&](Context& context) -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    JitOptions options;
    if (CUresult wrong = options.Read(count, names, values)) return wrong;
    Ref<PendingLink> link = context.driver.links.Make(&context, options);
    if (!link) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = reinterpret_cast<CUlinkState>(link.get());
    return CUDA_SUCCESS;
  });
}

template <typename F>
CUresult WithLink(CUlinkState state, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<PendingLink> link = context.driver.links.Find(state);
    if (!link) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard guard(link->lock);
    JitOptions::Timed timed(link->options);
    return f(context, *link);
  });
}

CUresult Add(CUlinkState state, CUjitInputType type, const void* data, size_t size, const char* name) {
  return WithLink(state, [&](Context& context, PendingLink& link) -> CUresult {
    if (!data || !size || !link.image.empty()) return CUDA_ERROR_INVALID_VALUE;
    if (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_NVVM) return CUDA_ERROR_NOT_SUPPORTED;
    // Kinds are told by their first bytes; what the caller says may be of an image that was linked before.
    std::string bytes(static_cast<const char*>(data), size);
    bytes.push_back(0);
    const Device& device = context.device;
    auto tree = ReadImage(bytes.data(), device.capability_major * 10 + device.capability_minor);
    std::string called = name && *name ? name : fmt::format("input {}", link.inputs.size() + 1);
    if (!tree.ok()) {
      Error error = tree.error();
      error.sentence = fmt::format("{}: {}", called, error.sentence);
      return RefuseImage(error, link.options);
    }
    link.inputs.push_back({std::move(called), **tree});
    return CUDA_SUCCESS;
  });
}

CUresult AddFile(CUlinkState state, CUjitInputType type, const char* path) {
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  auto bytes = ReadImageFile(path);
  if (!bytes.ok()) {
    return WithLink(state,
                    [&](Context&, PendingLink& link) { return RefuseImage(bytes.error(), link.options); });
  }
  return Add(state, type, bytes->data(), bytes->size() - 1, path);
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
  return Create(numOptions, options, optionValues, stateOut);
}
CUresult cuLinkCreate(unsigned int numOptions, CUjit_option* options, void** optionValues,
                      CUlinkState* stateOut) {
  return Create(numOptions, options, optionValues, stateOut);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int, CUjit_option*, void**) {
  return Add(state, type, data, size, name);
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned int, CUjit_option*, void**) {
  return Add(state, type, data, size, name);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                          CUjit_option*, void**) {
  return AddFile(state, type, path);
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int, CUjit_option*,
                       void**) {
  return AddFile(state, type, path);
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  return WithLink(state, [&](Context&, PendingLink& link) -> CUresult {
    if (!cubinOut || (link.inputs.empty() && link.image.empty())) return CUDA_ERROR_INVALID_VALUE;
    if (link.image.empty()) {
      auto text = ptx::Link(std::exchange(link.inputs, {}), IsSystemFunction);
      if (text.ok()) {
        if (auto parsed = ptx::Parse(*text); !parsed.ok()) text = parsed.error();
      }
      if (!text.ok()) {
        Error error = text.error();
        error.driver_code = CUDA_ERROR_INVALID_PTX;
        return RefuseImage(error, link.options);
      }
      link.image = *std::move(text);
      link.options.WriteInfo({});
    }
    *cubinOut = link.image.data();
    if (sizeOut) *sizeOut = link.image.size() + 1;  // its NUL included
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<PendingLink> link = driver.links.Find(state);
    return link && HandleTable<PendingLink>::Retire(link.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
