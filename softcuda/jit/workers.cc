#include "softcuda/jit/workers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "softcuda/jit/block_run.h"
#include "softcuda/jit/block_slot.h"
#include "softcuda/jit/kernel.h"
#include "softcuda/jit/pace.h"
#include "softcuda/jit/running.h"
#include "softcuda/jit/warp_block.h"

namespace cuplex::softcuda {
namespace {

// Blocks of threads that wait which one worker keeps on the way at once, when they wait for other blocks.
constexpr size_t kMostResident = 1024;
// A grid that would keep its caller busy longer than this is worth waking others for.
constexpr int64_t kWorthHelpNs = 20000;
// Blocks are taken from the counter in portions of about this long.
constexpr int64_t kPortionNs = 5000;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

/// One grid on its way, on the stack of the thread that called Run.
struct GridRun {
  const Launch* launch = nullptr;
  const Code* code = nullptr;
  const Kernel* kernel = nullptr;
  BlockContext context;  // what is the same for all blocks
  uint64_t blocks = 0;
  std::atomic<uint64_t> next = 0;
  std::atomic<uint64_t> portion = 1;
  std::atomic<bool> stop = false;
  std::atomic<bool> cut = false;  // blocks were left out since `stop` was set
  unsigned wanted = 0;            // helpers still invited; under the workers' lock
  unsigned helping = 0;           // under the workers' lock
  std::mutex lock;
  std::vector<pthread_t> threads;  // under lock: those inside Take part
  Outcome fault;                   // under lock: the first
  std::optional<Error> error;      // under lock

  void Attach(GridControl& control) {
    std::lock_guard hold(control.lock_);
    control.run_ = this;
    if (control.aborted_) stop = true;
  }
  void Detach(GridControl& control) {
    std::lock_guard hold(control.lock_);
    control.run_ = nullptr;
  }
  /// Makes every thread in it leave soon, also those inside kernel code.
  void Stop() {
    stop.store(true);
    std::lock_guard hold(lock);
    for (pthread_t t : threads) {
      if (!pthread_equal(t, pthread_self())) pthread_kill(t, kAbortSignal);
    }
  }
  void Enter() {
    std::lock_guard hold(lock);
    threads.push_back(pthread_self());
  }
  void Leave() {
    std::lock_guard hold(lock);
    threads.erase(std::find(threads.begin(), threads.end(), pthread_self()));
  }
};

void GridControl::Abort() {
  aborted_.store(true);
  std::lock_guard hold(lock_);
  if (run_) run_->Stop();
}

std::string Fault::Sentence() const {
  static constexpr const char* kWords[] = {"illegal address",  "misaligned address", "trap",
                                           "assertion failed", "launch failure",     "aborted"};
  std::string more = threads > 1 ? fmt::format(" or one of the {} after it", threads - 1) : "";
  std::string s =
      fmt::format("kernel `{}`, block ({},{},{}), thread ({},{},{}){}: {}", kernel, block[0], block[1],
                  block[2], thread[0], thread[1], thread[2], more, kWords[static_cast<size_t>(kind)]);
  if (kind == Kind::kIllegalAddress || kind == Kind::kMisalignedAddress) s += fmt::format(" {:#x}", address);
  if (!detail.empty()) s += ": " + detail;
  return s;
}

/// The memory of a block, and how far it is, where its threads wait.
struct Resident {
  explicit Resident(AddressWindow& window) : slot(window) {}
  BlockSlot slot;
  BlockRun block;
  WarpBlock warps;
};

class WorkersImpl final : public Workers {
 public:
  WorkersImpl(AddressWindow& window, double duty) : window_(window), pace_(duty) {}

  ~WorkersImpl() override {
    {
      std::lock_guard hold(lock_);
      ending_ = true;
    }
    invited_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  Status Begin(unsigned threads) {
    try {
      for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { Help(); });
    } catch (const std::system_error& e) {
      return Fail(Blame::kSystem, "softcuda: cannot start worker {} of {}: {}", threads_.size() + 1, threads,
                  e.what());
    }
    return {};
  }

