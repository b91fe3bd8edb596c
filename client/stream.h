// Streams of this process. Any thread.
#pragma once

#include <cstdint>

#include "client/object_table.h"
#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;
struct Caller;
struct Context;

struct Stream {
  uint32_t context = 0;  // number
  unsigned flags = 0;
  int priority = 0;
  Context* green = nullptr;  // that it was made in; nullptr: in none
};

class StreamTable {
 public:
  /// Costs no round trip. CUDA_ERROR_OUT_OF_MEMORY where there are too many.
  CUresult Create(Session& session, uint32_t context, unsigned flags, int priority, Handle* out,
                  Context* green = nullptr);
  CUresult Destroy(Session& session, Handle stream);
  Stream* Find(Handle stream) { return table_.Find(stream); }
  template <typename F>
  void ForEach(F f) {
    table_.ForEach(f);
  }
  /// Drops the streams of an ended context.
  void Forget(uint32_t context);

 private:
  ObjectTable<Stream> table_;
};

/// The calling thread's own default stream in its current context, made where it is not there yet.
CUresult PerThreadStream(const Caller& caller, Handle* out);

/// The number under which `stream` travels, for work that is put into it from the caller's context.
/// CUDA_ERROR_INVALID_HANDLE where it is no stream, or one of another context.
CUresult ResolveStream(const Caller& caller, CUstream stream, Handle* out);

}  // namespace cuplex::client
