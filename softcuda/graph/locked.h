// How every call about graphs begins: with the lock of Graphs. Any thread.
#pragma once

#include <mutex>
#include <utility>

#include "softcuda/call.h"

namespace cuplex::softcuda {

/// f(Graphs&), where the driver runs.
template <typename F>
CUresult InGraphs(F&& f) noexcept {
  return InDriver([&](Driver& driver) -> CUresult {
    std::lock_guard guard(driver.graphs.lock);
    return f(driver.graphs);
  });
}

/// f(Context&, Graphs&), where there is a current context too.
template <typename F>
CUresult InGraphContext(F&& f) noexcept {
  return InContext([&](Context& context) -> CUresult {
    Graphs& graphs = context.driver.graphs;
    std::lock_guard guard(graphs.lock);
    return f(context, graphs);
  });
}

/// Edges that are more than "after": programmatic launches, which are not carried.
inline CUresult CheckEdges(const CUgraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) {
    if (edges[i].from_port || edges[i].to_port || edges[i].type) {
      Log().warn("softcuda: edges of graphs with ports or types are not carried");
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