  Status Check(const Launch& launch) const override;
  Result<Outcome> Run(const Launch& launch, GridControl* control) override;

  uint32_t ResidentBlocks(Kernel* kernel, uint32_t, uint32_t) const override {
    return static_cast<uint32_t>(kernel->info().waits ? kMostResident : UINT32_MAX);
  }

 private:
  using Slot = std::unique_ptr<Resident>;

  void Help();
  void Invite(GridRun& run);
  void InviteIfWorth(GridRun& run, int64_t took);
  void TakePart(GridRun& run, bool caller);
  void RunLoops(GridRun& run, Running& running, BlockSlot& slot, bool caller);
  void RunWarps(GridRun& run, Running& running, Resident& resident, bool caller);
  void RunSteps(GridRun& run, Running& running, Resident& first, bool caller);
  bool NextBlock(GridRun& run, uint64_t& block, uint64_t& left);
  void Place(const GridRun& run, const BlockSlot& slot, BlockContext& context) const;
  void Caught(GridRun& run, Running& running);

  Slot TakeSlot() {
    std::lock_guard hold(slots_lock_);
    if (slots_.empty()) return std::make_unique<Resident>(window_);
    Slot s = std::move(slots_.back());
    slots_.pop_back();
    return s;
  }
  void GiveSlot(Slot slot) {
    std::lock_guard hold(slots_lock_);
    slots_.push_back(std::move(slot));
  }

