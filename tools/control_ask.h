// ControlAsk: an operator's questions to the server, asked over ZeroMQ, and its answers, checked before use.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/control_generated.h"

namespace cuplex::tools {

/// A server's status: the bytes as they came, verified.
class StatusAnswer {
 public:
  /// Errors: the bytes are no Reply, or one that carries no Status.
  static Result<StatusAnswer> Read(std::vector<std::byte> bytes);
  const control::Status& operator*() const {
    return *flatbuffers::GetRoot<control::Reply>(bytes_.data())->body_as_Status();
  }
  const control::Status* operator->() const { return &**this; }

 private:
  explicit StatusAnswer(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::vector<std::byte> bytes_;
};

/// What clients asked of the devices: the bytes as they came, verified.
class RecordAnswer {
 public:
  /// Errors: the bytes are no Reply, or one that carries no Record, or rows of it name tenants it does not.
  static Result<RecordAnswer> Read(std::vector<std::byte> bytes);
  const control::Record& operator*() const {
    return *flatbuffers::GetRoot<control::Reply>(bytes_.data())->body_as_Record();
  }
  const control::Record* operator->() const { return &**this; }

 private:
  explicit RecordAnswer(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::vector<std::byte> bytes_;
};

/// Where the server answers, and how long to wait for it.
struct ControlPlace {
  std::string endpoint;
  int timeout_ms = 5000;
};

/// Each asks once. Errors: nobody answers in time, the answer makes no sense, or the server refuses
/// (kRefused, with the server's own words).
Result<StatusAnswer> AskStatus(const ControlPlace& place);
/// What was done since the last time; the first begins the record of this recorder.
Result<RecordAnswer> AskRecord(const ControlPlace& place, uint64_t recorder);
Status AskReload(const ControlPlace& place);
Status AskStop(const ControlPlace& place, uint32_t seconds);

}  // namespace cuplex::tools
