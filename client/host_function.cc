#include "client/host_function.h"

#include <csignal>
#include <utility>

#include "base/futex.h"
#include "client/exports.h"

namespace cuplex::client {
namespace {

constexpr int64_t kLookAgainNs = 200'000'000;  // for a server that is gone, and for Stop

}  // namespace

CUresult HostFunctions::Launch(Session& session, uint32_t context, Handle stream, std::function<void()> f) {
  uint64_t cookie;
  {
    std::lock_guard lock(mutex_);
    cookie = next_cookie_++;
    pending_.emplace(cookie, Pending{context, std::move(f)});
    if (!thread_.joinable()) {
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      thread_ = std::thread([this, &session] { Serve(session); });
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
  }
  const CUresult r =
      session.submission().Post(Op::wireHostFunc, context, wire::wireHostFuncArgs(stream, cookie));
  if (r) {
    std::lock_guard lock(mutex_);
    pending_.erase(cookie);
  }
  return r;
}

void HostFunctions::Stop(Session& session) {
  stop_.store(true);
  if (!thread_.joinable()) return;
  FutexWake(&session.segment().header()->inbox_bell, 1 << 20);
  thread_.join();
}

void HostFunctions::Serve(Session& session) {
  SegmentHeader* header = session.segment().header();
  uint64_t head = header->inbox_head.load(std::memory_order_relaxed);
  while (!stop_.load() && !session.gone()) {
    const uint32_t bell = header->inbox_bell.load(std::memory_order_acquire);
    const uint64_t tail = header->inbox_tail.load(std::memory_order_acquire);
    if (head == tail) {
      FutexWait(&header->inbox_bell, bell, kLookAgainNs);
      continue;
    }
    const uint64_t cookie = header->inbox[head % kInboxCount].load(std::memory_order_acquire);
    header->inbox_head.store(++head, std::memory_order_release);
    Run(session, cookie);
  }
}

void HostFunctions::Run(Session& session, uint64_t cookie) {
  Pending pending;
  {
    std::lock_guard lock(mutex_);
    auto it = pending_.find(cookie);
    if (it == pending_.end()) return;
    pending = std::move(it->second);
    pending_.erase(it);
  }
  Thread& thread = ThisThread();
  thread.in_host_function = true;
  pending.call();
  thread.in_host_function = false;
  // A server that is gone holds no stream.
  (void)session.submission().Post(Op::wireHostFuncDone, pending.context, wire::wireHostFuncDoneArgs(cookie));
}

}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  return caller.session->host_functions.Launch(*caller.session, caller.number, stream,
                                               [fn, userData] { fn(userData); });
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  Session* session = caller.session;
  return session->host_functions.Launch(*session, caller.number, stream,
                                        [=] { callback(hStream, session->submission().Sticky(), userData); });
}

}  // extern "C"
