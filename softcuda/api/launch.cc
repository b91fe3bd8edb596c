// Launches.
#include <memory>

#include "softcuda/exports.h"
#include "softcuda/graph/recorder.h"
#include "softcuda/grid.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

// A grid on its way through a stream. The kernel stays: whoever unloads its module waits for the context.
struct Grid {
  static constexpr size_t kInline = 144;

  Context* context;
  Kernel* kernel;
  Shape shape;
  uint32_t param_bytes;
  CUdeviceptr workspace;               // of a cooperative launch, else 0
  std::unique_ptr<std::byte[]> large;  // parameters that do not fit below
  alignas(16) std::byte small[kInline];

  std::byte* params() { return large ? large.get() : small; }

  Progress operator()(Stream& stream) {
    RunGrid(*context, stream, kernel, shape, {params(), param_bytes}, workspace);
    return Progress::kDone;
  }
};

CUresult LaunchGrid(CUfunction handle, const Shape& shape, CUstream stream, void** params, void** extra,
                    bool cooperative) {
  return InContext([&](Context& current) -> CUresult {
    if (CUresult wrong = CheckShape(shape)) return wrong;
    Grid grid;
    grid.shape = shape;
    grid.workspace = 0;
    Ref<Function> found;  // where the handle alone was not enough
    for (;;) {
      Submission submission(current, stream, Submission::Captured::kTake);
      if (submission.result) return submission.result;
      if (submission.captured()) [[unlikely]] {
        CapturedStream to(submission);
        return CaptureKernel(to, handle, shape, params, extra, cooperative);
      }
      Context& context = submission.context();
      Function* function =
          current.driver.functions.Peek(found ? static_cast<void*>(found.get()) : handle, &context);
      if (found && !function) return CUDA_ERROR_INVALID_HANDLE;  // unloaded meanwhile
      if (!function) {
        if (Ref<LibraryKernel> kernel = current.driver.kernels.Find(handle)) {
          function = kernel->FunctionIn(current.driver.functions, context);
        }
      }
      if (!function || !function->PreparedFor(shape.block) ||
          (cooperative && !submission.stream().workspace) || (function->info.uses_heap && !context.heap())) {
        Ref<Stream> target = HandleTable<Stream>::Share(&submission.stream());
        submission.Release();
        if (CUresult failed = FindFunction(context, handle, &found)) return failed;
        if (CUresult failed = found->Prepare(shape.block)) return failed;
        if (found->info.uses_heap) {
          if (CUresult failed = context.MakeHeap()) return failed;
        }
        if (cooperative) {
          if (CUresult failed = MakeWorkspace(context, *target)) return failed;
        }
        continue;
      }
      if (CUresult wrong = CheckAgainst(*function, shape)) return wrong;
      if (cooperative) {
        grid.workspace = submission.stream().workspace;
        if (CUresult wrong =
                CheckCooperative(context.device, submission.stream().partition, *function, shape))
          return wrong;
      }
      const uint32_t bytes = function->info.param_bytes;
      grid.param_bytes = bytes;
      if (bytes > Grid::kInline && !grid.large) grid.large.reset(new std::byte[bytes]);
      if (CUresult wrong = ReadParams(function->info, params, extra, grid.params())) return wrong;
      grid.context = &context;
      grid.kernel = function->kernel;
      submission.Push(std::move(grid));
      return CUDA_SUCCESS;
    }
  });
}

// What an attribute of a launch asks for; CUDA_ERROR_NOT_SUPPORTED with the attribute's name in the log where
// ignoring it would change what the kernel does.
CUresult ReadAttribute(const CUlaunchAttribute& attribute, bool* cooperative) {
  auto refuse = [](const char* what) {
    Log().warn("cuLaunchKernelEx: softcuda does not carry {}", what);
    return CUDA_ERROR_NOT_SUPPORTED;
  };
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      *cooperative = attribute.value.cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& dim = attribute.value.clusterDim;
      bool one = dim.x <= 1 && dim.y <= 1 && dim.z <= 1;
      return one ? CUDA_SUCCESS
                 : refuse("clusters of more than one block (CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)");
    }
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return refuse("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT");
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return refuse("CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT");
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return attribute.value.deviceUpdatableKernelNode.deviceUpdatable
                 ? refuse("CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE")
                 : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
    // Permission to start before the kernel ahead has ended: starting after it is always right.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
  return LaunchGrid(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes},
                    hStream, kernelParams, extra, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  return LaunchGrid(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes},
                    hStream, kernelParams, nullptr, true);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (CUresult wrong = ReadAttribute(config->attrs[i], &cooperative)) return wrong;
  }
  return LaunchGrid(f,
                    {{config->gridDimX, config->gridDimY, config->gridDimZ},
                     {config->blockDimX, config->blockDimY, config->blockDimZ},
                     config->sharedMemBytes},
                    config->hStream, kernelParams, extra, cooperative);
}
