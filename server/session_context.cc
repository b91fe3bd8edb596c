// The calls of a session that concern contexts: making and destroying them, their limits, waiting for all of
// one.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {

Outcome Session::wireContextCreate(const CallFrame& frame, const wire::wireContextCreateArgs& args,
                                   wire::wireContextCreateReply*) {
  const uint32_t number = args.context();
  if (number == 0 || contexts_.contains(number))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_VALUE);
  if (contexts_.size() >= kMostContexts) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (args.device() < 0 || static_cast<size_t>(args.device()) >= tenant_.sees.size())
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_DEVICE);
  const size_t device = tenant_.sees[static_cast<size_t>(args.device())];
  contexts_[number].device = device;
  auto made = std::make_shared<Result<Context::Parts>>(Context::Parts{});
  const bool first = contexts_.size() == 1;
  Post(
      false,
      [made, first, this, handle = house_.devices[device].handle,
       multiprocessors = house_.MultiprocessorsOf(tenant_, device)] {
        *made = Context::Make(house_.cu, house_.clock, handle, multiprocessors);
        if (!made->ok() || !first) return;
        // Copies from pinned memory are asynchronous. A driver that does not pin it copies all the same.
        if (house_.cu.cuCtxSetCurrent((*made)->driver) == CUDA_SUCCESS)
          (void)house_.cu.cuMemHostRegister_v2(segment_.staging(), segment_.staging_bytes(),
                                               CU_MEMHOSTREGISTER_PORTABLE);
        Context::Leave(house_.cu);
      },
      [made, this, number, device, slot = frame.slot] {
        const wire::wireContextCreateReply reply{};
        if (!made->ok()) {
          contexts_.erase(number);
          Log().warn("No context for process {} ({}): {}", client_.peer.pid, tenant_.name,
                     made->error().sentence);
          return Answer(slot, CodeOf(made->error()), reply);
        }
        contexts_[number].context =
            std::make_unique<Context>(house_.cu, house_.clock, *this, tenant_, *tenant_.holdings[device],
                                      house_.QueueFor(tenant_, device), **made);
        OwnContext& own = contexts_[number];
        own.text = house_.texts.Open(own.context->driver());
        texts_.push_back(own.text);
        if (texts_.size() > 2 * kMostContexts) texts_.erase(texts_.begin());
        TellSticky();
        Answer(slot, CUDA_SUCCESS, reply);
      });
  return Outcome::Later();
}

Outcome Session::wireContextDestroy(const CallFrame& frame, const wire::wireContextDestroyArgs& args,
                                    wire::wireContextDestroyReply*) {
  auto at = contexts_.find(args.context());
  if (at == contexts_.end() || !at->second.context)
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_CONTEXT);
  if (at->second.ending) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  EndContexts({args.context()}, [this, slot = frame.slot](CUresult code) {
    Answer(slot, code, wire::wireContextDestroyReply{});
  });
  return Outcome::Later();
}

Outcome Session::AnswerWhen(uint32_t slot, size_t reply_bytes,
                            const std::function<void(std::function<void(CUresult)>)>& when) {
  // Most often it is done already: then the answer is the call's own.
  struct Wait {
    bool returned = false;
    std::optional<CUresult> early;
  };
  auto wait = std::make_shared<Wait>();
  when([this, slot, reply_bytes, wait](CUresult code) {
    if (!wait->returned) {
      wait->early = code;
      return;
    }
    const std::vector<std::byte> payload(reply_bytes);
    TellText();
    CompleteSlot(segment_, slot, code, payload);
  });
  if (wait->early) {
    TellText();
    return *wait->early;
  }
  wait->returned = true;
  return Outcome::Later();
}

Outcome Session::cuCtxSynchronize(const CallFrame& frame, const wire::cuCtxSynchronizeArgs&,
                                  wire::cuCtxSynchronizeReply*) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  return AnswerWhen(frame.slot, sizeof(wire::cuCtxSynchronizeReply),
                    [&](auto done) { context->WhenAllDone(std::move(done)); });
}

