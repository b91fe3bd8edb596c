// HostWindow: addresses for pinned memory, the same in the server and in its clients, a part for each
// session. A value; any thread.
#pragma once

#include <cstdint>

namespace cuplex::server {

inline constexpr uint64_t kMostSessions = 256;

struct HostWindow {
  uint64_t base = 0;
  uint64_t session_bytes = 0;

  uint64_t Part(uint64_t index) const { return base + index * session_bytes; }
};

/// Of this build. It lies behind the windows of softcuda, which may be in this process too; where a sanitizer
/// owns most of the address space it is small.
constexpr HostWindow DefaultHostWindow() {
  constexpr bool kSmall = uint64_t{CUPLEX_DEFAULT_WINDOW_BASE} < (uint64_t{2} << 40);
  return kSmall ? HostWindow{uint64_t{0x18000000000}, uint64_t{1} << 30}
                : HostWindow{uint64_t{0x300000000000}, uint64_t{64} << 30};
}

}  // namespace cuplex::server
