// Nodes that copy: boxes, lines, and symbols as either end.
#include "client/runtime/array.h"
#include "client/runtime/calls.h"
#include "client/runtime/copy.h"
#include "client/runtime/symbol.h"

namespace cuplex::runtime {
namespace {

/// A line of bytes as the driver's box.
cudaError_t DescribeLine(const DriverTable& cu, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                         CUDA_MEMCPY3D* copy) {
  if (!dst || !src) return cudaErrorInvalidValue;
  Direction direction;
  RUNTIME_TRY(DirectionOf(cu, dst, src, kind, &direction));
  *copy = {};
  copy->srcMemoryType = direction.from_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy->srcHost = direction.from_device ? nullptr : src;
  copy->srcDevice = direction.from_device ? Device(src) : 0;
  copy->srcPitch = bytes;
  copy->srcHeight = 1;
  copy->dstMemoryType = direction.to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy->dstHost = direction.to_device ? nullptr : dst;
  copy->dstDevice = direction.to_device ? Device(dst) : 0;
  copy->dstPitch = bytes;
  copy->dstHeight = 1;
  copy->WidthInBytes = bytes;
  copy->Height = 1;
  copy->Depth = 1;
  return cudaSuccess;
}

/// Where a described copy goes: a new node, a node, or a node of something instantiated.
struct NewNode {
  cudaGraphNode_t* node;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
  cudaError_t Take(const Entered& in, const CUDA_MEMCPY3D& copy) const {
    return AsError(
        in.driver->cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, in.context->handle));
  }
};
struct OldNode {
  cudaGraphNode_t node;
  cudaError_t Take(const Entered& in, const CUDA_MEMCPY3D& copy) const {
    return AsError(in.driver->cuGraphMemcpyNodeSetParams(node, &copy));
  }
};
struct ExecNode {
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaError_t Take(const Entered& in, const CUDA_MEMCPY3D& copy) const {
    return AsError(in.driver->cuGraphExecMemcpyNodeSetParams(exec, node, &copy, in.context->handle));
  }
};

template <typename Place>
cudaError_t GiveBox(const Place& place, const cudaMemcpy3DParms* given) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_MEMCPY3D copy;
    RUNTIME_TRY(Describe3D(*in.driver, given, &copy));
    return place.Take(in, copy);
  });
}

template <typename Place>
cudaError_t GiveLine(const Place& place, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_MEMCPY3D copy;
    RUNTIME_TRY(DescribeLine(*in.driver, dst, src, bytes, kind, &copy));
    return place.Take(in, copy);
  });
}

template <typename Place>
cudaError_t GiveToSymbol(const Place& place, const void* symbol, const void* src, size_t bytes, size_t offset,
                         cudaMemcpyKind kind) {
  if (!ReachesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, bytes, offset, [&](const DriverTable&, void* address) {
    return GiveLine(place, address, src, bytes, kind);
  });
}

template <typename Place>
cudaError_t GiveFromSymbol(const Place& place, void* dst, const void* symbol, size_t bytes, size_t offset,
                           cudaMemcpyKind kind) {
  if (!LeavesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, bytes, offset, [&](const DriverTable&, void* address) {
    return GiveLine(place, dst, address, bytes, kind);
  });
}

cudaMemcpyKind KindOf(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED)
    return cudaMemcpyDefault;
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

}  // namespace

cudaError_t GraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                               size_t count, const cudaMemcpy3DParms* params) {
  return GiveBox(NewNode{node, graph, dependencies, count}, params);
}

cudaError_t GraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count, void* dst,
                                 const void* src, size_t bytes, cudaMemcpyKind kind) {
  return GiveLine(NewNode{node, graph, dependencies, count}, dst, src, bytes, kind);
}

cudaError_t GraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count, const void* symbol,
                                       const void* src, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return GiveToSymbol(NewNode{node, graph, dependencies, count}, symbol, src, bytes, offset, kind);
}

cudaError_t GraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                         const cudaGraphNode_t* dependencies, size_t count, void* dst,
                                         const void* symbol, size_t bytes, size_t offset,
                                         cudaMemcpyKind kind) {
  return GiveFromSymbol(NewNode{node, graph, dependencies, count}, dst, symbol, bytes, offset, kind);
}

cudaError_t GraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!params) return cudaErrorInvalidValue;
    CUDA_MEMCPY3D kept{};
    RUNTIME_TRY(AsError(cu.cuGraphMemcpyNodeGetParams(node, &kept)));
    size_t src_texel = 1, dst_texel = 1;
    *params = {};
    if (kept.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
      params->srcArray = reinterpret_cast<cudaArray_t>(kept.srcArray);
      RUNTIME_TRY(TexelBytesOf(cu, params->srcArray, &src_texel));
    } else {
      void* from = kept.srcMemoryType == CU_MEMORYTYPE_HOST ? const_cast<void*>(kept.srcHost)
                                                            : Pointer(kept.srcDevice);
      params->srcPtr = {from, kept.srcPitch, kept.WidthInBytes, kept.srcHeight};
    }
    if (kept.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
      params->dstArray = reinterpret_cast<cudaArray_t>(kept.dstArray);
      RUNTIME_TRY(TexelBytesOf(cu, params->dstArray, &dst_texel));
    } else {
      void* to = kept.dstMemoryType == CU_MEMORYTYPE_HOST ? kept.dstHost : Pointer(kept.dstDevice);
      params->dstPtr = {to, kept.dstPitch, kept.WidthInBytes, kept.dstHeight};
    }
    params->srcPos = {kept.srcXInBytes / src_texel, kept.srcY, kept.srcZ};
    params->dstPos = {kept.dstXInBytes / dst_texel, kept.dstY, kept.dstZ};
    params->extent = {kept.WidthInBytes / (params->srcArray ? src_texel : dst_texel), kept.Height,
                      kept.Depth};
    params->kind = KindOf(kept);
    return cudaSuccess;
  });
}

cudaError_t GraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return GiveBox(OldNode{node}, params);
}

cudaError_t GraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t bytes,
                                       cudaMemcpyKind kind) {
  return GiveLine(OldNode{node}, dst, src, bytes, kind);
}

cudaError_t GraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* src,
                                             size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return GiveToSymbol(OldNode{node}, symbol, src, bytes, offset, kind);
}

cudaError_t GraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst, const void* symbol,
                                               size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return GiveFromSymbol(OldNode{node}, dst, symbol, bytes, offset, kind);
}

cudaError_t GraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                         const cudaMemcpy3DParms* params) {
  return GiveBox(ExecNode{exec, node}, params);
}

cudaError_t GraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* dst,
                                           const void* src, size_t bytes, cudaMemcpyKind kind) {
  return GiveLine(ExecNode{exec, node}, dst, src, bytes, kind);
}

cudaError_t GraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const void* symbol, const void* src, size_t bytes,
                                                 size_t offset, cudaMemcpyKind kind) {
  return GiveToSymbol(ExecNode{exec, node}, symbol, src, bytes, offset, kind);
}

cudaError_t GraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* dst,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind kind) {
  return GiveFromSymbol(ExecNode{exec, node}, dst, symbol, bytes, offset, kind);
}

}  // namespace cuplex::runtime
