// Exporter: answers GET /metrics over HTTP in the Prometheus text format, on threads of its own.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "metrics/metrics.h"

namespace cuplex::metrics {

class Exporter {
 public:
  /// Listens on `address`, "IPV4:PORT" or "[IPV6]:PORT"; port 0 takes any free one. `metrics` must outlive
  /// the exporter. Blame::kCaller for an address of another form, Blame::kSystem where it cannot be bound.
  static Result<std::unique_ptr<Exporter>> Listen(const std::string& address, const Metrics& metrics);

  /// Stops answering; waits for a scrape in progress.
  ~Exporter();

  /// The port it is bound to.
  int port() const;

 private:
  struct Serving;
  explicit Exporter(std::unique_ptr<Serving> serving);
  std::unique_ptr<Serving> serving_;
};

}  // namespace cuplex::metrics
