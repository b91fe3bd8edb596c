// What a client wants linked: the options of cuLinkCreate and the inputs of cuLinkAddData, as one run of
// bytes that travels as a module's image does. Any thread; no state.
//
//   request = options { input }                     little-endian, nothing is aligned
//   options = count:u32 { option:u32 value:u32 }    CUjit_option; those of LinkOption::Travels alone
//   input   = type:u32 name_bytes:u32 data_bytes:u64 options name data       CUjitInputType
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cuda/driver_types.h"

namespace cuplex {

inline constexpr size_t kMostLinkInputs = 4096;
inline constexpr size_t kMostLinkOptions = CU_JIT_NUM_OPTIONS;
inline constexpr size_t kMostLinkNameBytes = 4096;

struct LinkOption {
  uint32_t option;  // CUjit_option
  uint32_t value;

  /// Its value is a number that means the same to any process. The others are pointers, or count what
  /// pointers point to.
  static bool Travels(uint32_t option);
};

struct LinkInput {
  CUjitInputType type;
  std::vector<LinkOption> options;
  std::string name;                 // without a NUL in it
  std::span<const std::byte> data;  // views the request; at least one byte
};

struct LinkRequest {
  std::vector<LinkOption> options;
  std::vector<LinkInput> inputs;  // at least one
};

void EncodeLinkOptions(std::span<const LinkOption> options, std::string* request);
void EncodeLinkInput(CUjitInputType type, std::string_view name, std::span<const std::byte> data,
                     std::span<const LinkOption> options, std::string* request);

/// Errors, all the sender's: bytes that are no such request, or more in it than the bounds above.
Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> request);

}  // namespace cuplex
