#include "softcuda/jit/running.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace cuplex::softcuda {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local Running* t_running = nullptr;

struct Signal {
  int number;
  struct sigaction before;
};
Signal g_signals[] = {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGFPE, {}}, {SIGILL, {}}, {kAbortSignal, {}}};

void PassOn(int number, siginfo_t* info, void* context) {
  for (Signal& s : g_signals) {
    if (s.number != number) continue;
    if (s.before.sa_flags & SA_SIGINFO) {
      s.before.sa_sigaction(number, info, context);
    } else if (s.before.sa_handler != SIG_DFL && s.before.sa_handler != SIG_IGN) {
      s.before.sa_handler(number);
    } else if (number != kAbortSignal && s.before.sa_handler == SIG_DFL) {
      // Back to the default; the instruction faults again and ends the process as it would have without us.
      struct sigaction plain = {};
      plain.sa_handler = SIG_DFL;
      sigaction(number, &plain, nullptr);
    }
  }
}

/// An offset into shared, local or parameter memory that is out of bounds or misaligned; `at` is where in the
/// fault zone the code went with it (addresses.cc).
[[noreturn]] void FaultOfOffset(Running& running, uintptr_t at) {
  uint64_t offset = at % AddressWindow::kZoneBytes;
  const BlockContext& b = *running.block;
  uint64_t zone = at % AddressWindow::kMisalignedZones / AddressWindow::kZoneBytes;
  uint64_t base = zone == 0 ? b.shared : zone == 1 ? running.lane->local : b.params;
  if (at >= AddressWindow::kMisalignedZones)
    RaiseFault(running, Fault::Kind::kMisalignedAddress, base + offset, "");
  RaiseFault(running, Fault::Kind::kIllegalAddress, base + offset,
             "outside of the shared, local or parameter memory there is");
}

void OnSignal(int number, siginfo_t* info, void* context) {
  Running* running = t_running;
  if (running && running->in_code) {
    // A fault leaves by a jump that restores no mask. With NODEFER there is nothing to restore, unless
    // somebody installs the handlers otherwise than was asked for, as the thread sanitizer does.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    if (number == kAbortSignal) {
      if (running->aborted && running->aborted->load(std::memory_order_relaxed)) {
        RaiseFault(*running, Fault::Kind::kAborted, 0, "");
      }
    } else if (info->si_code > 0) {  // the thread's own doing, not kill()
      auto address = reinterpret_cast<uintptr_t>(info->si_addr);
      const Window& w = running->window->all();
      bool memory = number == SIGSEGV || number == SIGBUS;
      running->threads = running->together;
      const Window zone = running->window->fault_zone();
      if (memory && zone.Contains(address)) FaultOfOffset(*running, address - zone.base);
      if (memory &&
          address - (w.base - AddressWindow::kGuardBytes) < w.size + 2 * AddressWindow::kGuardBytes) {
        RaiseFault(*running, Fault::Kind::kIllegalAddress, address, "nothing is mapped there");
      }
      RaiseFault(*running, memory ? Fault::Kind::kIllegalAddress : Fault::Kind::kLaunchFailure, address,
                 memory ? "outside of the address window; calls may be nested too deep"
                        : "the processor refused an instruction");
    }
  }
  PassOn(number, info, context);
}

/// The alternate stack of a thread, as long as the thread.
class SignalStack {
 public:
  SignalStack() {
    stack_t now = {};
    if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t ours = {};
    ours.ss_sp = memory;
    ours.ss_size = kBytes;
    if (sigaltstack(&ours, nullptr) != 0) {
      munmap(memory, kBytes);
      return;
    }
    memory_ = memory;
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t off = {};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
    munmap(memory_, kBytes);
  }

 private:
  static constexpr size_t kBytes = 256 << 10;
  void* memory_ = nullptr;
};

}  // namespace

Running*& CurrentRunning() { return t_running; }

void RaiseFault(Running& running, Fault::Kind kind, uintptr_t address, const char* detail) {
  running.in_code = 0;
  running.kind = kind;
  running.address = address;
  std::strncpy(running.detail, detail, sizeof(running.detail) - 1);
  running.detail[sizeof(running.detail) - 1] = 0;
  siglongjmp(running.escape, 1);
}

OutsideCode::~OutsideCode() noexcept(false) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running_.in_code = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (running_.aborted && running_.aborted->load()) RaiseFault(running_, Fault::Kind::kAborted, 0, "");
}

Status CatchSignals() {
  static std::mutex lock;
  static bool caught = false;
  std::lock_guard hold(lock);
  if (caught) return {};
  for (Signal& s : g_signals) {
    struct sigaction ours = {};
    ours.sa_sigaction = OnSignal;
    // NODEFER: the handler leaves by a jump that restores no mask.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    if (sigaction(s.number, &ours, &s.before) != 0) {
      return FailErrno(errno, fmt::format("softcuda: no handler for signal {}", s.number));
    }
  }
  caught = true;
  return {};
}

void EnsureSignalStack() { static thread_local SignalStack stack; }

}  // namespace cuplex::softcuda
