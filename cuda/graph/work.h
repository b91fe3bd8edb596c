// Work: what a node of a graph does, as data. Whoever has the node's graph.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "cuda/driver_types.h"

namespace cuplex::graph {

struct Graph;

struct KernelWork {
  struct Parameter {
    uint32_t offset, size;  // bytes
  };
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t shared_bytes = 0;
  std::vector<std::byte> parameters;  // as the kernel lays them out
  std::vector<Parameter> layout;
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
  std::vector<void*> shown;  // what a query answers: where in `parameters` each lies

  bool cooperative() const {
    auto at = attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return at != attributes.end() && at->second.cooperative;
  }
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

/// Device memory of an allocation node: there from when the node is made until nobody has it any more.
struct Memory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  int device = 0;
  bool allocated = false;         // a launch has allocated it, and nothing has freed it since
  std::function<void()> release;  // gives it back; called once, on any thread

  Memory() = default;
  ~Memory() {
    if (release) release();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<Memory> memory;
};
struct FreeWork {
  std::shared_ptr<Memory> memory;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, RecordWork, WaitWork,
                          ChildWork, AllocWork, FreeWork>;

CUgraphNodeType TypeOf(const Work& work);
/// Whether a kernel node can have the attribute with this value.
CUresult CheckAttribute(CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue& value);

}  // namespace cuplex::graph
