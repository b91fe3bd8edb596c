// Transfer and FillBox: copies and memsets, in a stream or on the calling thread, with CUDA's rules for
// memory that is not pinned. Any thread.
#pragma once

#include "cuda/driver_types.h"
#include "softcuda/context.h"
#include "softcuda/memory_map.h"

namespace cuplex::softcuda {

enum class EndKind {
  kDevice,   // memory a kernel could use: device, managed, pinned
  kHost,     // any memory of the program
  kUnified,  // the address says which
};

struct TransferEnd {
  EndKind kind = EndKind::kUnified;
  BoxAt at;
};

/// Copies a box. `wait`: returns when it is done. Without it, the source may be changed on return where it is
/// not pinned, and a target that is not pinned is complete on return.
CUresult Transfer(Context& current, CUstream stream, bool wait, TransferEnd to, TransferEnd from, Box box);

/// Fills a box of device memory; its width and pitches are multiples of the pattern's unit.
CUresult FillBox(Context& current, CUstream stream, bool wait, BoxAt to, Pattern pattern, Box box);

}  // namespace cuplex::softcuda
