#include "client/session.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "client/graph/capture.h"
#include "protocol/session_generated.h"
#include "protocol/session_socket.h"

namespace cuplex::client {
namespace {

constexpr int kHandshakeMs = 5000;

Error Coded(Error e, CUresult code) {
  if (e.driver_code == 0) e.driver_code = code;
  return e;
}

Status Reserve(const AddressRange& range, const char* what) {
  if (range.bytes == 0) return {};
  void* want = reinterpret_cast<void*>(range.base);
  void* got = mmap(want, range.bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == want) return {};
  const int error = errno;
  if (got != MAP_FAILED) munmap(got, range.bytes);
  return Coded(FailErrno(got == MAP_FAILED ? error : EEXIST,
                         fmt::format("the addresses {:#x}+{:#x} of {} cannot be reserved in this process",
                                     range.base, range.bytes, what)),
               CUDA_ERROR_OPERATING_SYSTEM);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Attach(const std::string& path) {
  auto socket = ConnectSession(path);
  if (!socket.ok()) return Coded(std::move(socket).error(), CUDA_ERROR_MPS_CONNECTION_FAILED);
  const std::vector<std::byte> hello = WriteHello(program_invocation_short_name);
  if (auto sent = SendPacket(socket->get(), hello, {}); !sent.ok())
    return Coded(Fail(Blame::kGone, "the server at \"{}\" hung up before it was greeted.", path),
                 CUDA_ERROR_MPS_CONNECTION_FAILED);
  auto answer = ReceivePacket(socket->get(), kHandshakeMs);
  if (!answer.ok())
    return Coded(Fail(Blame::kGone, "the server at \"{}\" did not answer: {}", path, answer.error().sentence),
                 CUDA_ERROR_MPS_CONNECTION_FAILED);
  auto snapshot = ReadWelcome(answer->bytes);
  if (!snapshot.ok()) return Coded(std::move(snapshot).error(), CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  if (answer->fds.size() != 2)
    return Coded(Fail(Blame::kSystem, "the server at \"{}\" sent {} descriptors, 2 were expected.", path,
                      answer->fds.size()),
                 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  if (snapshot->devices.empty())
    return Coded(
        Fail(Blame::kRefused, "the server at \"{}\" gives tenant \"{}\" no device.", path, snapshot->tenant),
        CUDA_ERROR_NO_DEVICE);
  auto segment = Segment::Map(std::move(answer->fds[0]), snapshot->geometry);
  if (!segment.ok()) return Coded(std::move(segment).error(), CUDA_ERROR_OPERATING_SYSTEM);
  std::unique_ptr<Session> session(
      new Session(*std::move(socket), std::move(answer->fds[1]), *std::move(segment), *std::move(snapshot)));
  TRY(session->ReserveAddresses());
  return session;
}

Session::Session(UniqueFd socket, UniqueFd doorbell, Segment segment, Snapshot snapshot)
    : contexts(static_cast<int>(snapshot.devices.size())),
      pools(static_cast<int>(snapshot.devices.size())),
      socket_(std::move(socket)),
      doorbell_(std::move(doorbell)),
      segment_(std::move(segment)),
      snapshot_(std::move(snapshot)),
      submission_(segment_, doorbell_.get(), gone_),
      staging_(segment_, gone_) {
  const SegmentGeometry& g = segment_.geometry();
  madvise(segment_.header(), g.total_bytes() + g.ring_bytes, MADV_DONTFORK);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] { Watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Session::~Session() {
  shutdown(socket_.get(), SHUT_RDWR);
  watcher_.join();
  host_functions.Stop(*this);
  for (const DeviceSnapshot& d : snapshot_.devices)
    if (d.arena.bytes) munmap(reinterpret_cast<void*>(d.arena.base), d.arena.bytes);
  if (snapshot_.host_window.bytes)
    munmap(reinterpret_cast<void*>(snapshot_.host_window.base), snapshot_.host_window.bytes);
}

Status Session::ReserveAddresses() {
  Status reserved;
  size_t done = 0;
  for (DeviceSnapshot& d : snapshot_.devices) {
    reserved = Reserve(d.arena, "the device");
    if (!reserved.ok()) break;
    ++done;
  }
  if (reserved.ok()) reserved = Reserve(snapshot_.host_window, "pinned memory");
  if (reserved.ok()) return {};
  // What is not ours must not be unmapped at the end.
  for (size_t i = done; i < snapshot_.devices.size(); ++i) snapshot_.devices[i].arena = {};
  snapshot_.host_window = {};
  return reserved;
}

void Session::Watch() {
  while (true) {
    auto packet = ReceivePacket(socket_.get(), -1);
    if (!packet.ok()) break;
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(packet->bytes.data()),
                                   packet->bytes.size());
    if (!wire::VerifySessionMessageBuffer(verifier)) break;
    const auto* memory = wire::GetSessionMessage(packet->bytes.data())->body_as_HostMemory();
    if (!memory || packet->fds.size() != 1) continue;  // a later server may say more
    std::lock_guard lock(arrivals_mutex_);
    arrivals_[memory->address()] = std::move(packet->fds[0]);
    arrived_.notify_all();
  }
  {
    std::lock_guard lock(arrivals_mutex_);
    gone_.store(true, std::memory_order_release);
    arrived_.notify_all();
  }
  FutexWake(&segment_.header()->space_wanted, 1 << 20);
}

CUresult Session::SayGone() {
  if (!said_gone_.exchange(true))
    Log().error("the cuplex server hung up; every CUDA call of this process answers error {} from here on.",
                static_cast<int>(kServerGone));
  return kServerGone;
}

Result<UniqueFd> Session::TakeHostMemory(uint64_t address) {
  std::unique_lock lock(arrivals_mutex_);
  arrived_.wait(lock, [&] { return gone_.load() || arrivals_.contains(address); });
  auto it = arrivals_.find(address);
  if (it == arrivals_.end()) return Fail(Blame::kGone, "the server hung up.");
  UniqueFd fd = std::move(it->second);
  arrivals_.erase(it);
  return fd;
}

void Session::ForgetContext(uint32_t number) {
  streams.ForEach([&](Handle h, Stream& stream) {
    if (stream.context == number) LeaveCapture(*this, h);
  });
  streams.Forget(number);
  events.Forget(number);
  libraries.Forget(number);
  modules.Forget(number);
  functions.Forget(number);
  allocations.Forget(number);
  arrays.Forget(number);
  textures.Forget(number);
  references.Forget(number);
  shadows.ForgetContext(number);
  host_functions.Forget(number);
}

void Session::LeaveToParent() {
  // Held open here, the socket would keep the parent's session alive after the parent's death.
  socket_.reset();
  doorbell_.reset();
  if (segment_.fd() >= 0) close(segment_.fd());
}

}  // namespace cuplex::client
