// Contexts of this process, and the stack of current ones that each thread has. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;

/// A context object is never freed, so a CUcontext that is stale can be recognised as such.
struct Context {
  std::atomic<uint32_t> number{0};  // as the wire knows it; 0 while there is none behind this object
  int device = 0;
  bool primary = false;
  /// A green context is the device's primary one, under the same number, with this many multiprocessors; 0:
  /// it is none. See client/green_context.cc.
  unsigned green_multiprocessors = 0;
  bool green() const { return green_multiprocessors != 0; }
  std::atomic<unsigned> flags{0};
  unsigned api_version = 0;
  int retains = 0;  // primary: guarded by the table
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<int> shared_config{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};

  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
};

class ContextTable {
 public:
  explicit ContextTable(int devices);

  /// The context behind a pointer that came from a program; nullptr where it is none.
  Context* Find(CUcontext context);
  /// The context with this number; nullptr where it has ended.
  Context* FindNumber(uint32_t number);

  CUresult Create(Session& session, int device, unsigned flags, unsigned api_version, Context** out);
  /// Ends a context that is not primary.
  CUresult Destroy(Session& session, Context* context);

  /// A green context, which retains the primary one.
  CUresult CreateGreen(Session& session, int device, unsigned multiprocessors, Context** out);
  CUresult DestroyGreen(Session& session, Context* context);

  CUresult RetainPrimary(Session& session, int device, Context** out);
  CUresult ReleasePrimary(Session& session, int device);
  CUresult ResetPrimary(Session& session, int device);
  CUresult SetPrimaryFlags(int device, unsigned flags);
  void PrimaryState(int device, unsigned* flags, bool* active);

 private:
  CUresult Begin(Session& session, Context* context);
  CUresult End(Session& session, Context* context);

  std::mutex mutex_;
  uint32_t next_number_ = 1;
  std::vector<std::unique_ptr<Context>> contexts_;  // the devices' primary ones first, in order
};

}  // namespace cuplex::client
