#include <algorithm>

#include "client/context.h"
#include "client/session.h"

namespace cuplex::client {

ContextTable::ContextTable(int devices) {
  for (int d = 0; d < devices; ++d) {
    auto context = std::make_unique<Context>();
    context->device = d;
    context->primary = true;
    contexts_.push_back(std::move(context));
  }
}

Context* ContextTable::Find(CUcontext context) {
  std::lock_guard lock(mutex_);
  for (auto& c : contexts_)
    if (c->handle() == context) return c.get();
  return nullptr;
}

Context* ContextTable::FindNumber(uint32_t number) {
  std::lock_guard lock(mutex_);
  for (auto& c : contexts_)
    if (c->number.load() == number) return c.get();
  return nullptr;
}

CUresult ContextTable::Begin(Session& session, Context* context) {
  const uint32_t number = next_number_++;
  wire::wireContextCreateReply reply;
  const wire::wireContextCreateArgs args(number, context->device, context->flags.load());
  if (CUresult r = session.submission().Ask(Op::wireContextCreate, number, args, &reply)) return r;
  context->number.store(number, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult ContextTable::End(Session& session, Context* context) {
  const uint32_t number = context->number.exchange(0);
  if (!number) return CUDA_SUCCESS;
  // With a primary one those go that stand for it.
  for (auto& other : contexts_)
    if (other->number.load() == number) other->number.store(0);
  session.ForgetContext(number);
  wire::wireContextDestroyReply reply;
  return session.submission().Ask(Op::wireContextDestroy, number, wire::wireContextDestroyArgs(number),
                                  &reply);
}

CUresult ContextTable::Create(Session& session, int device, unsigned flags, unsigned api_version,
                              Context** out) {
  auto context = std::make_unique<Context>();
  context->device = device;
  context->flags = flags;
  context->api_version = api_version;
  std::lock_guard lock(mutex_);
  if (CUresult r = Begin(session, context.get())) return r;
  *out = context.get();
  contexts_.push_back(std::move(context));
  return CUDA_SUCCESS;
}

CUresult ContextTable::Destroy(Session& session, Context* context) {
  std::lock_guard lock(mutex_);
  if (context->primary || context->green() || !context->number.load()) return CUDA_ERROR_INVALID_CONTEXT;
  return End(session, context);
}

CUresult ContextTable::CreateGreen(Session& session, int device, unsigned multiprocessors, Context** out) {
  Context* primary;
  if (CUresult r = RetainPrimary(session, device, &primary)) return r;
  auto context = std::make_unique<Context>();
  context->device = device;
  context->green_multiprocessors = multiprocessors;
  std::lock_guard lock(mutex_);
  context->number.store(primary->number.load());
  *out = context.get();
  contexts_.push_back(std::move(context));
  return CUDA_SUCCESS;
}

CUresult ContextTable::DestroyGreen(Session& session, Context* context) {
  {
    std::lock_guard lock(mutex_);
    // Where the primary context has been reset, so have those who retained it.
    if (!context->number.exchange(0)) return CUDA_SUCCESS;
  }
  return ReleasePrimary(session, context->device);
}

CUresult ContextTable::RetainPrimary(Session& session, int device, Context** out) {
  std::lock_guard lock(mutex_);
  Context* context = contexts_[device].get();
  if (!context->number.load())
    if (CUresult r = Begin(session, context)) return r;
  ++context->retains;
  *out = context;
  return CUDA_SUCCESS;
}

CUresult ContextTable::ReleasePrimary(Session& session, int device) {
  std::lock_guard lock(mutex_);
  Context* context = contexts_[device].get();
  if (context->retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->retains) return CUDA_SUCCESS;
  return End(session, context);
}

CUresult ContextTable::ResetPrimary(Session& session, int device) {
  std::lock_guard lock(mutex_);
  contexts_[device]->retains = 0;
  return End(session, contexts_[device].get());  // the next retain begins it anew, empty
}

CUresult ContextTable::SetPrimaryFlags(int device, unsigned flags) {
  std::lock_guard lock(mutex_);
  contexts_[device]->flags.store(flags);
  return CUDA_SUCCESS;
}

void ContextTable::PrimaryState(int device, unsigned* flags, bool* active) {
  std::lock_guard lock(mutex_);
  *flags = contexts_[device]->flags.load();
  *active = contexts_[device]->number.load() != 0;
}

}  // namespace cuplex::client
