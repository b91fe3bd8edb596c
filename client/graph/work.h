// Work: what a node of a graph does. Data; whoever has the node's graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "client/launch.h"
#include "cuda/driver_types.h"
#include "protocol/function_facts.h"

namespace cuplex::client {

struct Graph;
struct GraphMemory;

struct KernelWork {
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  LaunchShape shape{};
  std::vector<std::byte> parameters;  // as the kernel lays them out
  std::vector<FunctionParameter> layout;
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
  std::vector<void*> shown;  // what GetParams answers: where in `parameters` each lies
};
struct CopyWork {
  CUDA_MEMCPY3D copy{};
};
struct FillWork {
  CUDA_MEMSET_NODE_PARAMS fill{};
};
struct HostWork {
  CUhostFn fn = nullptr;
  void* data = nullptr;
};
struct RecordWork {
  CUevent event = nullptr;
};
struct WaitWork {
  CUevent event = nullptr;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;  // the node's own
};
struct EmptyWork {};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphMemory> memory;
};
struct FreeWork {
  std::shared_ptr<GraphMemory> memory;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, RecordWork, WaitWork,
                          ChildWork, AllocWork, FreeWork>;

CUgraphNodeType TypeOf(const Work& work);

/// A kernel's work out of what the program gives; its parameters are copied.
CUresult ReadKernel(const Caller& caller, const CUDA_KERNEL_NODE_PARAMS& given, uint32_t flags,
                    KernelWork* out);

}  // namespace cuplex::client
