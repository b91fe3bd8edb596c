// UserObject: something of the program's that lives as long as anybody holds a reference: the program,
// graphs, and what was instantiated from them. Any thread.
#pragma once

#include <atomic>

#include "cuda/driver_types.h"

namespace cuplex::client {

struct UserObject {
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  std::atomic<long> references{0};
};

/// nullptr for nothing of ours.
UserObject* FindUserObject(CUuserObject object);
CUresult CreateUserObject(CUhostFn destroy, void* data, unsigned references, CUuserObject* out);
void RetainUserObject(UserObject* object, unsigned count);
/// The last reference calls `destroy`, on this thread. False where there are not so many.
bool ReleaseUserObject(UserObject* object, unsigned count);

}  // namespace cuplex::client
