// What programs say of a node, as work; nothing is changed. Any thread, under the lock of Graphs.
#pragma once

#include "softcuda/graph/recorder.h"

namespace cuplex::softcuda {

CUresult ReadKernelNode(Context& context, const CUDA_KERNEL_NODE_PARAMS* given, graph::Work* out);
CUresult ReadCopyNode(Context& context, const CUDA_MEMCPY3D* given, CUcontext of, graph::Work* out);
CUresult ReadFillNode(Context& context, const CUDA_MEMSET_NODE_PARAMS* given, CUcontext of, graph::Work* out);
CUresult ReadHostNode(const CUDA_HOST_NODE_PARAMS* given, graph::Work* out);
CUresult ReadEventNode(Context& context, CUevent event, bool record, graph::Work* out);
CUresult ReadChildNode(Graphs& graphs, CUgraph child, graph::Work* out);
CUresult ReadFreeNode(Graphs& graphs, CUdeviceptr address, graph::Work* out);
/// Any of these. CUDA_ERROR_NOT_SUPPORTED, with a line in the log, for nodes that softcuda does not carry.
CUresult ReadNode(Context& context, Graphs& graphs, const CUgraphNodeParams* given, graph::Work* out);

inline CUDA_KERNEL_NODE_PARAMS Widened(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

}  // namespace cuplex::softcuda
