// The Unix socket of a session: whole messages, with descriptors, between a client process and the server.
//
// It carries the handshake and descriptors of pinned memory; that it hangs up tells either side that the
// other is gone. Blocking calls; one thread at a time per socket and direction.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cuplex {

inline constexpr size_t kMaxSessionMessage = 64 * 1024;
inline constexpr size_t kMaxSessionFds = 4;

struct SessionPacket {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> fds;
};

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// A listening socket at `path` (an old socket file there is removed if nobody listens on it), with
/// permissions `mode`.
Result<UniqueFd> ListenSession(const std::string& path, mode_t mode);
/// The next connection; blocks.
Result<UniqueFd> AcceptSession(int listening);
/// Errors name the path and whether nobody listens or access is denied.
Result<UniqueFd> ConnectSession(const std::string& path);
/// Who connected, as the kernel knows it.
Result<PeerCredentials> SessionPeer(int socket);

Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
/// Waits at most `timeout_ms` (negative: without bound). Blame::kGone where the other side hung up.
Result<SessionPacket> ReceivePacket(int socket, int timeout_ms);

}  // namespace cuplex
