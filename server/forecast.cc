#include "server/forecast.h"

#include <algorithm>
#include <cmath>

namespace cuplex::server {
namespace {

// What a new measurement counts. One far from what is known is believed sooner: the data has changed.
constexpr double kGain = 0.25;
constexpr double kFarGain = 0.75;
constexpr double kFar = 2.0;
// What a measurement counts that several kernels share.
constexpr double kSharedGain = 0.1;
constexpr double kLeastNs = 0.001;

}  // namespace

Forecast::Row* Forecast::Find(const LaunchShape& shape) {
  if (rows_[last_].block_ns > 0 && rows_[last_].shape == shape) {
    rows_[last_].used = ++clock_;
    return &rows_[last_];
  }
  for (Row& row : rows_)
    if (row.block_ns > 0 && row.shape == shape) {
      last_ = static_cast<size_t>(&row - rows_.data());
      row.used = ++clock_;
      return &row;
    }
  return nullptr;
}

Forecast::Row& Forecast::Make(const LaunchShape& shape) {
  Row& row = *std::min_element(rows_.begin(), rows_.end(),
                               [](const Row& a, const Row& b) { return a.used < b.used; });
  row = {shape, 0, ++clock_};
  last_ = static_cast<size_t>(&row - rows_.data());
  return row;
}

double Forecast::BlockNs(const LaunchShape& shape) {
  const Row* row = Find(shape);
  return row ? row->block_ns : block_ns_;
}

uint64_t Forecast::LaunchNs(const LaunchShape& shape) {
  const double ns = BlockNs(shape) * static_cast<double>(shape.blocks);
  if (ns <= 0) return 0;
  return ns < 1 ? 1 : static_cast<uint64_t>(std::min(ns, 1e18));
}

void Forecast::Measured(const LaunchShape& shape, uint64_t blocks, uint64_t ns) {
  if (!blocks) return;
  const double each = std::max(kLeastNs, static_cast<double>(ns) / static_cast<double>(blocks));
  Row* row = Find(shape);
  if (!row) {
    row = &Make(shape);
    row->block_ns = each;
  } else {
    const bool far = each > kFar * row->block_ns || row->block_ns > kFar * each;
    row->block_ns += (far ? kFarGain : kGain) * (each - row->block_ns);
  }
  block_ns_ = row->block_ns;
}

void Forecast::MeasuredTogether(const LaunchShape& shape, double ratio) {
  Row* row = Find(shape);
  if (!row || !std::isfinite(ratio)) return;
  row->block_ns = std::max(kLeastNs, row->block_ns * (1 + kSharedGain * (std::clamp(ratio, 0.25, 4.0) - 1)));
}

}  // namespace cuplex::server
