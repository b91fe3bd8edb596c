// Capture: streams whose calls become nodes of a graph instead of going to the server.
//
// Every call that puts work into a stream asks `Capturing` first, which is one load where nothing is
// captured. The functions below then say whether the call is answered by them (true): the stream is being
// captured, or may not be used while others are.
#pragma once

#include <cstdint>
#include <vector>

#include "client/graph/graphs.h"
#include "client/process.h"

namespace cuplex::client {

inline bool Capturing(const Caller& caller) { return caller.session->graphs.capturing(); }

bool CaptureWork(const Caller& caller, CUstream stream, Work work, CUresult* out);
bool CaptureLaunch(const Caller& caller, CUstream stream, CUfunction f, const LaunchShape& shape,
                   uint32_t flags, void** params, void** extra, CUresult* out);
/// `waits`: the call is a synchronous one.
bool CaptureCopy(const Caller& caller, CUstream stream, const CUDA_MEMCPY3D& copy, bool waits, CUresult* out);
bool CaptureFill(const Caller& caller, CUstream stream, const CUDA_MEMSET_NODE_PARAMS& fill, bool waits,
                 CUresult* out);
/// `flags`: those of cuEventRecordWithFlags and cuStreamWaitEvent.
bool CaptureRecord(const Caller& caller, CUstream stream, CUevent event, unsigned flags, CUresult* out);
bool CaptureWait(const Caller& caller, CUstream stream, CUevent event, unsigned flags, CUresult* out);
bool CaptureAlloc(const Caller& caller, CUstream stream, uint64_t bytes, CUdeviceptr* address, CUresult* out);
bool CaptureFree(const Caller& caller, CUstream stream, CUdeviceptr address, CUresult* out);

/// For calls that a captured stream, a captured event or any capture of the context forbids; it ends the
/// capture's hopes. CUDA_SUCCESS where nothing is in the way.
CUresult RefuseCaptured(const Caller& caller, CUstream stream);
CUresult RefuseCapturedHandle(const Caller& caller, Handle stream);
CUresult RefuseCapturedEvent(const Caller& caller, Handle event);
CUresult RefuseCapturedContext(const Caller& caller);
/// For calls that CUDA calls unsafe during captures of the thread's mode: they may wait for a device.
CUresult RefuseUnsafe(Session& session);
/// A stream is destroyed.
void LeaveCapture(Session& session, Handle stream);

/// Adds a node for memory that is allocated at once; under the lock.
CUresult AddAllocNode(const Caller& caller, Graphs& graphs, Graph& graph,
                      const std::vector<GraphNode*>& dependencies, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                      GraphNode** node);

}  // namespace cuplex::client
