#include "client/graph/work.h"

#include <algorithm>

#include "client/exports.h"

namespace cuplex::client {

CUresult ReadKernel(const Caller& caller, const CUDA_KERNEL_NODE_PARAMS& given, uint32_t flags,
                    KernelWork* out) {
  const CUfunction function = given.func ? given.func : reinterpret_cast<CUfunction>(given.kern);
  const LaunchShape shape{{given.gridDimX, given.gridDimY, given.gridDimZ},
                          {given.blockDimX, given.blockDimY, given.blockDimZ},
                          given.sharedMemBytes};
  PreparedLaunch launch;
  if (CUresult r = PrepareLaunch(caller, function, shape, 0, flags, given.kernelParams, given.extra, &launch))
    return r;
  out->function = function;
  out->context = caller.context->handle();
  std::copy_n(shape.grid, 3, out->grid.begin());
  std::copy_n(shape.block, 3, out->block.begin());
  out->shared_bytes = shape.shared_bytes;
  out->parameters.resize(launch.bytes);
  launch.Gather(out->parameters.data());
  out->layout.clear();
  for (const FunctionParameter& p : launch.function->parameters) out->layout.push_back({p.offset, p.size});
  if (flags & kCooperative) out->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  return CUDA_SUCCESS;
}

}  // namespace cuplex::client
