// The control socket: an operator's tool asks, the server answers, over ZeroMQ. Each object: one thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace cuplex {

inline constexpr size_t kMaxControlMessage = 1 << 20;

/// Server: answers asks at `endpoint` ("ipc:///run/cuplex/control", "tcp://127.0.0.1:0"). The answer to an
/// ask is what `answer` returns: bytes of a control.Reply. It is given bytes that came from anyone and must
/// check them.
class ControlListener {
 public:
  using Answer = std::function<std::vector<std::byte>(std::span<const std::byte>)>;
  static Result<std::unique_ptr<ControlListener>> Open(const std::string& endpoint, Answer answer);
  ~ControlListener();

  /// The descriptor that becomes readable when Serve has something to do (edge-triggered: call Serve once
  /// first).
  int fd() const;
  /// Where it listens, with the port that was bound.
  std::string endpoint() const;
  /// Answers all asks that are waiting; never blocks.
  void Serve();

 private:
  struct Body;
  explicit ControlListener(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// Tool: asks and waits at most `timeout_ms` for the answer. Errors name the endpoint.
Result<std::vector<std::byte>> AskControl(const std::string& endpoint, std::span<const std::byte> ask,
                                          int timeout_ms);

}  // namespace cuplex
