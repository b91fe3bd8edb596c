// Launches.
#include <algorithm>
#include <cstring>
#include <memory>

#include "softcuda/exports.h"
#include "softcuda/occupancy.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

struct Shape {
  std::array<uint32_t, 3> grid, block;
  uint32_t dynamic_shared;
};

CUresult CodeOf(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::kAssert:
      return CUDA_ERROR_ASSERT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

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
    // Grid-wide barriers count in the workspace from zero.
    if (workspace) std::memset(reinterpret_cast<void*>(workspace), 0, kPage);
    Launch launch;
    launch.kernel = kernel;
    launch.grid = shape.grid;
    launch.block = shape.block;
    launch.dynamic_shared = shape.dynamic_shared;
    launch.params = {params(), param_bytes};
    launch.grid_id = context->device.NextGrid();
    launch.cooperative_workspace = workspace;
    launch.text = &context->text;
    launch.heap = context->heap();
    launch.textures = &context->textures.table();
    auto outcome = context->device.workers().Run(launch, &stream.control);
    if (Driver::text_receiver.load(std::memory_order_relaxed)) context->GiveText();
    if (!outcome.ok()) {
      Log().warn("{}", outcome.error().sentence);
      context->Fail(outcome.error().blame == Blame::kExhausted ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                               : CUDA_ERROR_LAUNCH_FAILED);
    } else if (*outcome) {
      Log().warn("{}", (**outcome).Sentence());
      context->Fail(CodeOf((**outcome).kind));
    }
    return Progress::kDone;
  }
};

CUresult CheckShape(const Shape& shape) {
  constexpr std::array<uint32_t, 3> kMostBlocks = {INT32_MAX, 65535, 65535}, kMostThreads = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (!shape.grid[i] || !shape.block[i] || shape.grid[i] > kMostBlocks[i] ||
        shape.block[i] > kMostThreads[i]) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return shape.block[0] * shape.block[1] * shape.block[2] > kMaxThreadsPerBlock ? CUDA_ERROR_INVALID_VALUE
                                                                                : CUDA_SUCCESS;
}

CUresult CheckAgainst(const Function& function, const Shape& shape) {
  const KernelInfo& info = function.info;
  if (info.reqntid[0] && info.reqntid != shape.block) return CUDA_ERROR_INVALID_VALUE;
  if (shape.block[0] * shape.block[1] * shape.block[2] > info.max_threads)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (shape.dynamic_shared > function.settings.MaxDynamicShared(info)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// `extra` is a list of name, value, name, value, ..., end: one buffer with all parameters.
CUresult ReadExtra(void** extra, const void** buffer, size_t* size) {
  size_t* size_at = nullptr;
  for (int i = 0; i < 16; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_END) {
      if (!*buffer || !size_at) return CUDA_ERROR_INVALID_VALUE;
      *size = *size_at;
      return CUDA_SUCCESS;
    }
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size_at = static_cast<size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult ReadParams(const KernelInfo& info, void** params, void** extra, Grid* grid) {
  grid->param_bytes = info.param_bytes;
  if (!info.param_bytes) return CUDA_SUCCESS;
  if (!params == !extra) return CUDA_ERROR_INVALID_VALUE;
  if (info.param_bytes > Grid::kInline) grid->large.reset(new std::byte[info.param_bytes]);
  if (extra) {
    const void* buffer = nullptr;
    size_t size = 0;
    if (CUresult wrong = ReadExtra(extra, &buffer, &size)) return wrong;
    // A buffer may stop at the end of its last parameter, or be padded after it.
    if (size < info.params.back().offset + info.params.back().size) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(grid->params(), buffer, std::min<size_t>(size, info.param_bytes));
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < info.params.size(); ++i) {
    if (!params[i]) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(grid->params() + info.params[i].offset, params[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

// Gives the stream memory for the barrier of its cooperative grids, which follow one another, so one is
// enough.
CUresult MakeWorkspace(Context& context, Stream& stream) {
  Block want;
  want.kind = Block::Kind::kModule;
  want.size = kPage;
  want.device = &context.device;
  want.context = &context;
  uintptr_t base;
  if (CUresult failed = context.driver.memory.Allocate(std::move(want), &base)) return failed;
  std::lock_guard guard(context.lock);
  bool live = HandleTable<Stream>::IsLive(&stream);
  if (live && !stream.workspace) {
    stream.workspace = base;
  } else {
    (void)context.driver.memory.Free(base, 1u << static_cast<unsigned>(Block::Kind::kModule));
  }
  return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult LaunchGrid(CUfunction handle, const Shape& shape, CUstream stream, void** params, void** extra,
                    bool cooperative) {
  return InContext([&](Context& current) -> CUresult {
    if (CUresult wrong = CheckShape(shape)) return wrong;
    Grid grid;
    grid.shape = shape;
    grid.workspace = 0;
    Ref<Function> found;  // where the handle alone was not enough
    for (;;) {
      Submission submission(current, stream);
      if (submission.result) return submission.result;
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
        uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
        uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
        // What programs compute from occupancy, and never more than can make progress together.
        const int each = BlocksPerMultiprocessor(context.device, *function, threads, shape.dynamic_shared);
        const uint64_t most = static_cast<uint64_t>(std::max(each, 1));
        if (blocks > most * context.device.multiprocessors ||
            blocks >
                context.device.workers().ResidentBlocks(function->kernel, threads, shape.dynamic_shared)) {
          return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        }
      }
      if (CUresult wrong = ReadParams(function->info, params, extra, &grid)) return wrong;
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
