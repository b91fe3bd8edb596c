// HostPort: an IP address and port as people write them, "127.0.0.1:9400" or "[::1]:9400". Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuplex {

struct HostPort {
  std::string host;  // numeric, without brackets
  bool ipv6 = false;
  uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};

/// nullopt for anything else: host names, a missing host or port, a port above 65535.
std::optional<HostPort> ParseHostPort(std::string_view text);
std::string PrintHostPort(const HostPort& at);

}  // namespace cuplex
