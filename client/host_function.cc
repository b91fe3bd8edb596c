#include "client/host_function.h"

#include <csignal>
#include <utility>

#include "base/futex.h"
#include "base/other_process.h"
#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {
namespace {

constexpr int64_t kLookAgainNs = 200'000'000;  // for a server that is gone, and for Stop

}  // namespace

uint64_t HostFunctions::AddLocked(Session& session, Pending pending) {
  const uint64_t cookie = next_cookie_++;
  pending_.emplace(cookie, std::move(pending));
  if (!thread_.joinable()) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this, &session] { Serve(session); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return cookie;
}

uint64_t HostFunctions::Keep(Session& session, uint32_t context, std::function<void()> f) {
  std::lock_guard lock(mutex_);
  return AddLocked(session, {context, std::make_shared<std::function<void()>>(std::move(f)), true, false, 0});
}

void HostFunctions::Expect(const std::vector<uint64_t>& cookies) {
  std::lock_guard lock(mutex_);
  for (uint64_t cookie : cookies)
    if (auto it = pending_.find(cookie); it != pending_.end()) ++it->second.expected;
}

void HostFunctions::Drop(const std::vector<uint64_t>& cookies) {
  std::vector<Pending> gone;  // ends outside of the lock
  std::lock_guard lock(mutex_);
  for (uint64_t cookie : cookies) {
    auto it = pending_.find(cookie);
    if (it == pending_.end()) continue;
    it->second.dropped = true;
    if (it->second.expected) continue;
    gone.push_back(std::move(it->second));
    pending_.erase(it);
  }
}

void HostFunctions::Forget(uint32_t context) {
  std::vector<Pending> gone;
  std::lock_guard lock(mutex_);
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    gone.push_back(std::move(it->second));
    it = pending_.erase(it);
  }
}

CUresult HostFunctions::Launch(Session& session, uint32_t context, Handle stream, std::function<void()> f) {
  uint64_t cookie;
  {
    std::lock_guard lock(mutex_);
    cookie =
        AddLocked(session, {context, std::make_shared<std::function<void()>>(std::move(f)), false, false, 0});
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
    AfterHearingBack();
    Run(session, cookie);
  }
}

void HostFunctions::Run(Session& session, uint64_t cookie) {
  std::shared_ptr<std::function<void()>> call;
  uint32_t context;
  {
    std::lock_guard lock(mutex_);
    auto it = pending_.find(cookie);
    if (it == pending_.end()) return;
    Pending& pending = it->second;
    context = pending.context;
    call = pending.call;
    if (pending.expected) --pending.expected;
    if (!pending.kept || (pending.dropped && !pending.expected)) pending_.erase(it);
  }
  Thread& thread = ThisThread();
  thread.in_host_function = true;
  (*call)();
  thread.in_host_function = false;
  // A server that is gone holds no stream.
  (void)session.submission().Post(Op::wireHostFuncDone, context, wire::wireHostFuncDoneArgs(cookie));
}

}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureWork(caller, hStream, HostWork{fn, userData}, &captured)) return captured;
  }
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
  if (Capturing(caller)) [[unlikely]]
    if (CUresult r = RefuseCaptured(caller, hStream)) return r;
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  Session* session = caller.session;
  return session->host_functions.Launch(*session, caller.number, stream,
                                        [=] { callback(hStream, session->submission().Sticky(), userData); });
}

}  // extern "C"