  AddressWindow& window_;
  const Pace pace_;
  std::vector<std::thread> threads_;
  std::mutex lock_;
  std::condition_variable invited_;
  std::condition_variable left_;
  std::deque<GridRun*> wanting_;  // under lock_
  bool ending_ = false;           // under lock_
  std::mutex slots_lock_;
  std::vector<Slot> slots_;  // under slots_lock_
};

Status WorkersImpl::Check(const Launch& launch) const {
  if (!launch.kernel) return Fail(Blame::kCaller, "a launch names no kernel");
  const KernelInfo& info = launch.kernel->info();
  const auto& g = launch.grid;
  const auto& b = launch.block;
  if (!g[0] || !g[1] || !g[2] || g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535) {
    return Fail(Blame::kCaller,
                "kernel `{}`: a grid of {}x{}x{} blocks; expected 1..2147483647 x 1..65535 x 1..65535",
                info.name, g[0], g[1], g[2]);
  }
  if (!b[0] || !b[1] || !b[2] || b[0] > 1024 || b[1] > 1024 || b[2] > 64 ||
      uint64_t{b[0]} * b[1] * b[2] > info.max_threads) {
    return Fail(Blame::kCaller,
                "kernel `{}`: blocks of {}x{}x{} threads; expected at most {} in all, 64 in z", info.name,
                b[0], b[1], b[2], info.max_threads);
  }
  if (info.reqntid[0] && b != info.reqntid) {
    return Fail(Blame::kCaller, "kernel `{}`: blocks of {}x{}x{} threads; it is compiled for {}x{}x{} alone",
                info.name, b[0], b[1], b[2], info.reqntid[0], info.reqntid[1], info.reqntid[2]);
  }
  if (uint64_t{info.static_shared} + launch.dynamic_shared > kMaxShared) {
    return Fail(Blame::kCaller, "kernel `{}`: {} bytes of shared memory, {} of them dynamic; a block has {}",
                info.name, uint64_t{info.static_shared} + launch.dynamic_shared, launch.dynamic_shared,
                kMaxShared);
  }
  if (launch.params.size() < info.param_bytes) {
    return Fail(Blame::kCaller, "kernel `{}`: {} bytes of parameters given, {} expected", info.name,
                launch.params.size(), info.param_bytes);
  }
  return {};
}

Result<Outcome> WorkersImpl::Run(const Launch& launch, GridControl* control) {
  TRY(Check(launch));
  TRY(const Code* code, launch.kernel->Ready(launch.block));
  GridRun run;
  run.launch = &launch;
  run.code = code;
  run.kernel = launch.kernel;
  run.blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  BlockContext& c = run.context;
  const KernelInfo& info = launch.kernel->info();
  for (int i = 0; i < 3; ++i) {
    c.ntid[i] = launch.block[i];
    c.nctaid[i] = launch.grid[i];
  }
  c.threads = launch.block[0] * launch.block[1] * launch.block[2];
  c.shared_bytes = (info.reserved_shared + info.static_shared + launch.dynamic_shared + 15) / 16 * 16;
  c.dynamic_shared = launch.dynamic_shared;
  c.local_bytes = info.local_bytes;
  c.nsmid = static_cast<uint32_t>(threads_.size()) + 1;
  c.envreg1 = static_cast<uint32_t>(launch.cooperative_workspace >> 32);
  c.envreg2 = static_cast<uint32_t>(launch.cooperative_workspace);
  c.grid_id = launch.grid_id;
  c.window = &window_;
  if (control) run.Attach(*control);
  TakePart(run, true);
  if (run.blocks > 1 && !threads_.empty()) {
    std::unique_lock hold(lock_);
    if (run.wanted) {
      wanting_.erase(std::find(wanting_.begin(), wanting_.end(), &run));
      run.wanted = 0;
    }
    left_.wait(hold, [&] { return run.helping == 0; });
  }
  if (control) run.Detach(*control);
  if (run.error) return *run.error;
  if (!run.fault && run.cut) {
    Fault f;
    f.kind = Fault::Kind::kAborted;
    f.kernel = info.name;
    run.fault = f;
  }
  return std::move(run.fault);
}

void WorkersImpl::Help() {
  std::unique_lock hold(lock_);
  for (;;) {
    invited_.wait(hold, [&] { return ending_ || !wanting_.empty(); });
    if (ending_) return;
    GridRun& run = *wanting_.front();
    if (--run.wanted == 0) wanting_.pop_front();
    ++run.helping;
    hold.unlock();
    TakePart(run, false);
    hold.lock();
    if (--run.helping == 0) left_.notify_all();
  }
}

void WorkersImpl::Invite(GridRun& run) {
  uint64_t left = run.blocks - std::min(run.blocks, run.next.load(std::memory_order_relaxed));
  unsigned guests = static_cast<unsigned>(std::min<uint64_t>(threads_.size(), left));
  if (!guests) return;
  {
    std::lock_guard hold(lock_);
    run.wanted = guests;
    wanting_.push_back(&run);
  }
  if (guests == 1) {
    invited_.notify_one();
  } else {
    invited_.notify_all();
  }
}

bool WorkersImpl::NextBlock(GridRun& run, uint64_t& block, uint64_t& left) {
  if (run.stop.load(std::memory_order_relaxed)) {
    if (left || run.next.load(std::memory_order_relaxed) < run.blocks) run.cut = true;
    return false;
  }
  if (left) {
    --left;
    ++block;
    return true;
  }
  pace_.Keep(run.stop);
  uint64_t portion = run.portion.load(std::memory_order_relaxed);
  block = run.next.fetch_add(portion, std::memory_order_relaxed);
  if (block >= run.blocks) return false;
  left = std::min(portion, run.blocks - block) - 1;
  return true;
}

void WorkersImpl::Place(const GridRun& run, const BlockSlot& slot, BlockContext& context) const {
  context.shared = slot.shared();
  context.params = slot.params();
  if (!run.kernel->info().param_bytes) return;
  std::memcpy(reinterpret_cast<void*>(slot.params()), run.launch->params.data(),
              run.kernel->info().param_bytes);
}

namespace {
void SetBlock(BlockContext& c, uint64_t block) {
  c.ctaid[0] = static_cast<uint32_t>(block % c.nctaid[0]);
  if (c.nctaid[1] == 1 && c.nctaid[2] == 1) return;
  uint64_t rest = block / c.nctaid[0];
  c.ctaid[1] = static_cast<uint32_t>(rest % c.nctaid[1]);
  c.ctaid[2] = static_cast<uint32_t>(rest / c.nctaid[1]);
}
}  // namespace

/// Sets up this thread to run kernel code, takes blocks until there are none, and catches what goes wrong.
void WorkersImpl::TakePart(GridRun& run, bool caller) {
  EnsureSignalStack();
  Running running;
  running.aborted = &run.stop;
  running.window = &window_;
  running.textures = run.launch->textures;
  running.text = run.launch->text;
  running.heap = run.launch->heap;
  Running* before = CurrentRunning();
  run.Enter();
  Slot resident = TakeSlot();
  const Code& code = *run.code;
  uint32_t threads = run.context.threads;
  Status fits = code.warp    ? resident->slot.Fit((threads + code.warp_lanes - 1) / code.warp_lanes,
                                                  code.warp_bytes, threads, run.context.local_bytes)
                : code.waits ? resident->slot.Fit(threads, code.lane_bytes, threads, run.context.local_bytes)
                             : resident->slot.Fit(1, 0, 1, run.context.local_bytes);
  if (!fits.ok()) {
    std::lock_guard hold(run.lock);
    run.error = fits.error();
    run.stop = true;
  } else {
    CurrentRunning() = &running;
    pace_.Begin();
    if (code.warp) {
      RunWarps(run, running, *resident, caller);
    } else if (code.waits) {
      RunSteps(run, running, *resident, caller);
    } else {
      RunLoops(run, running, resident->slot, caller);
    }
    pace_.End();
    CurrentRunning() = before;
  }
  GiveSlot(std::move(resident));
  run.Leave();
}

void WorkersImpl::Caught(GridRun& run, Running& running) {
  Fault f;
  f.kind = running.kind;
  f.kernel = run.kernel->info().name;
  f.address = running.address;
  f.detail = running.detail;
  std::copy_n(running.block->ctaid, 3, f.block.begin());
  if (running.lane) {
    f.thread = ThreadOf(*running.block, *running.lane);
    f.threads = std::min(running.threads, running.block->threads - running.lane->linear);
  }
  {
    std::lock_guard hold(run.lock);
    // An abort that follows another's fault is not the news.
    bool stopped_by_other = f.kind == Fault::Kind::kAborted && run.fault;
    if (!run.fault && !stopped_by_other) run.fault = std::move(f);
  }
  run.Stop();
}

CUPLEX_CALLS_MACHINE_CODE void WorkersImpl::RunLoops(GridRun& run, Running& running, BlockSlot& slot,
                                                     bool caller) {
  BlockContext context = run.context;
  Place(run, slot, context);
  Lane lane;
  lane.local = slot.local();
  running.block = &context;
  running.lane = &lane;
  // Changed after the jump is set, read after it: in memory.
  volatile bool measure = caller && run.blocks > 1 && !threads_.empty();
  uint64_t block = 0, left = 0;
  if (sigsetjmp(running.escape, 0) != 0) {
    Caught(run, running);
    return;
  }
  while (NextBlock(run, block, left)) {
    SetBlock(context, block);
    int64_t start = measure ? NowNs() : 0;
    running.in_code = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (run.stop.load(std::memory_order_relaxed)) RaiseFault(running, Fault::Kind::kAborted, 0, "");
    run.code->loop(&context, &lane);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    running.in_code = 0;
    if (measure) {
      measure = false;
      InviteIfWorth(run, NowNs() - start);
    }
  }
}

/// One block took so long: calls others if the rest of the grid is worth it.
void WorkersImpl::InviteIfWorth(GridRun& run, int64_t took) {
  took = std::max<int64_t>(took, 1);
  if (took * static_cast<int64_t>(std::min<uint64_t>(run.blocks - 1, kWorthHelpNs)) <= kWorthHelpNs) return;
  run.portion = static_cast<uint64_t>(std::clamp<int64_t>(kPortionNs / took, 1, 64));
  Invite(run);
}

void WorkersImpl::RunWarps(GridRun& run, Running& running, Resident& resident, bool caller) {
  BlockContext context = run.context;
  Place(run, resident.slot, context);
  resident.block.Forget();
  const Code& code = *run.code;
  running.block = &context;
  running.together = code.warp_lanes;
  volatile bool measure = caller && run.blocks > 1 && !threads_.empty();
  uint64_t block = 0, left = 0;
  if (sigsetjmp(running.escape, 0) != 0) {
    Caught(run, running);
    return;
  }
  while (NextBlock(run, block, left)) {
    SetBlock(context, block);
    int64_t start = measure ? NowNs() : 0;
    resident.warps.Begin(code.warp, context, resident.slot.lanes(), code.warp_bytes, code.warp_lanes,
                         resident.slot.local());
    running.in_code = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (run.stop.load(std::memory_order_relaxed)) RaiseFault(running, Fault::Kind::kAborted, 0, "");
    resident.warps.Run(running);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    running.in_code = 0;
    if (measure) {
      measure = false;
      InviteIfWorth(run, NowNs() - start);
    }
  }
}

void WorkersImpl::RunSteps(GridRun& run, Running& running, Resident& first, bool caller) {
  const Code& code = *run.code;
  std::vector<Slot> more;       // blocks besides the first, on the way since others stalled
  std::vector<Resident*> turn;  // blocks that are on the way
  bool measure = caller && run.blocks > 1 && !threads_.empty();
  bool exhausted = false;
  uint64_t block = 0, left = 0;
  BlockContext context = run.context;

  auto start = [&](Resident& r) {
    if (exhausted || !NextBlock(run, block, left)) {
      exhausted = true;
      return false;
    }
    Place(run, r.slot, context);
    SetBlock(context, block);
    r.block.Begin(code.step, context, r.slot.lanes(), code.lane_bytes, r.slot.local());
    return true;
  };
  // Kernel code runs inside here alone, so nothing it jumps over is alive.
  auto advance = [&](Resident& r) -> std::optional<BlockRun::State> {
    if (sigsetjmp(running.escape, 0) != 0) return std::nullopt;
    running.in_code = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (run.stop.load(std::memory_order_relaxed)) RaiseFault(running, Fault::Kind::kAborted, 0, "");
    BlockRun::State state = r.block.Advance(running);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    running.in_code = 0;
    return state;
  };

  running.block = &context;
  if (start(first)) turn.push_back(&first);
  size_t at = 0, stalled = 0;
  while (!turn.empty()) {
    Resident& r = *turn[at];
    int64_t begun = measure ? NowNs() : 0;
    auto state = advance(r);
    if (!state) {
      Caught(run, running);
      break;
    }
    if (*state == BlockRun::State::kDone) {
      stalled = 0;
      if (!start(r)) {
        turn.erase(turn.begin() + static_cast<ptrdiff_t>(at));
        if (at == turn.size()) at = 0;
      }
    } else {
      ++stalled;
      // Perhaps it waits for a block that has not started.
      if (!exhausted && turn.size() < kMostResident) {
        Slot another = TakeSlot();
        if (another->slot
                .Fit(run.context.threads, code.lane_bytes, run.context.threads, run.context.local_bytes)
                .ok() &&
            start(*another)) {
          turn.push_back(another.get());
          more.push_back(std::move(another));
        } else {
          GiveSlot(std::move(another));
        }
      }
      at = (at + 1) % turn.size();
      if (stalled >= turn.size()) {  // all of them wait, for other workers or other grids
        stalled = 0;
        sched_yield();
      }
    }
    if (measure) {
      measure = false;
      if (*state == BlockRun::State::kStalled) {
        Invite(run);
      } else {
        InviteIfWorth(run, NowNs() - begun);
      }
    }
  }
  for (Slot& r : more) GiveSlot(std::move(r));
}

Result<std::unique_ptr<Workers>> Workers::Start(unsigned threads, AddressWindow& window, double duty) {
  TRY(CatchSignals());
  auto workers = std::make_unique<WorkersImpl>(window, duty);
  TRY(workers->Begin(threads));
  return std::unique_ptr<Workers>(std::move(workers));
}

}  // namespace cuplex::softcuda
