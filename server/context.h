// Context: one driver context of one session, its virtual streams and the lanes they run on. Reactor's
// thread.
//
// A virtual stream is a queue. Its head may go to the driver when what it must come after has gone there:
// then the driver's own events keep the order on the device. Three things hold a head back in the server: a
// host function that the client has not finished, a wait for an event whose record is still held back, and
// the legacy stream's rule, by which earlier operations of blocking streams go before it and later ones after
// it.
//
// Errors: what the driver says of an operation goes to the owner as a deferred error; a fault of the context
// drops everything it holds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"
#include "protocol/function_facts.h"
#include "server/forecast.h"
#include "server/jobs.h"
#include "server/lane.h"
#include "server/ledger.h"
#include "server/operation.h"
#include "server/sliced_function.h"

namespace cuplex::server {

class DeviceQueue;
struct Allowance;
struct Runner;

struct VirtualStream {
  Context* context = nullptr;
  bool legacy = false;
  bool blocking = true;  // ordered with the legacy stream
  bool retired = false;  // destroyed by the client; goes when its queue is empty
  uint8_t lane = 0;
  uint64_t last = 0;  // position in the lane of the last operation given to the driver
  int64_t slot = -1;  // place in the context's list of streams with work
  OperationQueue queue;
};

/// A kernel that a session has found in a module of its own.
struct Function {
  uint64_t number = 0;  // the client's
  std::string name;
  CUfunction handle = nullptr;
  uint32_t parameter_bytes = 0;
  std::vector<FunctionParameter> parameters;
  Forecast forecast;
  uint32_t resident_blocks = 0;  // on a multiprocessor, of so many threads and so much shared memory
  uint32_t resident_threads = 0;
  uint32_t resident_shared_bytes = 0;

  /// Whether its grids can be run in parts: found out when a launch is first too long.
  enum class Slicing : uint8_t { kUnasked, kAsked, kReady, kCannot };
  Slicing slicing = Slicing::kUnasked;
  std::unique_ptr<SlicedFunction> sliced;  // kReady
};

/// Who a context tells of what has happened.
class ContextOwner {
 public:
  virtual ~ContextOwner() = default;
  /// A one-way call failed.
  virtual void Deferred(CUresult code) = 0;
  /// The context will answer `code` to everything.
  virtual void Faulted(Context& context, CUresult code) = 0;
  /// A kernel is too long to run whole. It stays where it is until Context::SlicingKnown.
  virtual void WantSliced(Context& context, Function& function) = 0;
  /// A kernel ran for longer than it may. The context has failed; the kernel still runs.
  virtual void Overran(Context& context) = 0;
  /// A stream has come to a host function; it goes on after Context::HostFuncDone.
  virtual void GiveHostFunc(uint64_t cookie) = 0;
  /// Where a staging block lies, and that its copy is over.
  virtual std::byte* Block(uint32_t block) = 0;
  virtual void BlockDone(uint32_t block, bool filled, CUresult code) = 0;
};

class Context {
 public:
  struct Parts {
    CUcontext driver = nullptr;
    CUevent anchor = nullptr;  // recorded and done at anchor_ns of the server's clock
    int64_t anchor_ns = 0;
  };
  /// Makes the driver's side, confined to so many of the device's multiprocessors; 0: to none. Any thread.
  static Result<Parts> Make(const DriverTable& cu, const Clock& clock, CUdevice device,
                            unsigned multiprocessors = 0);
  /// Destroys it, with all that runs in it; any thread.
  static Status Unmake(const DriverTable& cu, CUcontext context);

  Context(const DriverTable& cu, const Clock& clock, ContextOwner& owner, Tenant& tenant, Holding& holding,
          DeviceQueue& queue, Parts parts);
  /// The driver's context must be destroyed already, or be destroyed soon after.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  CUcontext driver() const { return driver_; }
  Tenant& tenant() { return tenant_; }
  Holding& holding() { return holding_; }
  DeviceQueue& queue() const { return queue_; }
  CUresult fault() const { return fault_; }

  VirtualStream* legacy() { return &legacy_; }
  VirtualStream* AddStream(bool blocking);
  void Retire(VirtualStream* stream);

  /// A new operation at the end of a stream; the caller fills it in, then calls Pushed.
  Operation& Push(VirtualStream& stream, OperationKind kind);
  void Pushed();

  Mark* NewMark();  // with one reference

  /// Whether all of it, or all that was given to one stream, is done, as far as is known.
  bool Idle() const;
  bool Idle(const VirtualStream& stream) const;
  /// Calls `done` when everything given to the stream, or to the context, up to here is done. At once where
  /// it is already.
  void WhenDone(VirtualStream& stream, std::function<void(CUresult)> done);
  void WhenAllDone(std::function<void(CUresult)> done);

