// Attach: from a connection to a session. Reactor's thread.
//
// A connection says Hello within a bounded time and is answered with a Welcome and the session's descriptors,
// or with a Refusal and a hang-up. Who it is, the kernel says: the socket it reached, its credentials, its
// cgroup.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "policies/policy.h"
#include "server/host_window.h"
#include "server/house.h"
#include "server/session.h"

namespace cuplex::server {

inline constexpr int64_t kHelloWithinNs = 5'000'000'000;

class Attach {
 public:
  Attach(House& house, HostWindow window) : house_(house), window_(window), parts_(kMostSessions) {}

  /// What a new client gets.
  struct Admitted {
    std::unique_ptr<Session> session;
    UniqueFd doorbell;
  };
  /// Reads one packet from a connection that reached the policy's socket `path`, and answers it. An error has
  /// been told to the client already; the connection is to be closed.
  Result<Admitted> Answer(UniqueFd connection, const policies::Policy& policy, const std::string& path,
                          std::function<void(Session&)> ended);
  /// Tells a client why it is turned away.
  static void Refuse(int connection, CUresult code, const std::string& sentence);
  /// The session's part of the host window can be given to another.
  void Release(const Session& session);

 private:
  Result<Admitted> Admit(UniqueFd& connection, const policies::Policy& policy, const std::string& path,
                         std::function<void(Session&)> ended);

  House& house_;
  HostWindow window_;
  std::vector<bool> parts_;  // of the host window: taken
};

/// The cgroup of a process in the unified hierarchy, "/..."; empty where it is not known.
std::string CgroupOf(int pid);

}  // namespace cuplex::server
