#include "client/graph/work.h"

#include <utility>

#include "client/exports.h"

namespace cuplex::client {

CUgraphNodeType TypeOf(const Work& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                        CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
                                        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH,
                                        CU_GRAPH_NODE_TYPE_MEM_ALLOC,  CU_GRAPH_NODE_TYPE_MEM_FREE};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

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
  out->shape = shape;
  out->parameters.resize(launch.bytes);
  launch.Gather(out->parameters.data());
  out->layout = launch.function->parameters;
  if (flags & kCooperative) out->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  return CUDA_SUCCESS;
}

}  // namespace cuplex::client
