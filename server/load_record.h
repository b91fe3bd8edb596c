// LoadRecord: what clients ask of the devices, piece by piece, while an operator's tool asks for it.
// Reactor's thread.
//
// It is on from a tool's first ask until nobody has asked for a while; else it costs a look at a flag for
// each operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace cuplex::server {

class LoadRecord {
 public:
  /// Rows kept until they are asked for; what comes beyond is counted and lost.
  static constexpr size_t kMost = 500'000;
  /// Without an ask for so long it ends.
  static constexpr int64_t kLeaseNs = 10'000'000'000;

  /// A part of an interval: one operation of a stream, or what of it went to the driver then.
  struct Part {
    int64_t arrived_ns = 0;
    uint64_t foreseen_ns = 0;
    uint64_t operation = 0;  // parts of one have the same number, in their stream
    const void* stream = nullptr;
    bool sliceable = false;
  };
  struct Row {
    int64_t at_ns = 0;  // from the record's begin
    uint64_t device_ns = 0;
    uint32_t device = 0;  // index into the server's devices
    uint32_t tenant = 0;  // place in `tenants`
    bool sliceable = false;
  };
  struct Taken {
    std::vector<std::string> tenants;
    std::vector<Row> rows;
    uint64_t lost = 0;
    bool more = false;
  };

  bool on() const { return on_; }
  /// What there is since the last call, at most so many rows of it. Begins a record where none is on; refused
  /// while another recorder's is.
  Result<Taken> Take(uint64_t recorder, size_t most, int64_t now_ns);
  /// The parts, which were foreseen to take foreseen_ns together, have taken `ns`.
  void Add(const std::string& tenant, size_t device, std::span<const Part> parts, uint64_t ns,
           int64_t now_ns);

 private:
  struct Last {
    const void* stream = nullptr;
    uint64_t operation = 0;
    size_t row = 0;
  };
  void End();

  bool on_ = false;
  uint64_t recorder_ = 0;
  int64_t began_ns_ = 0;
  int64_t asked_ns_ = 0;
  std::vector<std::string> tenants_;
  std::map<std::string, uint32_t, std::less<>> places_;
  std::vector<Row> rows_;
  size_t taken_ = 0;        // of rows_
  std::vector<Last> last_;  // by tenant: its last row, which more may be added to
  uint64_t lost_ = 0;
};

}  // namespace cuplex::server
