// Work, as a program describes it: what can be checked before a node is made. Any thread.
#pragma once

#include <cstdint>

#include "client/launch.h"
#include "cuda/graph/graph.h"

namespace cuplex::client {

// The model of graphs is shared with softcuda.
using graph::AllocWork;
using graph::ChildWork;
using graph::CopyWork;
using graph::EmptyWork;
using graph::FillWork;
using graph::FreeWork;
using graph::Graph;
using graph::GraphNode;
using graph::HostWork;
using graph::KernelWork;
using graph::RecordWork;
using graph::TypeOf;
using graph::UserObject;
using graph::WaitWork;
using graph::Work;

/// A kernel's work out of what the program gives; its parameters are copied.
CUresult ReadKernel(const Caller& caller, const CUDA_KERNEL_NODE_PARAMS& given, uint32_t flags,
                    KernelWork* out);

}  // namespace cuplex::client
