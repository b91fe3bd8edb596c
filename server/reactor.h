// Reactor: the one thread that owns sessions, ledger and streams. It takes frames from the rings, gives
// operations to the driver, watches the device and the sockets, and sleeps when there is nothing to do.
//
// While there is work it turns without a system call. Then it spins for some tens of microseconds; then it
// says in every ring that it sleeps and waits for doorbells, sockets, jobs, signals and the device, all in
// one epoll.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "policies/policy.h"
#include "server/attach.h"
#include "server/house.h"
#include "server/session.h"

namespace cuplex::server {

/// An eventfd that any thread may ring.
class WakeUp {
 public:
  static Result<std::unique_ptr<WakeUp>> Make();
  int fd() const { return fd_.get(); }
  void Ring() const;
  void Quiet() const;  // reads it empty

 private:
  UniqueFd fd_;
};

class Reactor {
 public:
  /// `wake` is what the house's jobs ring.
  Reactor(House& house, const WakeUp& wake, HostWindow window);
  ~Reactor();

  /// Listens on the sockets of a policy, and no longer on those of the last one; keeps sessions. On an error
  /// the old policy stays.
  Status Serve(policies::Policy policy);
  const policies::Policy& policy() const { return policy_; }

  /// Calls `ready` whenever `fd` is readable; not owned.
  Status Watch(int fd, std::function<void()> ready);

  /// Runs until Stop, and then until all sessions have ended or the time is up. True where all have.
  bool Run();
  /// Ends Run: no new sessions, and those there are get ended. `within_ns` bounds it.
  void Stop(int64_t within_ns);
  bool stopping() const { return stop_by_ns_ != 0; }

  template <typename F>
  void ForEachSession(F f) {
    for (auto& [fd, client] : clients_) f(*client->session);
  }

  /// One turn of the loop; true where there was something to do. For Run and tests.
  bool Turn();

 private:
  struct Client {
    std::unique_ptr<Session> session;
    UniqueFd doorbell;
  };
  struct Listener {
    UniqueFd fd;
    policies::Socket socket;
  };
  struct Hello {
    UniqueFd fd;
    std::string path;
    int64_t until_ns = 0;
  };

  /// What of a device's queue the policy decides.
  void SetBounds(size_t device);
  Result<Listener> Listen(const policies::Socket& socket);
  void Accept(const Listener& listener);
  void Greet(int fd);
  void Sleep();
  void Wait(int64_t timeout_ns);
  void Bury();
  Status Epoll(int fd, bool doorbell = false);
  bool MaySleep();
  bool DeviceBusyFor(int64_t ns, int64_t now_ns) const;
  int64_t TimeoutNs() const;

  House& house_;
  const WakeUp& wake_;
  Attach attach_;
  policies::Policy policy_;
  UniqueFd epoll_;
  std::map<std::string, Listener> listeners_;  // by path
  std::map<int, Hello> hellos_;                // by descriptor: connections that have not said who they are
  std::map<int, std::unique_ptr<Client>> clients_;  // by the session's socket
  std::set<int> doorbells_;
  std::map<int, std::function<void()>> watched_;
  std::vector<Session*> over_;  // ended, to be destroyed
  int64_t stop_by_ns_ = 0;
  uint32_t turn_ = 0;
  bool drained_ = false;      // the last turn took frames
  int64_t busy_at_ns_ = 0;    // when there last was something to do
  int64_t looked_at_ns_ = 0;  // when the sockets were last looked at
};

}  // namespace cuplex::server