  /// False where no stream waits for it.
  bool HostFuncDone(uint64_t cookie);

  void SlicingKnown(Function& function, std::unique_ptr<SlicedFunction> sliced);

  /// Fails with CUDA_ERROR_LAUNCH_TIMEOUT, and its owner ends the driver's side.
  void Overrun();
  /// The driver's context is to be destroyed while this one stays, failed; nothing of it is touched any more.
  CUcontext GiveUpDriver();

  /// Operations not given to the driver yet.
  size_t queued() const { return queued_; }

  // ---------------------------------------------------------------- called by the device's queue
  /// Gives what can go to the driver, as much as is allowed; returns how many operations, or parts of some.
  uint32_t Dispatch(Turn* turn, const Allowance& allowed);
  /// Looks how far the lanes have come. True where there was progress.
  bool Poll();
  /// Closes the intervals that are open, so that they get measured.
  void CloseIntervals();
  /// Has `wake` called, on some thread, when what is in the lanes is done.
  void Arm(CUhostFn wake, void* data);
  bool InFlight() const;
  /// Since when the turn's work here runs on the device; INT64_MAX where none does.
  int64_t RunningSince(const Turn& turn) const;
  bool listed = false;       // by the queue, among those with work in the driver
  Runner* runner = nullptr;  // the queue's, for its tenant
  /// Ends every interval, measured or not: its turns are over.
  void AbandonIntervals();

  /// Drops all operations and answers all that wait with `code`. The owner learns of it.
  void Fail(CUresult code);
  /// Makes the driver's context current on this thread, or none.
  CUresult Enter();
  static void Leave(const DriverTable& cu);

 private:
  friend void Drop(Mark* mark);

  bool Ready(VirtualStream& stream);
  /// The operation that is next where `head` is the head of a stream: a node where that is a graph.
  static Operation& Now(Operation& head);
  /// That operation is done with. False where the head has more of them.
  static bool Advance(Operation& head);
  /// Decides how much of an operation goes now. False: none of it, in this turn. `first`: of the turn.
  uint64_t Wave(const Operation::Launch& launch) const;
  bool Cut(Operation& operation, Turn& turn, bool first, uint64_t left_ns, uint64_t slice_ns);
  /// False where the head waits after all; otherwise the operation is done with, also where it failed.
  bool Run(VirtualStream& stream, Operation& operation, Turn* turn);
  /// Notes what of an operation, which `head` of a stream is or has in it, is in the lane's open interval.
  void Record(Lane& lane, const Operation& head, const Operation& operation, uint64_t foreseen_ns);
  CUresult RunLaunch(Lane& lane, Operation& operation);
  CUresult RunSlice(Lane& lane, Operation& operation);
  CUresult RunCopy(Lane& lane, Operation& operation);
  CUresult RunFill(Lane& lane, Operation& operation);
  CUresult CopyGiven(Lane& lane, Operation& operation);
  /// What of an operation goes now, in ns of device time; 0 where it takes none.
  static uint64_t Foresee(const Operation& operation);
  CUresult OpenLane(Lane& lane);
  CUresult Order(VirtualStream& stream, Lane& lane);
  CUresult WaitFor(Lane& lane, Lane& other, uint64_t position);
  CUresult Place(Mark* mark, Lane& lane);
  /// A mark at the lane's end, a new one where there is none; with a reference of the caller's.
  Mark* MarkEnd(Lane& lane);
  void OpenInterval(Lane& lane, Turn* turn);
  void Finish(Mark* mark, CUresult code);
  void Measure(Lane& lane);
  int64_t TimeOf(Mark* mark);
  void Forget(Operation& operation, CUresult code);
  void DropFront(VirtualStream& stream);
  void DropAll();

  const DriverTable& cu_;
  const Clock& clock_;
  ContextOwner& owner_;
  Tenant& tenant_;
  Holding& holding_;
  DeviceQueue& queue_;
  CUcontext driver_;
  CUevent anchor_;
  Mark* anchor_mark_ = nullptr;  // owns anchor_, unless it is the first
  int64_t anchor_ns_;
  CUresult fault_ = CUDA_SUCCESS;
  std::array<Lane, kLanes> lanes_;
  size_t next_lane_ = 1;
  VirtualStream legacy_;
  std::vector<std::unique_ptr<VirtualStream>> streams_;
  std::vector<VirtualStream*> working_;  // with something in their queue
  size_t next_working_ = 0;
  uint64_t sequence_ = 0;
  size_t queued_ = 0;
  bool running_ = false;               // an operation is being given to the driver
  std::vector<std::byte> parameters_;  // of the slice that is being launched
  std::vector<Mark*> marks_;           // all there are
  std::vector<Mark*> free_marks_;
};

}  // namespace cuplex::server
