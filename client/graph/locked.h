// Locked: how every call about graphs begins: with the lock of Graphs. Any thread.
#pragma once

#include <mutex>

#include "client/graph/graphs.h"
#include "client/process.h"

namespace cuplex::client {

/// A call that has the graphs to itself.
struct Locked {
  Session* session = nullptr;
  Graphs* graphs = nullptr;
  std::unique_lock<std::mutex> lock;

  CUresult Enter() {
    if (CUresult r = client::Enter(&session)) return r;
    graphs = &session->graphs;
    lock = std::unique_lock(graphs->mutex);
    return CUDA_SUCCESS;
  }
};

/// The same with a current context.
struct LockedCaller : Caller {
  Graphs* graphs = nullptr;
  std::unique_lock<std::mutex> lock;

  CUresult Enter() {
    if (CUresult r = EnterContext(this)) return r;
    graphs = &session->graphs;
    lock = std::unique_lock(graphs->mutex);
    return CUDA_SUCCESS;
  }
};

}  // namespace cuplex::client
