// What the generated exports (build/gen/client/exports.cc) call. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/graph/capture.h"
#include "client/process.h"
#include "cuda/driver_api.h"
#include "cuda/proc_table.h"
#include "protocol/calls_generated.h"
#include "protocol/ops.h"

namespace cuplex::client {

/// The answer of a call that is not carried; names it on standard error, once.
CUresult NotCarried(const char* name);

/// While one lives, the NULL stream of its thread is the thread's own default stream.
class PerThreadDefault {
 public:
  PerThreadDefault() { ++ThisThread().per_thread_default; }
  ~PerThreadDefault() { --ThisThread().per_thread_default; }
  PerThreadDefault(const PerThreadDefault&) = delete;
};

/// The number under which a program's stream travels; makes the thread's own default stream where that is
/// meant.
uint64_t WireStream(CUstream stream);

/// Forwards a call that needs no thought: asks in the current context, and tells of failed one-way calls.
template <typename Args, typename Reply>
CUresult Call(Op op, const Args& args, Reply* reply) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    // What waits for a stream, an event or a context cannot come back while its work is only written down.
    if constexpr (requires { args.h_stream(); })
      if (CUresult r = RefuseCapturedHandle(caller, args.h_stream())) return r;
    if constexpr (requires { args.h_event(); })
      if (CUresult r = RefuseCapturedEvent(caller, args.h_event())) return r;
    if (op == Op::cuCtxSynchronize)
      if (CUresult r = RefuseCapturedContext(caller)) return r;
  }
  Submission& submission = caller.session->submission();
  const CUresult result = submission.Ask(op, caller.number, args, reply);
  return result == CUDA_SUCCESS ? submission.TakeDeferred() : result;
}

/// Sorted by base name and version; see cuda/proc_table.h.
extern const ProcRow kProcRows[];
extern const size_t kProcRowCount;

}  // namespace cuplex::client
