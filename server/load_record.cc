#include "server/load_record.h"

#include <algorithm>
#include <utility>

namespace cuplex::server {

void LoadRecord::End() {
  on_ = false;
  tenants_ = {};
  places_ = {};
  rows_ = {};
  taken_ = 0;
  last_ = {};
  lost_ = 0;
}

Result<LoadRecord::Taken> LoadRecord::Take(uint64_t recorder, size_t most, int64_t now_ns) {
  if (on_ && now_ns - asked_ns_ > kLeaseNs) End();
  if (on_ && recorder != recorder_)
    return Fail(Blame::kRefused, "Somebody else is recording; one recorder at a time was expected.");
  if (!on_) {
    on_ = true;
    recorder_ = recorder;
    began_ns_ = now_ns;
  }
  asked_ns_ = now_ns;
  const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(taken_);
  const size_t n = std::min(most, rows_.size() - taken_);
  Taken taken{tenants_, {first, first + static_cast<std::ptrdiff_t>(n)}, lost_, n < rows_.size() - taken_};
  taken_ += n;
  // Nothing is added to what has been taken.
  for (Last& last : last_)
    if (last.stream && last.row < taken_) last = {};
  if (taken_ == rows_.size()) {
    rows_.clear();
    taken_ = 0;
  }
  return taken;
}

void LoadRecord::Add(const std::string& tenant, size_t device, std::span<const Part> parts, uint64_t ns,
                     int64_t now_ns) {
  if (!on_) return;
  if (now_ns - asked_ns_ > kLeaseNs) return End();
  auto [at, fresh] = places_.try_emplace(tenant, static_cast<uint32_t>(tenants_.size()));
  if (fresh) {
    tenants_.push_back(tenant);
    last_.emplace_back();
  }
  uint64_t foreseen_ns = 0;
  for (const Part& part : parts) foreseen_ns += part.foreseen_ns;
  Last& last = last_[at->second];
  for (const Part& part : parts) {
    const double weight = foreseen_ns
                              ? static_cast<double>(part.foreseen_ns) / static_cast<double>(foreseen_ns)
                              : 1.0 / static_cast<double>(parts.size());
    const auto had_ns = static_cast<uint64_t>(static_cast<double>(ns) * weight);
    if (last.stream && last.stream == part.stream && last.operation == part.operation) {
      rows_[last.row].device_ns += had_ns;
      continue;
    }
    if (rows_.size() >= kMost) {
      ++lost_;
      continue;
    }
    last = {part.stream, part.operation, rows_.size()};
    rows_.push_back({std::max<int64_t>(0, part.arrived_ns - began_ns_), had_ns, static_cast<uint32_t>(device),
                     at->second, part.sliceable});
  }
}

}  // namespace cuplex::server
