#include "protocol/control_socket.h"

#include <zmq.hpp>

namespace cuplex {

struct ControlListener::Body {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::rep};
  Answer answer;
};

ControlListener::ControlListener(std::unique_ptr<Body> body) : body_(std::move(body)) {}
ControlListener::~ControlListener() = default;

Result<std::unique_ptr<ControlListener>> ControlListener::Open(const std::string& endpoint,
                                                               Answer answer) try {
  auto body = std::make_unique<Body>();
  body->answer = std::move(answer);
  body->socket.set(zmq::sockopt::linger, 0);
  body->socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kMaxControlMessage));
  body->socket.bind(endpoint);
  return std::unique_ptr<ControlListener>(new ControlListener(std::move(body)));
} catch (const zmq::error_t& e) {
  return Fail(Blame::kSystem, "cannot listen for control at \"{}\": {}.", endpoint, e.what());
}

int ControlListener::fd() const { return body_->socket.get(zmq::sockopt::fd); }

std::string ControlListener::endpoint() const { return body_->socket.get(zmq::sockopt::last_endpoint); }

void ControlListener::Serve() try {
  zmq::message_t ask;
  while (body_->socket.recv(ask, zmq::recv_flags::dontwait)) {
    std::vector<std::byte> reply = body_->answer({static_cast<const std::byte*>(ask.data()), ask.size()});
    body_->socket.send(zmq::buffer(reply.data(), reply.size()), zmq::send_flags::dontwait);
  }
} catch (const zmq::error_t&) {
  // The asker went away between asking and the answer; the next one is served as always.
}

Result<std::vector<std::byte>> AskControl(const std::string& endpoint, std::span<const std::byte> ask,
                                          int timeout_ms) try {
  zmq::context_t context(1);
  zmq::socket_t socket(context, zmq::socket_type::req);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kMaxControlMessage));
  socket.set(zmq::sockopt::rcvtimeo, timeout_ms);
  socket.set(zmq::sockopt::sndtimeo, timeout_ms);
  socket.connect(endpoint);
  zmq::message_t reply;
  if (!socket.send(zmq::buffer(ask.data(), ask.size())) || !socket.recv(reply))
    return Fail(Blame::kGone, "no cuplex server answered at \"{}\" within {} ms.", endpoint, timeout_ms);
  const auto* bytes = static_cast<const std::byte*>(reply.data());
  return std::vector<std::byte>(bytes, bytes + reply.size());
} catch (const zmq::error_t& e) {
  return Fail(Blame::kSystem, "cannot ask the cuplex server at \"{}\": {}.", endpoint, e.what());
}

}  // namespace cuplex
