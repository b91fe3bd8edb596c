#include "softcuda/context.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "softcuda/call.h"
#include "softcuda/driver.h"
#include "softcuda/green_context.h"
#include "softcuda/pause.h"

namespace cuplex::softcuda {
namespace {

// A submitter further ahead than this waits: a program that never synchronises must not fill memory.
constexpr uint64_t kMostPending = 16384;

constexpr size_t kPrintfFifo = size_t{1} << 20;

}  // namespace

Context::Context(Driver& driver, Device& device, Partition* part, unsigned flags, bool primary,
                 unsigned api_version, uint64_t id)
    : driver(driver),
      device(device),
      partition(part ? *part : device.whole()),
      primary(primary),
      api_version(api_version),
      id(id),
      flags(flags),
      textures(id),
      text(kPrintfFifo) {
  limits.fill(0);
  limits[CU_LIMIT_STACK_SIZE] = 1024;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = kPrintfFifo;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = size_t{8} << 20;
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  legacy_ = MakeStream(Stream::Kind::kLegacy, 0);
  if (!legacy_) throw std::bad_alloc();
}

Context::~Context() = default;

void Context::Fail(CUresult code) {
  int none = 0;
  fault_.compare_exchange_strong(none, code);
}

void Context::GiveAllText() {
  std::lock_guard guard(giving_text_);
  const Driver::TextReceiver* receiver = Driver::text_receiver.load(std::memory_order_acquire);
  for (const DeviceText::Piece& piece : text.Take()) {
    if (receiver) {
      receiver->receive(receiver->user, reinterpret_cast<CUcontext>(this), piece.stream, piece.text.data(),
                        piece.text.size());
    } else {
      std::fwrite(piece.text.data(), 1, piece.text.size(),
                  piece.stream == TextStream::kOutput ? stdout : stderr);
    }
  }
}

CUresult Context::MakeHeap() {
  if (heap()) return CUDA_SUCCESS;
  Block want;
  want.kind = Block::Kind::kModule;
  want.device = &device;
  want.context = this;
  std::lock_guard guard(lock);
  if (dead()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (heap()) return CUDA_SUCCESS;
  want.size = std::max<size_t>(limits[CU_LIMIT_MALLOC_HEAP_SIZE], kPage);
  const size_t size = want.size;
  uintptr_t base = 0;
  if (CUresult failed = driver.memory.Allocate(std::move(want), &base)) return failed;
  own_heap_ = std::make_unique<DeviceHeap>(base, size);
  heap_.store(own_heap_.get(), std::memory_order_release);
  return CUDA_SUCCESS;
}

Ref<Stream> Context::MakeStream(Stream::Kind kind, int priority, GreenContext* green) {
  Ref<Stream> stream = driver.streams.Make(this, *this, green ? green->partition : partition, fault_, kind,
                                           priority, driver.NextId(), green);
  if (!stream) return {};
  std::lock_guard guard(lock);
  if (dead()) {
    HandleTable<Stream>::Retire(stream.get());
    return {};
  }
  streams_.push_back(stream);
  return stream;
}

bool Context::RetireStream(Stream* stream) {
  std::lock_guard guard(lock);
  if (!HandleTable<Stream>::Retire(stream)) return false;
  PruneStreams();
  return true;
}

Ref<Event> Context::MakeEvent(unsigned event_flags) {
  Ref<Event> event = driver.events.Make(this, *this, event_flags);
  if (!event) return {};
  std::lock_guard guard(lock);
  if (dead()) {
    HandleTable<Event>::Retire(event.get());
    return {};
  }
  event->place = events_.size();
  events_.push_back(event);
  return event;
}

bool Context::RetireEvent(Event* event) {
  std::lock_guard guard(lock);
  if (!HandleTable<Event>::Retire(event)) return false;
  std::swap(events_[event->place], events_.back());
  events_[event->place]->place = event->place;
  events_.pop_back();
  return true;
}

void Context::PruneStreams() {
  std::erase_if(streams_, [this](const Ref<Stream>& stream) {
    if (HandleTable<Stream>::IsLive(stream.get()) || !stream->Idle()) return false;
    if (stream->workspace) {
      (void)driver.memory.Free(stream->workspace, 1u << static_cast<unsigned>(Block::Kind::kModule));
    }
    return true;
  });
}

void Context::Synchronize() {
  std::vector<std::pair<Ref<Stream>, uint64_t>> busy;
  {
    std::lock_guard guard(lock);
    for (auto& stream : streams_) {
      if (!stream->Idle()) busy.emplace_back(stream, stream->submitted());
    }
  }
  for (auto& [stream, number] : busy) stream->Wait(number);
  GiveText();
}

std::vector<Ref<Stream>> Context::StreamsOf(const GreenContext* green, bool retire) {
  std::vector<Ref<Stream>> found;
  std::lock_guard guard(lock);
  for (auto& stream : streams_) {
    if (green && stream->green != green) continue;
    if (!HandleTable<Stream>::IsLive(stream.get())) continue;
    if (retire) HandleTable<Stream>::Retire(stream.get());
    found.push_back(stream);
  }
  return found;
}

Stream* Context::NullStreamOf(const Stream& stream) const {
  return stream.green ? stream.green->null_stream.get() : legacy();
}

void Context::SynchronizeLegacy(const Stream& legacy) {
  std::vector<std::pair<Ref<Stream>, uint64_t>> busy;
  {
    std::lock_guard guard(lock);
    for (auto& stream : streams_) {
      if (stream->green == legacy.green && stream->kind != Stream::Kind::kNonBlocking && !stream->Idle()) {
        busy.emplace_back(stream, stream->submitted());
      }
    }
  }
  for (auto& [stream, number] : busy) stream->Wait(number);
  GiveText();
}

bool Context::LegacyIdle(const Stream& legacy) {
  std::lock_guard guard(lock);
  return std::ranges::all_of(streams_, [&](const Ref<Stream>& stream) {
    return stream->green != legacy.green || stream->kind == Stream::Kind::kNonBlocking || stream->Idle();
  });
}

bool Context::Idle() {
  std::lock_guard guard(lock);
  return std::ranges::all_of(streams_, [](const Ref<Stream>& stream) { return stream->Idle(); });
}

void Context::EndWork() {
  // Work that is nearly done may finish; what is left then is ended, however long it would go on.
  constexpr auto kGrace = std::chrono::milliseconds(200), kLookAgain = std::chrono::milliseconds(1);
  const auto until = std::chrono::steady_clock::now() + kGrace;
  while (!Idle()) {
    if (std::chrono::steady_clock::now() >= until) {
      Fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
      std::lock_guard guard(lock);
      for (auto& stream : streams_) {
        if (!stream->Idle()) stream->control.Abort();
      }
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

void Context::Die() {
  driver.graphs.Forget(*this);
  {
    std::lock_guard guard(lock);
    dead_.store(true, std::memory_order_release);
  }
  EndWork();
  GiveText();
  std::vector<Ref<Event>> dying_events;
  std::vector<Ref<LoadedModule>> dying_modules;
  std::vector<Ref<Stream>> dying_streams;
  std::vector<Ref<Array>> dying_arrays;
  std::vector<Ref<MipmappedArray>> dying_mipmapped;
  {
    std::lock_guard guard(lock);
    for (auto& event : events_) HandleTable<Event>::Retire(event.get());
    for (auto& module : modules) {
      for (auto& function : module->functions) HandleTable<Function>::Retire(function.get());
      HandleTable<LoadedModule>::Retire(module.get());
      module->RetireReferences(false);
    }
    for (auto& stream : streams_) HandleTable<Stream>::Retire(stream.get());
    for (auto& array : arrays) HandleTable<Array>::Retire(array.get());
    for (auto& array : mipmapped_arrays) {
      for (auto& level : array->levels) HandleTable<Array>::Retire(level.get());
      HandleTable<MipmappedArray>::Retire(array.get());
    }
    dying_arrays.swap(arrays);
    dying_mipmapped.swap(mipmapped_arrays);
    dying_events.swap(events_);
    dying_modules.swap(modules);
    dying_streams.swap(streams_);
  }
  driver.memory.FreeAll(*this);
  if (&partition != &device.whole()) device.GivePart(&partition);
}

// ------------------------------------------------------------------------------------------- Submission

Submission::Submission(Context& current, CUstream handle, Captured captured) : context_(&current) {
  GreenContext* green = Thread::Here().green();
  if (green && &green->context() != &current) green = nullptr;
  if (handle == CU_STREAM_PER_THREAD || (!handle && Thread::Here().per_thread_default)) {
    if (green) {
      result = CUDA_ERROR_INVALID_HANDLE;
      return;
    }
    per_thread_ = Thread::Here().StreamIn(current);
    if (!per_thread_) {
      result = current.dead() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_OUT_OF_MEMORY;
      return;
    }
    stream_ = per_thread_.get();
  } else if (!handle || handle == CU_STREAM_LEGACY) {
    stream_ = green ? green->null_stream.get() : current.legacy();
  } else if (Ref<Stream> stream; !current.driver.streams.Peek(handle, &current) &&
                                 (stream = current.driver.streams.Find(handle))) {
    // A stream of another context: the work is that context's.
    foreign_ = current.driver.contexts.Find(&stream->context);
    if (!foreign_) {
      result = CUDA_ERROR_INVALID_HANDLE;
      return;
    }
    context_ = foreign_.get();
  }
  context_->lock.lock();
  locked_ = true;
  if (context_->dead() || (green && stream_ && !HandleTable<Stream>::IsLive(stream_))) {
    result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else if (CUresult fault = context_->fault()) {
    result = fault;
  } else if (!stream_ && !(stream_ = current.driver.streams.Peek(handle, context_))) {
    result = CUDA_ERROR_INVALID_HANDLE;
  } else if (this->captured() || context_->captured_blocking.load(std::memory_order_relaxed)) [[unlikely]] {
    CheckCaptures(captured);
  }
}

// Captures have a lock of their own, which is never taken with a context's in hand.
void Submission::CheckCaptures(Captured captured) {
  if (captured == Captured::kIgnore || (captured == Captured::kTake && this->captured())) return;
  if (!this->captured() && stream_->kind != Stream::Kind::kLegacy) return;
  std::vector<graph::StreamId> blocking;
  for (auto& other : context_->streams_) {
    if (other->green == stream_->green && other->kind == Stream::Kind::kBlocking)
      blocking.push_back(other->id);
  }
  const graph::StreamId id = stream_->id;
  const bool legacy = stream_->kind == Stream::Kind::kLegacy;
  context_->lock.unlock();
  locked_ = false;
  Graphs& graphs = context_->driver.graphs;
  std::lock_guard guard(graphs.lock);
  result = legacy ? graphs.captures.RefuseLegacy(blocking) : graphs.captures.Refuse(id);
  // It has ended meanwhile.
  if (!result) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void Submission::Order() {
  Stream* legacy = context_->NullStreamOf(*stream_);
  if (stream_ == legacy) {
    if (context_->streams_.size() == 1) return;
    for (auto& other : context_->streams_) {
      if (other->green != legacy->green || other->kind != Stream::Kind::kBlocking) continue;
      uint64_t number = other->submitted();
      if (number == other->legacy_waited_for) continue;
      other->legacy_waited_for = number;
      if (!other->Done(number)) PushWait(*other, number);
    }
  } else if (stream_->kind == Stream::Kind::kBlocking) {
    uint64_t number = legacy->submitted();
    if (number == stream_->waited_for_legacy) return;
    stream_->waited_for_legacy = number;
    if (!legacy->Done(number)) PushWait(*legacy, number);
  }
}

void Submission::PushWait(Stream& other, uint64_t number) {
  stream_->Push(
      [target = HandleTable<Stream>::Share(&other), number](Stream& self) {
        if (target->Done(number) || !target->WakeWhenDone(number, self)) return Progress::kDone;
        return Progress::kParked;
      },
      /*always=*/true);
  pushed_ = true;
}

void Submission::PushRecord(const Ref<Event>& event) {
  event->captured.store(false, std::memory_order_relaxed);
  const uint64_t record = event->NextRecord();
  const uint64_t number = Push(
      [event, record](Stream&) {
        if (event->timed()) event->Stamp(record, NowNs());
        return Progress::kDone;
      },
      /*always=*/true);
  event->Set(HandleTable<Stream>::Share(stream_), number, record);
}

bool Submission::Settled() const {
  if (!stream_->Idle()) return false;
  if (stream_->kind == Stream::Kind::kNonBlocking) return true;
  if (stream_->kind != Stream::Kind::kLegacy) return context_->NullStreamOf(*stream_)->Idle();
  return std::ranges::all_of(context_->streams_, [this](const Ref<Stream>& stream) {
    return stream->green != stream_->green || stream->kind == Stream::Kind::kNonBlocking || stream->Idle();
  });
}

Submission::~Submission() { Release(); }

void Submission::Release() {
  if (!locked_) return;
  locked_ = false;
  bool push = pushed_ && stream_->Activate();
  Ref<Stream> crowded;
  uint64_t number = 0;
  if (pushed_) {
    number = stream_->submitted();
    if (number - stream_->completed() > kMostPending) crowded = HandleTable<Stream>::Share(stream_);
  }
  context_->lock.unlock();
  if (push) stream_->pool().Push(stream_);
  if (crowded) crowded->Wait(number - kMostPending);
}

}  // namespace cuplex::softcuda
