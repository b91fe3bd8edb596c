#include "base/host_port.h"

#include <arpa/inet.h>

#include <charconv>

#include <fmt/format.h>

namespace cuplex {

std::optional<HostPort> ParseHostPort(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  std::string_view digits = text.substr(colon + 1);

  HostPort at;
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    at.ipv6 = true;
    host = host.substr(1, host.size() - 2);
  }
  at.host = std::string(host);
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(at.ipv6 ? AF_INET6 : AF_INET, at.host.c_str(), address) != 1) return std::nullopt;
  if (at.host.find('\0') != std::string::npos) return std::nullopt;

  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), at.port);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return at;
}

std::string PrintHostPort(const HostPort& at) {
  return at.ipv6 ? fmt::format("[{}]:{}", at.host, at.port) : fmt::format("{}:{}", at.host, at.port);
}

}  // namespace cuplex
