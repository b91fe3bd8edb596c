#include "server/link.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "protocol/link_request.h"
#include "server/context.h"
#include "server/driver_call.h"

namespace cuplex::server {
namespace {

constexpr size_t kMostLog = 4000;  // bytes, of each log

/// Options as the driver takes them; it may write into the values.
struct Options {
  std::vector<CUjit_option> names;
  std::vector<void*> values;

  void Add(CUjit_option name, void* value) {
    names.push_back(name);
    values.push_back(value);
  }
  void Add(std::span<const LinkOption> options) {
    for (const LinkOption& each : options)
      Add(static_cast<CUjit_option>(each.option), reinterpret_cast<void*>(uintptr_t{each.value}));
  }
  unsigned count() const { return static_cast<unsigned>(names.size()); }
  uint32_t Value(CUjit_option name) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(values[i]));
    return 0;
  }
};

CUresult AddAndComplete(const DriverTable& cu, CUlinkState state, const LinkRequest& request,
                        uint64_t most_bytes, Linked& linked) {
  for (const LinkInput& input : request.inputs) {
    Options options;
    options.Add(input.options);
    // The driver reads the bytes, and nothing else.
    void* data = const_cast<std::byte*>(input.data.data());
    const char* name = input.name.empty() ? nullptr : input.name.c_str();
    if (CUresult code = cu.cuLinkAddData_v2(state, input.type, data, input.data.size(), name, options.count(),
                                            options.names.data(), options.values.data()))
      return code;
  }
  void* image = nullptr;
  size_t bytes = 0;
  if (CUresult code = cu.cuLinkComplete(state, &image, &bytes)) return code;
  if (bytes > most_bytes) {
    linked.errors =
        fmt::format("The linked image has {} bytes, at most {} were expected.", bytes, most_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  linked.image.assign(static_cast<const char*>(image), bytes);
  return CUDA_SUCCESS;
}

}  // namespace

Linked LinkImages(const DriverTable& cu, CUcontext context, const std::string& bytes, uint64_t most_bytes) {
  Linked linked;
  auto request = DecodeLinkRequest(std::as_bytes(std::span(bytes)));
  if (!request.ok()) {
    linked.code = CodeOf(request.error());
    linked.errors = request.error().sentence;
    return linked;
  }
  std::string info(kMostLog, '\0'), errors(kMostLog, '\0');
  Options options;
  options.Add(request->options);
  options.Add(CU_JIT_INFO_LOG_BUFFER, info.data());
  options.Add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, reinterpret_cast<void*>(info.size()));
  options.Add(CU_JIT_ERROR_LOG_BUFFER, errors.data());
  options.Add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, reinterpret_cast<void*>(errors.size()));
  CUlinkState state = nullptr;
  linked.code = cu.cuCtxSetCurrent(context);
  if (!linked.code)
    linked.code = cu.cuLinkCreate_v2(options.count(), options.names.data(), options.values.data(), &state);
  if (!linked.code) {
    linked.code = AddAndComplete(cu, state, *request, most_bytes, linked);
    // What it leaves behind is the driver's, and no more than a link.
    if (CUresult code = cu.cuLinkDestroy(state))
      Log().warn("A link is not destroyed: cuLinkDestroy answered {}.", static_cast<int>(code));
  }
  Context::Leave(cu);
  linked.info = info.c_str();
  if (linked.errors.empty()) linked.errors = errors.c_str();
  linked.wall_time = options.Value(CU_JIT_WALL_TIME);
  linked.threads = options.Value(CU_JIT_THREADS_PER_BLOCK);
  return linked;
}

}  // namespace cuplex::server
