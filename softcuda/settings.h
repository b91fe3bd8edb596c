// Settings: what the environment says about the devices that softcuda reports (docs/softcuda.md lists it). A
// value; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace cuplex::softcuda {

struct Settings {
  unsigned devices = 1;            // 1..16
  uint64_t memory_bytes = 0;       // of each device; a multiple of 2 MiB
  unsigned workers = 1;            // threads a device runs kernels on, 1..256
  unsigned multiprocessors = 1;    // what the attribute says, 1..1024
  unsigned capability_major = 12;  // 5..99
  unsigned capability_minor = 1;   // 0..9
  uintptr_t window_base = 0;       // 0: this build's default
  std::string cache_folder;        // where compiled kernels are kept; empty: nowhere
  bool cache_folder_given = false;
  uint64_t cache_bytes = uint64_t{512} << 20;  // what they may take there
};

/// Reads SOFTCUDA_* through `get`, which answers as getenv does. `processors` and `ram_bytes` describe the
/// machine and give the defaults. Errors name the variable, what it holds and what it may hold.
Result<Settings> ReadSettings(const std::function<const char*(const char*)>& get, unsigned processors,
                              uint64_t ram_bytes);

}  // namespace cuplex::softcuda
