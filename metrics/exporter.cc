#include "metrics/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/host_port.h"
#include "base/unique_fd.h"

namespace cuplex::metrics {

struct Exporter::Serving {
  HostPort at;
  std::shared_ptr<prometheus::Collectable> collectable;
  std::unique_ptr<prometheus::Exposer> exposer;
};

namespace {

/// A stream socket and the address `at` in the kernel's form.
class Endpoint {
 public:
  explicit Endpoint(const HostPort& at)
      : fd_(socket(at.ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (at.ipv6) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address_);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(at.port);
      inet_pton(AF_INET6, at.host.c_str(), &v6->sin6_addr);
      length_ = sizeof *v6;
    } else {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address_);
      v4->sin_family = AF_INET;
      v4->sin_port = htons(at.port);
      inet_pton(AF_INET, at.host.c_str(), &v4->sin_addr);
      length_ = sizeof *v4;
    }
  }

  int fd() const { return fd_.get(); }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const { return length_; }

 private:
  UniqueFd fd_;
  sockaddr_storage address_{};
  socklen_t length_ = 0;
};

/// Why `at` cannot be bound, as the kernel says it; 0 where it can. The HTTP library does not tell.
int BindErrno(const HostPort& at) {
  Endpoint end(at);
  if (end.fd() < 0) return errno;
  int on = 1;
  (void)setsockopt(end.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(end.fd(), end.address(), end.length()) != 0) return errno;
  return listen(end.fd(), 1) == 0 ? 0 : errno;
}

}  // namespace

Exporter::Exporter(std::unique_ptr<Serving> serving) : serving_(std::move(serving)) {}

// The HTTP library looks whether it is to stop only every two seconds, or when somebody connects. So somebody
// does.
Exporter::~Exporter() {
  HostPort here = serving_->at;
  here.port = static_cast<uint16_t>(port());
  std::jthread caller([here](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    while (!stop.stop_requested()) {
      {
        Endpoint end(here);
        (void)connect(end.fd(), end.address(), end.length());
      }
      std::unique_lock lock(mutex);
      (void)stopped.wait_for(lock, stop, std::chrono::milliseconds(10), [] { return false; });
    }
  });
  serving_->exposer.reset();
}

Result<std::unique_ptr<Exporter>> Exporter::Listen(const std::string& address, const Metrics& metrics) {
  auto at = ParseHostPort(address);
  if (!at) {
    return Fail(
        Blame::kCaller,
        "\"{}\" is no address for metrics; ADDRESS:PORT was expected, as in 127.0.0.1:9400 or [::1]:9400.",
        address);
  }
  auto serving = std::make_unique<Serving>();
  serving->at = *at;
  serving->collectable = metrics.collectable();
  try {
    serving->exposer = std::make_unique<prometheus::Exposer>(PrintHostPort(*at), /*num_threads=*/2);
    serving->exposer->RegisterCollectable(serving->collectable);
  } catch (const std::exception& e) {
    std::string sentence = fmt::format("Metrics cannot be served on {}", address);
    int error = BindErrno(*at);
    if (error != 0) return FailErrno(error, std::move(sentence));
    return Fail(Blame::kSystem, "{}: {}", sentence, e.what());
  }
  return std::unique_ptr<Exporter>(new Exporter(std::move(serving)));
}

int Exporter::port() const { return serving_->exposer->GetListeningPorts().at(0); }

}  // namespace cuplex::metrics
