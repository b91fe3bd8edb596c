// Pace: keeps each thread of a partition to its part of the time, by the processor time it spends in grids.
// For workers, between blocks.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuplex::softcuda {

class Pace {
 public:
  /// `duty`: the part of the time that a thread may run, in (0, 1]; with 1 nothing below does anything.
  explicit Pace(double duty) : duty_(duty) {}

  /// Around a thread's part in a grid.
  void Begin() const {
    if (duty_ < 1) BeginPart();
  }
  /// Between blocks: sleeps where the thread has had its part, unless `stop` is set.
  void Keep(const std::atomic<bool>& stop) const {
    if (duty_ < 1) KeepPart(stop);
  }
  void End() const {
    if (duty_ < 1) EndPart();
  }

 private:
  void BeginPart() const;
  void KeepPart(const std::atomic<bool>& stop) const;
  void EndPart() const;

  const double duty_;
};

}  // namespace cuplex::softcuda
