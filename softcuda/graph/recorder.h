// How calls that put work into a stream write it down instead, where the stream is captured; and how what
// programs say of nodes is read. Any thread.
#pragma once

#include "cuda/graph/capture.h"
#include "softcuda/driver.h"
#include "softcuda/grid.h"

namespace cuplex::softcuda {

/// The captured stream of a submission, which it ends. Lives no longer than the submission.
class CapturedStream {
 public:
  explicit CapturedStream(Submission& submission)
      : context(submission.context()), stream(HandleTable<Stream>::Share(&submission.stream())) {
    submission.Release();
  }
  Context& context;
  const Ref<Stream> stream;

  CUresult Append(graph::Work work);
};

/// Reads a kernel's work; parameters are copied.
CUresult ReadKernelWork(Context& context, CUfunction handle, const Shape& shape, void** params, void** extra,
                        bool cooperative, graph::KernelWork* out);
CUresult CaptureKernel(CapturedStream& to, CUfunction handle, const Shape& shape, void** params, void** extra,
                       bool cooperative);

/// cuEventRecord and cuStreamWaitEvent, with their flags. `*taken`: captured, and done; else the call means
/// what it always does. A wait's stream need not be captured yet.
CUresult CaptureRecord(CapturedStream& to, Event& event, unsigned flags);
CUresult CaptureWait(CapturedStream& to, Event& event, unsigned flags, bool* taken);

/// Device memory for an allocation node; fills in params->dptr. Under the lock of Graphs.
CUresult MakeGraphMemory(Context& context, Graphs& graphs, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                         graph::AllocWork* out);

CUresult CaptureAlloc(CapturedStream& to, size_t bytes, CUdeviceptr* address);

}  // namespace cuplex::softcuda
