#include "protocol/session_socket.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace cuplex {
namespace {

Result<sockaddr_un> Address(const std::string& path) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(a.sun_path))
    return Fail(Blame::kCaller, "the socket path \"{}\" has {} bytes, 1 to {} were expected.", path,
                path.size(), sizeof(a.sun_path) - 1);
  std::memcpy(a.sun_path, path.data(), path.size());
  return a;
}

Result<UniqueFd> Open() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return FailErrno(errno, "cannot open a Unix socket");
  return fd;
}

}  // namespace

Result<UniqueFd> ListenSession(const std::string& path, mode_t mode) {
  TRY(sockaddr_un address, Address(path));
  struct stat st;
  if (lstat(path.c_str(), &st) == 0) {
    if (!S_ISSOCK(st.st_mode))
      return Fail(Blame::kCaller, "\"{}\" is there already and is no socket; it was left alone.", path);
    if (ConnectSession(path).ok()) return Fail(Blame::kCaller, "another server listens on \"{}\".", path);
    unlink(path.c_str());
  }
  TRY(UniqueFd fd, Open());
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    return FailErrno(errno, fmt::format("cannot bind the socket \"{}\"", path));
  if (chmod(path.c_str(), mode) != 0)
    return FailErrno(errno, fmt::format("cannot set the permissions of \"{}\" to {:o}", path, mode));
  if (listen(fd.get(), 128) != 0) return FailErrno(errno, fmt::format("cannot listen on \"{}\"", path));
  return fd;
}

Result<UniqueFd> AcceptSession(int listening) {
  while (true) {
    UniqueFd fd(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) return fd;
    if (errno != EINTR && errno != ECONNABORTED) return FailErrno(errno, "cannot accept a session");
  }
}

Result<UniqueFd> ConnectSession(const std::string& path) {
  TRY(sockaddr_un address, Address(path));
  TRY(UniqueFd fd, Open());
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    return FailErrno(errno, fmt::format("cannot reach a cuplex server at \"{}\"", path));
  }
  return fd;
}

Result<PeerCredentials> SessionPeer(int socket) {
  ucred c{};
  socklen_t bytes = sizeof(c);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &c, &bytes) != 0)
    return FailErrno(errno, "cannot ask the kernel who connected");
  return PeerCredentials{c.pid, c.uid, c.gid};
}

Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (bytes.empty() || bytes.size() > kMaxSessionMessage || fds.size() > kMaxSessionFds)
    return Fail(Blame::kOurs, "a packet of {} bytes and {} descriptors, at most {} and {} can be sent.",
                bytes.size(), fds.size(), kMaxSessionMessage, kMaxSessionFds);
  iovec io{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSessionFds)] = {};
  if (!fds.empty()) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  while (sendmsg(socket, &m, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET)
      return Fail(Blame::kGone, "the other side of the session hung up.");
    return FailErrno(errno, "cannot send on the session's socket");
  }
  return {};
}

Result<SessionPacket> ReceivePacket(int socket, int timeout_ms) {
  pollfd p{socket, POLLIN, 0};
  const int ready = poll(&p, 1, timeout_ms);
  if (ready == 0)
    return Fail(Blame::kSystem, "the other side of the session said nothing for {} ms.", timeout_ms);
  SessionPacket packet;
  packet.bytes.resize(kMaxSessionMessage);
  iovec io{packet.bytes.data(), packet.bytes.size()};
  msghdr m{};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSessionFds)];
  m.msg_control = control;
  m.msg_controllen = sizeof(control);
  ssize_t n;
  do n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    return Fail(Blame::kGone, "the other side of the session hung up.");
  if (n < 0) return FailErrno(errno, "cannot receive on the session's socket");
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      packet.fds.emplace_back(fd);
    }
  }
  if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
    return Fail(Blame::kCaller, "a packet has more than {} bytes or {} descriptors.", kMaxSessionMessage,
                kMaxSessionFds);
  packet.bytes.resize(static_cast<size_t>(n));
  return packet;
}

}  // namespace cuplex