// ----------------------------------------------------------------------------------- what kernels print

void Session::TellText() {
  for (const auto& box : texts_) {
    if (box->empty()) continue;
    segment_.header()->text_waiting.store(1, std::memory_order_release);
    return;
  }
}

Outcome Session::wireTakeText(const CallFrame&, const wire::wireTakeTextArgs& args,
                              wire::wireTakeTextReply* reply, std::string* text) {
  const size_t room = std::min<size_t>(args.text_bytes(), SlotCapacity(segment_) - sizeof(*reply));
  for (const auto& box : texts_) {
    if (box->empty() || !text->empty()) continue;
    TextBox::Piece piece = box->Take(room);
    reply->mutate_stream(static_cast<uint32_t>(piece.stream));
    *text = std::move(piece.text);
  }
  // Those of ended contexts are nobody's once they are empty.
  std::erase_if(texts_, [](const auto& box) { return box.use_count() == 1 && box->empty(); });
  const bool more = std::any_of(texts_.begin(), texts_.end(), [](const auto& box) { return !box->empty(); });
  reply->mutate_more(more ? 1 : 0);
  if (!more) segment_.header()->text_waiting.store(0, std::memory_order_release);
  return CUDA_SUCCESS;
}

namespace {

bool IsLimit(int32_t limit) { return limit >= 0 && limit < CU_LIMIT_MAX; }

}  // namespace

Outcome Session::cuCtxSetLimit(const CallFrame& frame, const wire::cuCtxSetLimitArgs& args,
                               wire::cuCtxSetLimitReply*) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  if (!IsLimit(args.limit())) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_UNSUPPORTED_LIMIT);
  if (CUresult code = context->Enter()) return code;
  const DriverTable& cu = house_.cu;
  const auto limit = static_cast<CUlimit>(args.limit());
  const bool heap = limit == CU_LIMIT_MALLOC_HEAP_SIZE;
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) {
    // What a driver keeps of it lies in this process.
    const size_t value = std::min<uint64_t>(args.value(), TextBox::kMost);
    contexts_.at(frame.context).text->SetMost(value);
    return cu.cuCtxSetLimit(limit, value);
  }
  if (!heap && limit != CU_LIMIT_STACK_SIZE) return cu.cuCtxSetLimit(limit, args.value());
  // These two are memory: the heap as it is, a stack for each thread that can be resident.
  OwnContext& own = contexts_.at(frame.context);
  const Device& device = house_.devices[own.device];
  uint64_t threads = 1;
  if (!heap)
    threads = static_cast<uint64_t>(device.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) *
              static_cast<uint64_t>(device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  auto& first = own.first_limit[heap ? 0 : 1];
  if (!first) {
    size_t value = 0;
    if (CUresult code = cu.cuCtxGetLimit(&value, limit)) return code;
    first = value;
  }
  const uint64_t more = args.value() > *first ? args.value() - *first : 0;
  if (more && threads > UINT64_MAX / more) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t& charged = own.limit_charge[heap ? 0 : 1];
  const uint64_t wanted = more * threads;
  if (wanted > charged && !context->holding().Charge(wanted - charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult code = cu.cuCtxSetLimit(limit, args.value());
  if (code) {
    if (wanted > charged) context->holding().Refund(wanted - charged);
    return code;
  }
  if (wanted < charged) context->holding().Refund(charged - wanted);
  charged = wanted;
  return CUDA_SUCCESS;
}

Outcome Session::cuCtxGetLimit(const CallFrame& frame, const wire::cuCtxGetLimitArgs& args,
                               wire::cuCtxGetLimitReply* reply) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  if (!IsLimit(args.limit())) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_UNSUPPORTED_LIMIT);
  if (CUresult code = context->Enter()) return code;
  size_t value = 0;
  const CUresult code = house_.cu.cuCtxGetLimit(&value, static_cast<CUlimit>(args.limit()));
  reply->mutate_pvalue(value);
  return code;
}

}  // namespace cuplex::server
