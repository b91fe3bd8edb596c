// Launches: checked, their parameters gathered into the ring, and never waited for.
#include "client/launch.h"

#include <cstring>

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {
namespace {

CUresult CheckShape(const LaunchShape& shape, const LaunchLimits& limits, const FunctionFacts& facts) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] - 1 >= limits.grid[i] || shape.block[i] - 1 >= limits.block[i])
      return CUDA_ERROR_INVALID_VALUE;  // zero wraps, and is too large as well
    threads *= shape.block[i];
  }
  if (threads > limits.threads) return CUDA_ERROR_INVALID_VALUE;
  if (facts.max_threads_per_block > 0 && threads > static_cast<uint32_t>(facts.max_threads_per_block))
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  int dynamic_shared;
  (void)FunctionAttribute(facts, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &dynamic_shared);
  return shape.shared_bytes > static_cast<uint32_t>(dynamic_shared) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// The buffer of a launch that brings its parameters in one piece.
CUresult ReadExtra(void** extra, const void** buffer, size_t* bytes) {
  *buffer = nullptr;
  *bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
      *bytes = *static_cast<size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult PrepareLaunch(const Caller& caller, CUfunction f, const LaunchShape& shape, Handle stream,
                       uint32_t flags, void** params, void** extra, PreparedLaunch* out) {
  Function* function;
  Handle handle;
  if (CUresult r = ResolveFunction(caller, f, &function, &handle)) return r;
  const LaunchLimits& limits = caller.session->device(caller.context->device).limits;
  if (CUresult r = CheckShape(shape, limits, function->facts)) return r;
  const uint32_t bytes = function->facts.parameter_bytes;
  if (params && extra) return CUDA_ERROR_INVALID_VALUE;
  out->buffer = nullptr;
  if (extra) {
    size_t given;
    if (CUresult r = ReadExtra(extra, &out->buffer, &given)) return r;
    if (bytes > 0 && (!out->buffer || given < bytes)) return CUDA_ERROR_INVALID_VALUE;
  } else if (!function->parameters.empty() && !params) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out->function = function;
  out->params = params;
  out->bytes = bytes;
  out->args =
      wire::wireLaunchArgs(handle, stream, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                           shape.block[1], shape.block[2], shape.shared_bytes, flags, bytes);
  return CUDA_SUCCESS;
}

void PreparedLaunch::Gather(std::byte* to) const {
  if (buffer) {
    std::memcpy(to, buffer, bytes);
    return;
  }
  uint32_t end = 0;
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    const FunctionParameter p = function->parameters[i];
    if (p.offset > end) std::memset(to + end, 0, p.offset - end);  // no old bytes between them
    std::memcpy(to + p.offset, params[i], p.size);
    end = p.offset + p.size;
  }
}

namespace {

CUresult Launch(CUfunction f, const LaunchShape& shape, CUstream stream, uint32_t flags, void** params,
                void** extra) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureLaunch(caller, stream, f, shape, flags, params, extra, &captured)) return captured;
  }
  Submission& submission = caller.session->submission();
  if (CUresult r = submission.TakeDeferred()) return r;
  Handle wire_stream;
  if (CUresult r = ResolveStream(caller, stream, &wire_stream)) return r;
  PreparedLaunch launch;
  if (CUresult r = PrepareLaunch(caller, f, shape, wire_stream, flags, params, extra, &launch)) return r;
  return submission.Post(Op::wireLaunch, caller.number, launch.args, launch.bytes,
                         [&](std::byte* to) { launch.Gather(to); });
}

/// What the attributes of cuLaunchKernelEx come to.
struct Extras {
  uint32_t flags = 0;
  CUevent record = nullptr;  // to be recorded behind the launch
};

CUresult ReadAttributes(const CUlaunchConfig& config, Extras* out) {
  if (config.numAttrs && !config.attrs) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (value.cooperative) out->flags |= kCooperative;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (value.clusterDim.x > 1 || value.clusterDim.y > 1 || value.clusterDim.z > 1)
          return CUDA_ERROR_NOT_SUPPORTED;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:  // these may come no later than they would have to
        out->record = value.programmaticEvent.event;
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        out->record = value.launchCompletionEvent.event;
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (value.deviceUpdatableKernelNode.deviceUpdatable) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      default:
        break;  // leave to overlap, and hints
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return Launch(f, {{gx, gy, gz}, {bx, by, bz}, sharedMemBytes}, hStream, 0, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                   unsigned int bx, unsigned int by, unsigned int bz,
                                   unsigned int sharedMemBytes, CUstream hStream, void** kernelParams) {
  return Launch(f, {{gx, gy, gz}, {bx, by, bz}, sharedMemBytes}, hStream, kCooperative, kernelParams,
                nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  Extras extras;
  if (CUresult r = ReadAttributes(*config, &extras)) return r;
  const LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes};
  if (CUresult r = Launch(f, shape, config->hStream, extras.flags, kernelParams, extra)) return r;
  return extras.record ? cuEventRecord(extras.record, config->hStream) : CUDA_SUCCESS;
}

}  // extern "C"
