#include "server/operation.h"

#include <cstring>
#include <utility>

namespace cuplex::server {

void Operation::SetParameters(std::span<const std::byte> bytes) {
  launch.parameter_bytes = bytes.size();
  std::byte* to = short_parameters.data();
  if (bytes.size() > kInlineParameters) {
    long_parameters = std::make_unique<std::byte[]>(bytes.size());
    to = long_parameters.get();
  } else if (long_parameters) {
    long_parameters.reset();
  }
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

void Operation::Repeat(const Operation& other) {
  kind = other.kind;
  switch (kind) {
    case OperationKind::kLaunch:
      launch = other.launch;
      SetParameters(other.parameters());
      break;
    case OperationKind::kCopy:
    case OperationKind::kCopyBox:
      copy = other.copy;
      break;
    case OperationKind::kFill:
      fill = other.fill;
      break;
    case OperationKind::kHostFunc:
      host_func = other.host_func;
      break;
    default:
      break;
  }
}

Operation& OperationQueue::push() {
  if (size() == rows_.size()) {
    std::vector<Operation> larger(rows_.size() * 2);
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = std::move(rows_[(head_ + i) & (rows_.size() - 1)]);
    rows_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }
  return rows_[tail_++ & (rows_.size() - 1)];
}

}  // namespace cuplex::server
