#include "softcuda/call.h"

#include <algorithm>

namespace cuplex::softcuda {

namespace {
std::atomic<uint64_t> last_thread{0};
}  // namespace

Thread::Thread() : id(last_thread.fetch_add(1) + 1) {}

Thread& Thread::Here() {
  thread_local Thread here;
  return here;
}

Thread::~Thread() {
  if (!RunningDriver()) {
    // A child after fork: what the references point to is frozen, perhaps in the middle of a change.
    new std::pair(std::move(contexts), std::move(streams));
    return;
  }
  for (auto& own : streams) own.context->RetireStream(own.stream.get());
}

void Thread::SetCurrent(Current current) {
  if (contexts.empty()) {
    if (current.context) contexts.push_back(std::move(current));
    return;
  }
  contexts.back() = std::move(current);
  if (!contexts.back().context) contexts.pop_back();
}

Ref<Stream> Thread::StreamIn(Context& context) {
  for (auto& own : streams) {
    if (own.context.get() == &context) return own.stream;
  }
  std::erase_if(streams, [](const OwnStream& own) { return own.context->dead(); });
  Ref<Stream> stream = context.MakeStream(Stream::Kind::kBlocking, 0);
  if (stream) streams.push_back({HandleTable<Context>::Share(&context), stream});
  return stream;
}

}  // namespace cuplex::softcuda
