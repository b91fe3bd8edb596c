#include "server/reactor.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/log.h"
#include "server/driver_call.h"

namespace cuplex::server {
namespace {

constexpr int kFramesATurn = 256;    // of one session, before the next has its go
constexpr uint32_t kTurnsALook = 4;  // while frames come: the device is looked at so often
constexpr int kTurnsATime = 16;      // while busy: the clock is looked at so often
constexpr int64_t kQuietNs = 4'000;  // nothing new for so long: open turns are closed
constexpr int64_t kSpinNs = 50'000;  // nothing at all for so long: sleep
constexpr int64_t kLongNs =
    30'000;  // what the device still does for at least so long is not waited for awake
constexpr int64_t kLookNs = 1'000'000;      // busy for so long: the sockets are looked at in between
constexpr int64_t kInFlightNs = 5'000'000;  // a device that should ring and does not is looked at so often

void Woken(void* wake) { static_cast<const WakeUp*>(wake)->Ring(); }

}  // namespace

Result<std::unique_ptr<WakeUp>> WakeUp::Make() {
  auto made = std::make_unique<WakeUp>();
  made->fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->fd_) return FailErrno(errno, "cannot make an eventfd");
  return made;
}

void WakeUp::Ring() const {
  const uint64_t one = 1;
  while (write(fd_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void WakeUp::Quiet() const {
  uint64_t count;
  (void)!read(fd_.get(), &count, sizeof(count));
}

Reactor::Reactor(House& house, const WakeUp& wake, HostWindow window)
    : house_(house), wake_(wake), attach_(house, window), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  (void)Watch(wake_.fd(), [this] { wake_.Quiet(); });
}

Reactor::~Reactor() {
  for (auto& [path, listener] : listeners_) unlink(path.c_str());
}

Status Reactor::Epoll(int fd, bool doorbell) {
  epoll_event event{};
  // A doorbell is told of once a ring and is never read: its client holds it too, and could make a read
  // block.
  event.events = doorbell ? EPOLLIN | EPOLLET : EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return FailErrno(errno, "cannot watch a descriptor");
  return {};
}

Status Reactor::Watch(int fd, std::function<void()> ready) {
  TRY(Epoll(fd));
  watched_[fd] = std::move(ready);
  return {};
}

// ------------------------------------------------------------------------------------------- listening

Result<Reactor::Listener> Reactor::Listen(const policies::Socket& socket) {
  TRY(UniqueFd fd, ListenSession(socket.path, socket.owner || socket.group ? 0600 : socket.mode));
  if (socket.owner || socket.group) {
    // Its permissions come last: until then nobody else gets in.
    if (chown(socket.path.c_str(), socket.owner.value_or(static_cast<uid_t>(-1)),
              socket.group.value_or(static_cast<gid_t>(-1))) != 0 ||
        chmod(socket.path.c_str(), socket.mode) != 0) {
      const int error = errno;
      unlink(socket.path.c_str());
      return FailErrno(error, fmt::format("cannot give the socket \"{}\" to its owner", socket.path));
    }
  }
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  if (Status status = Epoll(fd.get()); !status.ok()) {
    unlink(socket.path.c_str());
    return status.error();
  }
  return Listener{std::move(fd), socket};
}

Status Reactor::Serve(policies::Policy policy) {
  TRY(auto divisions, house_.Divide(policy));
  std::map<std::string, policies::Socket> wanted;
  bool shared = policy.default_tenant.has_value();
  for (const policies::Tenant& tenant : policy.tenants) {
    wanted[tenant.socket.path] = tenant.socket;
    shared |= !tenant.matches.empty();
  }
  if (shared) wanted[policy.server.socket] = {policy.server.socket, 0666, {}, {}};
  std::map<std::string, Listener> fresh;
  for (const auto& [path, socket] : wanted) {
    auto known = listeners_.find(path);
    if (known != listeners_.end() && known->second.socket == socket) continue;
    if (known != listeners_.end()) {
      if (chmod(path.c_str(), socket.mode) != 0 ||
          chown(path.c_str(), socket.owner.value_or(geteuid()), socket.group.value_or(getegid())) != 0)
        return FailErrno(errno, fmt::format("cannot change who may reach the socket \"{}\"", path));
      known->second.socket = socket;
      continue;
    }
    auto listener = Listen(socket);
    if (!listener.ok()) {
      for (auto& [made, each] : fresh) unlink(made.c_str());
      return listener.error();
    }
    fresh.emplace(path, std::move(*listener));
  }
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    unlink(it->first.c_str());
    it = listeners_.erase(it);
  }
  listeners_.merge(fresh);
  policy_ = std::move(policy);
  house_.divisions = std::move(divisions);
  std::vector<Tenant*> leaving;
  house_.ledger.ForEach([&](Tenant& tenant) {
    const policies::Tenant* terms = policy_.Find(tenant.name);
    // One that sees other devices is another tenant, from when its last session ends on.
    if (terms && (terms->devices == tenant.terms.devices || !tenant.sessions.empty())) {
      tenant.Take(*terms);
      for (auto& queue : house_.queues) queue->TermsChanged(tenant);
    } else {
      tenant.leaving = true;
      leaving.push_back(&tenant);
    }
  });
  for (Tenant* tenant : leaving) house_.MayForget(*tenant);
  for (const policies::Tenant& terms : policy_.tenants) TRY(house_.TenantFor(terms));
  for (size_t d = 0; d < house_.devices.size(); ++d) SetBounds(d);
  house_.SetBounds();
  return {};
}

void Reactor::SetBounds(size_t d) {
  const Device& device = house_.devices[d];
  QueueBounds bounds;
  bounds.multiprocessors =
      static_cast<uint64_t>(std::max(1, device.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  bounds.block_at_a_time = house_.block_at_a_time;
  for (const policies::Device& shared : policy_.devices)
    if (device.Is(shared.name)) {
      bounds.slice_ns = shared.max_slice_ns;
      bounds.least_slice_ns = shared.min_slice_ns;
      bounds.concurrent = shared.mode == policies::DeviceMode::kConcurrent;
    }
  size_t tenants = 0;
  house_.ledger.ForEach([&](Tenant& tenant) { tenants += tenant.holdings[d] != nullptr; });
  if (tenants <= 1) bounds.alone_slice_ns = UINT64_MAX;  // nobody can come
  house_.bounds[d] = bounds;
}

void Reactor::Accept(const Listener& listener) {
  while (true) {
    UniqueFd fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (hellos_.size() >= kMostSessions) {
      house_.metrics.server().Reject(metrics::Rejection::kBusy);
      Attach::Refuse(fd.get(), CUDA_ERROR_OUT_OF_MEMORY,
                     "Too many clients are attaching at once; try again.");
      continue;
    }
    if (!Epoll(fd.get()).ok()) continue;
    const int key = fd.get();
    hellos_[key] = Hello{std::move(fd), listener.socket.path, house_.clock.NowNs() + kHelloWithinNs};
  }
}

void Reactor::Greet(int fd) {
  Hello hello = std::move(hellos_.at(fd));
  hellos_.erase(fd);
  auto admitted = attach_.Answer(std::move(hello.fd), policy_, hello.path,
                                 [this](Session& session) { over_.push_back(&session); });
  if (!admitted.ok()) {
    if (admitted.error().blame != Blame::kGone)
      Log().warn("A client is turned away: {}", admitted.error().sentence);
    return;
  }
  auto client = std::make_unique<Client>(Client{std::move(admitted->session), std::move(admitted->doorbell)});
  if (Epoll(client->doorbell.get(), true).ok()) doorbells_.insert(client->doorbell.get());
  clients_[fd] = std::move(client);
}

void Reactor::Bury() {
  for (Session* session : over_) {
    auto at = clients_.find(session->socket());
    Client& client = *at->second;
    Log().info("The session of process {} ({}) has ended.", session->client().peer.pid,
               session->tenant().name);
    doorbells_.erase(client.doorbell.get());
    attach_.Release(*session);
    Tenant& tenant = session->tenant();
    clients_.erase(at);
    house_.MayForget(tenant);
  }
  over_.clear();
}

// ------------------------------------------------------------------------------------------- the loop

bool Reactor::Turn() {
  bool busy = house_.jobs->RunDone();
  // While frames come, nobody waits for the device so urgently that it must be asked between any two.
  if (!drained_ || turn_++ % kTurnsALook == 0)
    for (size_t i = 0; i < house_.queues.size(); ++i) busy |= house_.queues[i]->Poll();
  drained_ = false;
  for (auto& [fd, client] : clients_) {
    Session& session = *client->session;
    if (session.ending()) continue;
    drained_ |= session.Drain(kFramesATurn) > 0;
    session.FillInbox();
  }
  busy |= drained_;
  if (!house_.budget_waits.empty()) busy |= house_.budget_waits.Look(house_.clock.NowNs());
  for (size_t i = 0; i < house_.queues.size(); ++i) busy |= house_.queues[i]->Pump();
  if (!over_.empty()) Bury();
  return busy;
}

void Reactor::Wait(int64_t timeout_ns) {
  epoll_event events[64];
  const timespec timeout{timeout_ns / kSecondNs, timeout_ns % kSecondNs};
  const int count = epoll_pwait2(epoll_.get(), events, 64, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (doorbells_.contains(fd)) continue;  // that it woke the reactor is all it is for
    if (auto watched = watched_.find(fd); watched != watched_.end()) {
      watched->second();
    } else if (hellos_.contains(fd)) {
      Greet(fd);
    } else if (auto client = clients_.find(fd); client != clients_.end()) {
      // Nothing is said on this socket after the handshake: it hangs up, or it has no business here.
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
      client->second->session->End();
    } else {
      for (auto& [path, listener] : listeners_)
        if (listener.fd.get() == fd) {
          Accept(listener);
          break;
        }
    }
  }
  looked_at_ns_ = house_.clock.NowNs();
  for (auto it = hellos_.begin(); it != hellos_.end();) {
    if (it->second.until_ns > looked_at_ns_) {
      ++it;
      continue;
    }
    house_.metrics.server().Reject(metrics::Rejection::kProtocol);
    Attach::Refuse(it->first, CUDA_ERROR_TIMEOUT, "The client said nothing for 5 s; a Hello was expected.");
    it = hellos_.erase(it);
  }
}

int64_t Reactor::TimeoutNs() const {
  int64_t timeout = -1;
  auto at_most = [&](int64_t ns) { timeout = timeout < 0 ? ns : std::min(timeout, ns); };
  for (const auto& queue : house_.queues) {
    if (queue->InFlight()) at_most(kInFlightNs);
    if (const int64_t at = queue->NextLookNs(); at != INT64_MAX)
      at_most(std::max<int64_t>(0, at - house_.clock.NowNs()));
  }
  if (const int64_t at = house_.budget_waits.NextNs(); at != INT64_MAX)
    at_most(std::max<int64_t>(0, at - house_.clock.NowNs()));
  if (!hellos_.empty()) at_most(100 * kMillisecondNs);
  if (stop_by_ns_) at_most(10 * kMillisecondNs);
  return timeout;
}

bool Reactor::MaySleep() {
  const int64_t now = house_.clock.NowNs();
  for (auto& [fd, client] : clients_) {
    Session& session = *client->session;
    if (!session.ending() && !session.ring().Sleep(session.MayWait(now, kLongNs))) return false;
  }
  return true;
}

void Reactor::Sleep() {
  for (auto& queue : house_.queues) {
    queue->Quiet();
    queue->Arm(&Woken, const_cast<WakeUp*>(&wake_));
    queue->Settle();
    queue->CountQueued();
  }
  const bool sleeping = MaySleep();
  Wait(sleeping ? TimeoutNs() : 0);
  for (auto& [fd, client] : clients_) client->session->ring().Wake();
}

bool Reactor::DeviceBusyFor(int64_t ns, int64_t now_ns) const {
  return std::any_of(house_.queues.begin(), house_.queues.end(),
                     [&](const auto& queue) { return queue->BacklogNs(now_ns) > static_cast<uint64_t>(ns); });
}

bool Reactor::Run() {
  (void)prctl(PR_SET_TIMERSLACK, 1);  // timers say when a device wants more work
  busy_at_ns_ = house_.clock.NowNs();
  bool quiet = false;
  int streak = 0;
  while (true) {
    const bool busy = Turn();
    if (busy && ++streak % kTurnsATime != 0) continue;
    const int64_t now = house_.clock.NowNs();
    if (busy) {
      busy_at_ns_ = now;
      quiet = false;
    } else if (!quiet && now - busy_at_ns_ > kQuietNs) {
      quiet = true;
      for (auto& queue : house_.queues) queue->Quiet();
    }
    if (stop_by_ns_) {
      if (clients_.empty()) return true;
      if (now >= stop_by_ns_) return false;
    }
    if (!busy && (now - busy_at_ns_ > kSpinNs || (quiet && DeviceBusyFor(kLongNs, now)))) {
      Sleep();
      busy_at_ns_ = house_.clock.NowNs();
      quiet = false;
    } else if (now - looked_at_ns_ > kLookNs) {
      for (auto& queue : house_.queues) queue->CountQueued();
      Wait(0);
    } else if (quiet) {
      sched_yield();  // the clients and the driver's own threads may be waiting for this processor
    } else if (!busy) {
      SpinPause();
    }
  }
}

void Reactor::Stop(int64_t within_ns) {
  if (stop_by_ns_) return;
  stop_by_ns_ = house_.clock.NowNs() + within_ns;
  for (auto& [path, listener] : listeners_) unlink(path.c_str());
  listeners_.clear();
  hellos_.clear();
  for (auto& [fd, client] : clients_) client->session->End();
}

}  // namespace cuplex::server
