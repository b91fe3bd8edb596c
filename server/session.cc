#include "server/session.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "base/log.h"
#include "protocol/decode.h"
#include "protocol/slot.h"
#include "protocol/staging.h"
#include "server/driver_call.h"

namespace cuplex::server {

Session::Session(House& house, Tenant& tenant, Client client, Segment segment, UniqueFd socket,
                 AddressSpace host_window, std::function<void(Session&)> ended)
    : house_(house),
      tenant_(tenant),
      client_(std::move(client)),
      segment_(std::move(segment)),
      socket_(std::move(socket)),
      ring_(segment_),
      ended_(std::move(ended)),
      host_space_(std::move(host_window)) {
  tenant_.sessions.push_back(this);
  tenant_.counters->sessions.Set(tenant_.sessions.size());
}

Session::~Session() {
  std::erase(tenant_.sessions, this);
  tenant_.counters->sessions.Set(tenant_.sessions.size());
}

// ------------------------------------------------------------------------------------------- the ring

int Session::Drain(int most) {
  int taken = 0;
  while (taken < most && !ending_) {
    if (host_funcs_out_ == 0 && queued() >= kManyQueued) break;
    auto frame = ring_.Next();
    if (frame.ok() && !*frame) break;
    Status handled = frame.ok() ? Handle(**frame) : Status(frame.error());
    if (!handled.ok()) {
      Log().warn("The session of process {} ({}) ends: {}", client_.peer.pid, tenant_.name,
                 handled.error().sentence);
      tenant_.counters->Refuse(metrics::Refusal::kFrame);
      End();
      break;
    }
    ++taken;
  }
  if (taken) ring_.Release();
  return taken;
}

Status Session::Handle(std::span<const std::byte> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof(header))
    return Fail(Blame::kCaller, "a frame has {} bytes, at least {} were expected.", bytes.size(),
                sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  TRY(CallFrame frame, CheckHeader(header, segment_.geometry().slot_count));
  CallReply reply;
  TRY(DecodeCall(frame, bytes.subspan(sizeof(header)), *this, &reply));
  if (frame.row->oneway) {
    // A failed context says so by itself, at its next call that replies.
    if (reply.outcome.result && !IsSticky(reply.outcome.result)) Deferred(reply.outcome.result);
  } else if (!reply.outcome.later) {
    CompleteSlot(segment_, frame.slot, reply.outcome.result, std::as_bytes(std::span(reply.payload)));
  }
  return {};
}

void Session::Deferred(CUresult code) {
  // What was dropped with its context is no failure that the client must hear of: it ended the context
  // itself.
  if (ending_ || code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return;
  int32_t none = CUDA_SUCCESS;
  segment_.header()->deferred_error.compare_exchange_strong(none, static_cast<int32_t>(code));
}

void Session::Faulted(Context& context, CUresult code) {
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return;
  Log().warn("A context of process {} ({}) has failed with code {}.", client_.peer.pid, tenant_.name,
             static_cast<int>(code));
  context.holding().counters().kernel_faults.Add();
  TellText();
  TellSticky();
}

void Session::Overran(Context& context) {
  context.holding().counters().kernel_timeouts.Add();
  Log().warn("A kernel of process {} ({}) ran for longer than the {} ms it may, and is ended.",
             client_.peer.pid, tenant_.name, tenant_.terms.max_kernel_ns / kMillisecondNs);
  auto end = [this, &context] {
    // As a job of the context, so that the context is not destroyed meanwhile.
    Post(
        true,
        [driver = context.GiveUpDriver(), &cu = house_.cu, &texts = house_.texts] {
          if (Status status = Context::Unmake(cu, driver); !status.ok())
            Log().error("A kernel that runs too long is not ended: {}", status.error().sentence);
          texts.Close(driver);
        },
        [] {});
  };
  context_jobs_ ? after_context_jobs_.push_back(end) : end();
}

void Session::TellSticky() {
  CUresult sticky = CUDA_SUCCESS;
  for (const auto& [number, own] : contexts_) {
    if (own.ending) continue;
    sticky = own.context ? own.context->fault() : CUDA_SUCCESS;
    if (!sticky) break;
  }
  segment_.header()->sticky_error.store(static_cast<int32_t>(sticky));
}

void Session::GiveHostFunc(uint64_t cookie) {
  ++host_funcs_out_;
  inbox_backlog_.push_back(cookie);
  FillInbox();
}

void Session::FillInbox() {
  SegmentHeader* header = segment_.header();
  bool any = false;
  while (!inbox_backlog_.empty()) {
    // The client says how much it has taken. If that makes no sense it gets nothing, and harms itself alone.
    if (inbox_tail_ - header->inbox_head.load(std::memory_order_acquire) >= kInboxCount) break;
    header->inbox[inbox_tail_ % kInboxCount].store(inbox_backlog_.front(), std::memory_order_relaxed);
    header->inbox_tail.store(++inbox_tail_, std::memory_order_release);
    inbox_backlog_.pop_front();
    any = true;
  }
  if (!any) return;
  header->inbox_bell.fetch_add(1, std::memory_order_seq_cst);
  FutexWake(&header->inbox_bell, 1 << 20);
}

std::byte* Session::Block(uint32_t block) {
  return segment_.staging() + static_cast<size_t>(block) * segment_.geometry().block_bytes;
}

void Session::BlockDone(uint32_t block, bool filled, CUresult code) {
  TellText();
  FinishBlock(segment_, block, filled ? StagingBlock::kDone : StagingBlock::kFree, code);
  if (code && !filled && !IsSticky(code)) Deferred(code);
}

// ------------------------------------------------------------------------------------------- finding things

Context* Session::Live(uint32_t number, CUresult* why) {
  auto at = contexts_.find(number);
  if (at == contexts_.end() || !at->second.context) {
    *why = Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_CONTEXT);
    return nullptr;
  }
  if (at->second.ending) {
    *why = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return nullptr;
  }
  if (CUresult fault = at->second.context->fault()) {
    *why = fault;
    return nullptr;
  }
  return at->second.context.get();
}

VirtualStream* Session::FindStream(const CallFrame& frame, uint64_t handle, CUresult* why) {
  if (handle == kLegacyStream) {
    Context* context = Live(frame.context, why);
    return context ? context->legacy() : nullptr;
  }
  OwnStream* own = streams_.Find(handle);
  if (!own) {
    *why = Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
  }
  return Live(own->context, why) ? own->stream : nullptr;
}

CUresult Session::Refuse(metrics::Refusal reason, CUresult code) {
  tenant_.counters->Refuse(reason);
  return code;
}

CUresult Session::Refuse(metrics::Refusal reason, CUresult code, std::string_view sentence) {
  Log().debug("A call of process {} ({}) is refused: {}", client_.peer.pid, tenant_.name, sentence);
  return Refuse(reason, code);
}

CUresult Session::Refuse(const Error& error) {
  return Refuse(error.blame == Blame::kExhausted ? metrics::Refusal::kLimit : metrics::Refusal::kArgument,
                CodeOf(error), error.sentence);
}

bool Session::TooManyQueued() { return queued() >= kMostQueued; }

bool Session::MayWait(int64_t now_ns, int64_t least_ns) const {
  if (contexts_.empty()) return false;
  return std::ranges::all_of(contexts_, [&](const auto& each) {
    const Context* context = each.second.context.get();
    return context && context->queue().Waits(*context) &&
           context->queue().BacklogNs(now_ns) > static_cast<uint64_t>(least_ns);
  });
}

std::vector<const Context*> Session::contexts() const {
  std::vector<const Context*> made;
  for (const auto& [number, own] : contexts_)
    if (own.context) made.push_back(own.context.get());
  return made;
}

size_t Session::queued() const {
  size_t sum = 0;
  for (const auto& [number, own] : contexts_)
    if (own.context) sum += own.context->queued();
  return sum;
}

uint64_t Session::memory_used() const {
  uint64_t sum = 0;
  for (const auto& [base, chunk] : chunks_) sum += chunk->piece.bytes;
  for (const auto& [base, allocation] : memory_.all())
    if (allocation.kind == Allocation::Kind::kPiece || allocation.kind == Allocation::Kind::kManaged)
      sum += allocation.piece.bytes;
  for (const auto& [number, own] : contexts_) sum += own.limit_charge[0] + own.limit_charge[1];
  const_cast<HandleTable<std::unique_ptr<OwnModule>>&>(modules_).ForEach(
      [&](uint64_t, std::unique_ptr<OwnModule>& module) { sum += module->charged; });
  const_cast<HandleTable<std::unique_ptr<OwnArray>>&>(arrays_).ForEach(
      [&](uint64_t, std::unique_ptr<OwnArray>& array) { sum += array->charged; });
  return sum;
}

bool Session::Empty() const {
  return contexts_.empty() && memory_.size() == 0 && chunks_.empty() && streams_.size() == 0 &&
         events_.size() == 0 && modules_.size() == 0 && functions_.size() == 0 && arrays_.size() == 0 &&
         links_.size() == 0 && graphs_.size() == 0 && textures_.empty() && jobs_ == 0 && frees_ == 0;
}

// ------------------------------------------------------------------------------------------- jobs and ends

void Session::Post(bool in_context, Jobs::Step work, Jobs::Step done) {
  ++jobs_;
  context_jobs_ += in_context;
  house_.jobs->Post(std::move(work), [this, in_context, done = std::move(done)] {
    context_jobs_ -= in_context;
    done();
    --jobs_;
    while (context_jobs_ == 0 && !after_context_jobs_.empty()) {
      auto next = std::move(after_context_jobs_.front());
      after_context_jobs_.pop_front();
      next();  // may be such a job itself
    }
    GoOnEnding();
  });
}

void Session::End() {
  if (ending_) return;
  ending_ = true;
  // What still waits for frees waits in vain: nobody is there to be answered.
  after_frees_.clear();
  house_.budget_waits.Forget(this);
  DropLinks();
  std::vector<uint32_t> numbers;
  for (auto& [number, own] : contexts_)
    if (own.context && !own.ending) numbers.push_back(number);
  ++jobs_;  // so that nothing is over half-way through
  EndContexts(std::move(numbers), [this](CUresult) { contexts_ended_ = true; });
  --jobs_;
  GoOnEnding();
}

void Session::GoOnEnding() {
  if (!ending_ || jobs_ || !contexts_ended_ || !ended_) return;
  // A context that was in the making when the client went, and what was mapped for it.
  std::vector<uint32_t> late;
  for (auto& [number, own] : contexts_)
    if (own.context && !own.ending) late.push_back(number);
  if (!late.empty()) return EndContexts(std::move(late), [](CUresult) {});
  if (!contexts_.empty()) return;  // the job of one that ends by itself is on its way
  auto ended = std::move(ended_);
  ended_ = nullptr;
  ended(*this);
}

void Session::EndContexts(std::vector<uint32_t> numbers, std::function<void(CUresult)> done) {
  for (uint32_t number : numbers) {
    OwnContext& own = contexts_.at(number);
    own.ending = true;
    own.context->Fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  if (context_jobs_) {
    after_context_jobs_.push_back(
        [this, numbers = std::move(numbers), done = std::move(done)] { DestroyContexts(numbers, done); });
    return;
  }
  DestroyContexts(std::move(numbers), std::move(done));
}

namespace {

/// What a job of DestroyContexts takes from the driver, and what the driver would not take back.
struct Estate {
  struct Part {
    Piece piece;
    size_t device = 0;
    bool returned = false;
  };
  std::vector<CUcontext> contexts;
  std::vector<Part> pieces;
  std::vector<std::pair<Allocation, size_t>> host;  // with the device
  CUresult result = CUDA_SUCCESS;
};

}  // namespace

void Session::DestroyContexts(std::vector<uint32_t> numbers, std::function<void(CUresult)> done) {
  auto estate = std::make_shared<Estate>();
  auto ends = [&](uint32_t number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  std::vector<uint64_t> gone;
  for (const auto& [base, a] : memory_.all()) {
    if (!ends(a.context)) continue;
    gone.push_back(base);
    if (a.kind == Allocation::Kind::kPiece)
      estate->pieces.push_back({a.piece, contexts_.at(a.context).device});
    if (a.on_host()) estate->host.emplace_back(a, contexts_.at(a.context).device);
  }
  for (uint64_t base : gone) memory_.Take(base);
  for (auto it = chunks_.begin(); it != chunks_.end();) {
    const uint32_t context = it->second->context;
    if (!ends(context)) {
      ++it;
      continue;
    }
    estate->pieces.push_back({it->second->piece, contexts_.at(context).device});
    it = chunks_.erase(it);
  }
  std::vector<uint64_t> handles;
  auto collect = [&](auto& table) {
    handles.clear();
    table.ForEach([&](uint64_t h, auto& own) {
      if constexpr (requires { own->context; }) {
        if (ends(own->context)) handles.push_back(h);
      } else {
        if (ends(own.context)) handles.push_back(h);
      }
    });
  };
  collect(streams_);
  for (uint64_t h : handles) streams_.Erase(h);
  collect(events_);
  for (uint64_t h : handles) {
    if (Mark* mark = events_.Find(h)->latest) Drop(mark);
    events_.Erase(h);
  }
  collect(graphs_);
  for (uint64_t h : handles) EraseGraph(h);
  collect(functions_);
  for (uint64_t h : handles) functions_.Erase(h);
  collect(modules_);
  for (uint64_t h : handles) {
    OwnModule& module = **modules_.Find(h);
    contexts_.at(module.context).context->holding().Refund(module.charged);
    modules_.Erase(h);
  }
  collect(arrays_);
  for (uint64_t h : handles) {
    OwnArray& array = **arrays_.Find(h);
    contexts_.at(array.context).context->holding().Refund(array.charged);
    arrays_.Erase(h);
  }
  std::erase_if(textures_, [&](const auto& texture) { return ends(std::get<0>(texture)); });
  for (uint32_t number : numbers) {
    OwnContext& own = contexts_.at(number);
    if (CUcontext driver = own.context->driver()) estate->contexts.push_back(driver);
    own.context.reset();
  }
  Post(
      false,
      [estate, &cu = house_.cu, &texts = house_.texts] {
        // A context first: whatever runs in it ends, and only then is its memory safe to take away.
        for (CUcontext context : estate->contexts)
          if (Status status = Context::Unmake(cu, context); !status.ok()) {
            Log().error("A context is not destroyed: {}", status.error().sentence);
            estate->result = CodeOf(status.error());
          }
        for (CUcontext context : estate->contexts) texts.Close(context);
        for (Estate::Part& part : estate->pieces) {
          Status status = UnmapPiece(cu, part.piece);
          part.returned = status.ok();
          if (!status.ok()) Log().error("Memory is lost: {}", status.error().sentence);
        }
        for (const auto& [a, device] : estate->host)
          munmap(reinterpret_cast<void*>(a.piece.base), a.piece.bytes);
      },
      [this, estate, numbers, done = std::move(done)] {
        for (const Estate::Part& part : estate->pieces)
          ReturnPiece(*tenant_.holdings[part.device], part.piece, part.returned);
        for (const auto& [a, device] : estate->host) ReturnHost(a, device);
        for (uint32_t number : numbers) {
          const OwnContext& own = contexts_.at(number);
          for (uint64_t charged : own.limit_charge) tenant_.holdings[own.device]->Refund(charged);
          TellText();
          contexts_.erase(number);
        }
        TellSticky();
        done(estate->result);
      });
}

}  // namespace cuplex::server
