// Copies: every shape a program can ask for, brought to wireCopy, wireCopyBox and wireCopyArray. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;
struct Caller;

/// Where an address lies.
enum class Place : uint8_t {
  kDevice,    // in a device's arena, or a module's variable
  kShared,    // in the host window: pinned or managed, the same here and in the server
  kPageable,  // the program's own
  kNowhere,   // no range may lie like this
};
Place PlaceOf(const Session& session, uint64_t address, uint64_t bytes);

/// What a call says of an address.
enum class Says : uint8_t { kHost, kDevice, kNothing };
/// CUDA_ERROR_INVALID_VALUE where an address is not what the call says.
CUresult CheckPlace(Place place, Says says);

/// `waits`: a synchronous call, which returns when the program may use what it copied.
struct CopyOrder {
  Handle stream = 0;
  bool waits = false;
};

/// A range of bytes.
CUresult CopyBytes(const Caller& caller, uint64_t dst, Says dst_says, uint64_t src, Says src_says,
                   uint64_t bytes, CopyOrder order);

/// One side of a box: where row y of slice z begins is address + z * slice + y * pitch; or, where `in_array`,
/// at x bytes into row y of plane z of the array whose handle `address` is.
struct BoxSide {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t slice = 0;
  Says says = Says::kNothing;
  bool in_array = false;
  uint64_t x = 0, y = 0, z = 0;
};

/// `depth` slices of `height` rows of `width` bytes.
struct Box {
  BoxSide dst;
  BoxSide src;
  uint64_t width = 0;
  uint64_t height = 0;
  uint64_t depth = 0;
};
CUresult CopyBox(const Caller& caller, const Box& box, CopyOrder order);

/// A box as the program's struct describes it, which is of at least one byte.
CUresult ReadBox(const Caller& caller, const CUDA_MEMCPY3D& copy, Box* out);

/// A copy of memory that the server has at both ends, and a fill, as frames for a graph; empty where there is
/// nothing to fill.
std::string BoxFrame(const Box& box);
CUresult FillFrame(const Session& session, const CUDA_MEMSET_NODE_PARAMS& fill, std::string* frame);

/// Waits until the stream has come this far, and tells of failed one-way calls.
CUresult AwaitStream(const Caller& caller, Handle stream);

}  // namespace cuplex::client
