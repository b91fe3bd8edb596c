// Control: the answers to an operator's asks. Reactor's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/house.h"
#include "server/session.h"

namespace cuplex::server {

struct Described {
  std::string driver;  // path
  std::string policy;  // path
  int64_t started_ns = 0;
};

class Control {
 public:
  /// `reload` reads the policy again; `stop` ends the server within so many seconds.
  Control(House& house, Described described, std::function<Status()> reload,
          std::function<void(uint32_t)> stop)
      : house_(house), described_(std::move(described)), reload_(std::move(reload)), stop_(std::move(stop)) {}

  /// Bytes of a control.Reply to bytes that anybody may have sent.
  std::vector<std::byte> Answer(std::span<const std::byte> ask);

 private:
  std::vector<std::byte> AnswerStatus();
  std::vector<std::byte> AnswerRecord(uint64_t recorder);

  House& house_;
  Described described_;
  std::function<Status()> reload_;
  std::function<void(uint32_t)> stop_;
};

}  // namespace cuplex::server
