#include "client/thread.h"

#include <memory>

#include <pthread.h>

#include "client/process.h"

namespace cuplex::client {
namespace {

// A plain pointer in the static TLS block costs one instruction to read; a thread's end is told through the
// key, whose destructor, unlike a thread_local object's, does not run for the main thread during exit().
thread_local Thread* t_thread __attribute__((tls_model("initial-exec"))) = nullptr;

void EndThread(void* p) {
  std::unique_ptr<Thread> thread(static_cast<Thread*>(p));
  t_thread = nullptr;
  Session* session = Attached();
  if (!session || thread->attach != AttachCount() || session->gone()) return;
  for (auto [context, stream] : thread->default_streams) session->streams.Destroy(*session, stream);
}

Thread& BeginThread() {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    pthread_key_create(&k, EndThread);
    return k;
  }();
  t_thread = new Thread;
  pthread_setspecific(key, t_thread);
  return *t_thread;
}

}  // namespace

void Thread::SetCurrent(Context* context) {
  if (!contexts.empty()) contexts.pop_back();
  if (context) contexts.push_back(context);
}

Thread& ThisThread() {
  if (t_thread) [[likely]]
    return *t_thread;
  return BeginThread();
}

}  // namespace cuplex::client
