#include "client/process.h"

#include <cstdlib>
#include <mutex>
#include <string>

#include <pthread.h>

#include "base/log.h"

namespace cuplex::client {
namespace {

constexpr const char* kDefaultSocket = "/run/cuplex/cuplex.sock";

struct Root {
  std::mutex mutex;  // over attaching and detaching
  std::atomic<Session*> session{nullptr};
  std::atomic<uint64_t> attaches{0};
  std::atomic<bool> forked{false};  // this process is a child of one that had attached
  bool watches_forks = false;
};

// Never destroyed: threads may call while the program's static objects go.
Root& TheRoot() {
  static Root* root = new Root;
  return *root;
}

void AfterForkInChild() {
  Root& root = TheRoot();
  // The session's memory is not mapped here (MADV_DONTFORK), its locks may be held by threads that do not
  // exist.
  if (Session* session = root.session.exchange(nullptr)) {
    session->LeaveToParent();
    root.forked.store(true);
  }
}

}  // namespace

CUresult Initialize() {
  Root& root = TheRoot();
  if (root.session.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  if (root.forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard lock(root.mutex);
  if (root.session.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  const char* path = std::getenv("CUPLEX_SOCKET");
  auto session = Session::Attach(path && *path ? path : kDefaultSocket);
  if (!session.ok()) {
    Log().error("{}", session.error().sentence);
    return static_cast<CUresult>(session.error().driver_code);
  }
  if (!root.watches_forks) {
    pthread_atfork(nullptr, nullptr, AfterForkInChild);
    root.watches_forks = true;
  }
  root.attaches.fetch_add(1);
  root.session.store(session->release(), std::memory_order_release);
  return CUDA_SUCCESS;
}

void Detach() {
  Root& root = TheRoot();
  std::lock_guard lock(root.mutex);
  delete root.session.exchange(nullptr);
}

Session* Attached() { return TheRoot().session.load(std::memory_order_acquire); }

uint64_t AttachCount() { return TheRoot().attaches.load(std::memory_order_acquire); }

CUresult Enter(Session** out) {
  Session* session = Attached();
  if (!session) [[unlikely]]
    return CUDA_ERROR_NOT_INITIALIZED;
  if (session->gone()) [[unlikely]]
    return session->SayGone();
  Thread& thread = ThisThread();
  if (thread.in_host_function) [[unlikely]]
    return CUDA_ERROR_NOT_PERMITTED;
  if (const uint64_t attach = AttachCount(); thread.attach != attach) [[unlikely]] {
    thread.contexts.clear();
    thread.default_streams.clear();
    thread.attach = attach;
  }
  *out = session;
  return CUDA_SUCCESS;
}

CUresult EnterContext(Caller* caller) {
  if (CUresult r = Enter(&caller->session)) return r;
  Context* context = ThisThread().current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  caller->context = context;
  caller->number = context->number.load(std::memory_order_acquire);
  if (!caller->number) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return caller->session->submission().Sticky();
}

CUresult EnterDevice(Session** session, CUdevice device) {
  if (CUresult r = Enter(session)) return r;
  return (*session)->HasDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace cuplex::client
