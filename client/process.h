// The root of the library: the one session that a process has. Any thread.
//
// Every exported call begins with Enter or EnterContext.
#pragma once

#include <cstdint>

#include "client/context.h"
#include "client/session.h"
#include "client/thread.h"

namespace cuplex::client {

/// Attaches to the server if the process is not yet attached (cuInit). A refusal or an unreachable server is
/// said in one sentence and may be tried again.
CUresult Initialize();

/// Ends the session, so that Initialize makes a new one. No other thread is in a call.
void Detach();

/// The session; nullptr before Initialize and in a child after fork.
Session* Attached();

/// How often this process attached.
uint64_t AttachCount();

/// CUDA_SUCCESS and the session where calls can be made: it is attached, the server is there, and the thread
/// does not run a host function.
CUresult Enter(Session** session);

/// Who calls, and in which context.
struct Caller {
  Session* session = nullptr;
  Context* context = nullptr;
  uint32_t number = 0;  // of the context
};

/// Enter, and the thread has a current context that is alive and free of a fault.
CUresult EnterContext(Caller* caller);

/// Enter, and `device` is one.
CUresult EnterDevice(Session** session, CUdevice device);

}  // namespace cuplex::client
