// Forecast: what launches of one kernel will take on the device, from what earlier ones took. Reactor's
// thread; allocates nothing.
//
// A few launch shapes are remembered, the one not used for longest goes. A shape that is new, of a kernel
// that is not, is taken to cost what its blocks cost in the shape before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cuplex::server {

/// How a kernel is launched, as far as its time depends on it.
struct LaunchShape {
  uint64_t blocks = 0;
  uint32_t threads = 0;  // of a block
  uint32_t shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

class Forecast {
 public:
  static constexpr size_t kShapes = 8;

  /// The time of one launch in ns; 0 where no launch of the kernel was measured yet.
  uint64_t LaunchNs(const LaunchShape& shape);
  /// The time of one block of such a launch, when all are there, in ns; 0 where not known.
  double BlockNs(const LaunchShape& shape);
  bool known() const { return block_ns_ > 0; }

  /// `launches` of the shape, or parts of some, of together `blocks` blocks took `ns`.
  void Measured(const LaunchShape& shape, uint64_t blocks, uint64_t ns);
  /// The same, where it was measured together with other work, of which it was foreseen to be a part: `ratio`
  /// is what all took over what all were foreseen to take.
  void MeasuredTogether(const LaunchShape& shape, double ratio);

 private:
  struct Row {
    LaunchShape shape;
    double block_ns = 0;  // 0: empty
    uint64_t used = 0;
  };
  Row* Find(const LaunchShape& shape);
  Row& Make(const LaunchShape& shape);

  std::array<Row, kShapes> rows_{};
  size_t last_ = 0;
  uint64_t clock_ = 0;
  double block_ns_ = 0;  // of the shape measured last
};

}  // namespace cuplex::server
