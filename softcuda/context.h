// Context: what a program's streams, events, modules and memory belong to; and Submission, the one way work
// enters a stream. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/driver_types.h"
#include "softcuda/device.h"
#include "softcuda/handles.h"
#include "softcuda/jit/device_heap.h"
#include "softcuda/jit/device_text.h"
#include "softcuda/stream.h"
#include "softcuda/texture.h"

namespace cuplex::softcuda {

class Array;
class Driver;
class Event;
class GreenContext;
class LoadedModule;
class MipmappedArray;

class Context {
 public:
  /// `part`: what runs its streams, its own (Device::TakePart); null: the whole device.
  Context(Driver& driver, Device& device, Partition* part, unsigned flags, bool primary, unsigned api_version,
          uint64_t id);
  ~Context();

  Driver& driver;
  Device& device;
  Partition& partition;
  const bool primary;
  const unsigned api_version;
  const uint64_t id;
  std::atomic<unsigned> flags;
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  Textures textures;
  DeviceText text;  // what its kernels have printed

  /// Gives what kernels have printed to who receives it, or to this process's own streams. At the points at
  /// which CUDA does, or, where there is a receiver, at the end of every kernel.
  void GiveText() {
    if (!text.empty()) GiveAllText();
  }
  /// The heap of its kernels; null where none is needed yet.
  DeviceHeap* heap() const { return heap_.load(std::memory_order_acquire); }
  /// Makes the heap, as long as its limit says, where there is none.
  CUresult MakeHeap();

  /// The code that every call in this context gives from now on; the first one stays.
  void Fail(CUresult code);
  CUresult fault() const { return static_cast<CUresult>(fault_.load(std::memory_order_relaxed)); }
  bool dead() const { return dead_.load(std::memory_order_acquire); }

  /// A new stream; null where the table is full or the context is dead.
  Ref<Stream> MakeStream(Stream::Kind kind, int priority, GreenContext* green = nullptr);
  /// Its handle is void from here on; what it holds still runs. False where someone else retired it.
  bool RetireStream(Stream* stream);
  Stream* legacy() const { return legacy_.get(); }
  Ref<Event> MakeEvent(unsigned event_flags);
  bool RetireEvent(Event* event);

  /// Waits for all that was submitted to any stream.
  void Synchronize();
  /// Waits for a NULL stream and all that are ordered with it.
  void SynchronizeLegacy(const Stream& legacy);
  bool LegacyIdle(const Stream& legacy);
  bool Idle();
  /// The streams of a green context, or of all; with `retire` their handles are void from here on.
  std::vector<Ref<Stream>> StreamsOf(const GreenContext* green, bool retire = false);
  /// The NULL stream that a stream is ordered with.
  Stream* NullStreamOf(const Stream& stream) const;

  /// How many of its streams that the legacy stream waits for are being captured.
  std::atomic<int> captured_blocking{0};

  /// Waits for the context's work, then frees all that belongs to it. Its handle must be retired.
  void Die();

  std::mutex lock;  // guards submission, and the lists below

  std::vector<Ref<LoadedModule>> modules;
  std::vector<Ref<Array>> arrays;  // without the levels of mipmapped ones
  std::vector<Ref<MipmappedArray>> mipmapped_arrays;
  std::array<size_t, CU_LIMIT_MAX> limits;

 private:
  void EndWork();
  void GiveAllText();

  friend class Submission;

  void PruneStreams();  // under lock

  std::mutex giving_text_;                // keeps the order of what several threads give
  std::unique_ptr<DeviceHeap> own_heap_;  // under lock
  std::atomic<DeviceHeap*> heap_{nullptr};
  std::atomic<int> fault_{0};
  std::atomic<bool> dead_{false};
  Ref<Stream> legacy_;
  std::vector<Ref<Stream>> streams_;  // the legacy one first; retired ones until they are idle
  std::vector<Ref<Event>> events_;
};

/// Finds the stream that a handle means, in the context it belongs to, and holds that context's lock until it
/// goes out of scope, so that the checks of a call and its place in the order are one step.
///
///   Submission submission(context, handle);
///   if (submission.result) return submission.result;
///   submission.Push([...](Stream&) { ...; return Progress::kDone; });
class Submission {
 public:
  /// `current` is the caller's context, which the default streams are of.
  ///
  /// What a captured stream means to the call: that it is refused; that the call sees to it, where captured()
  /// says so, after letting go of this; nothing.
  enum class Captured { kRefuse, kTake, kIgnore };
  Submission(Context& current, CUstream handle, Captured captured = Captured::kRefuse);
  ~Submission();
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  CUresult result = CUDA_SUCCESS;
  Context& context() const { return *context_; }
  Stream& stream() const { return *stream_; }
  bool captured() const { return stream_->captured.load(std::memory_order_relaxed); }

  template <typename F>
  uint64_t Push(F&& f, bool always = false) {
    Order();
    stream_->Push(std::forward<F>(f), always);
    pushed_ = true;
    return stream_->submitted();
  }
  /// Whether all is done that an operation pushed now would have to wait for.
  bool Settled() const;
  /// Lets go of the lock, and sets the stream going, before the end of the scope; nothing can be pushed then.
  void Release();
  /// Has the stream wait until operation `number` of `other` is done.
  void PushWait(Stream& other, uint64_t number);
  /// Records an event of this context.
  void PushRecord(const Ref<Event>& event);

 private:
  void CheckCaptures(Captured captured);
  void Order();  // what the default stream's rules ask for before an operation

  Context* context_;
  Ref<Context> foreign_;  // keeps a context alive that is not the caller's
  Ref<Stream> per_thread_;
  Stream* stream_ = nullptr;
  bool locked_ = false;
  bool pushed_ = false;
};

}  // namespace cuplex::softcuda
