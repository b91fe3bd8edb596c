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
/// `as_given`: what a query of a captured copy answers; null: the same said with addresses.
CUresult Transfer(Context& current, CUstream stream, bool wait, TransferEnd to, TransferEnd from, Box box,
                  const CUDA_MEMCPY3D* as_given = nullptr);

/// What a copy of pitched memory or arrays means.
CUresult ReadCopy(Context& context, const CUDA_MEMCPY3D& copy, TransferEnd* to, TransferEnd* from, Box* box);
/// Whether the memory is there, and of the kinds that are said. Where not: CUDA_ERROR_INVALID_VALUE.
CUresult CheckCopy(const MemoryMap& memory, TransferEnd to, TransferEnd from, Box box);
CUresult CheckFill(const MemoryMap& memory, BoxAt to, Pattern pattern, Box box);

/// Fills a box of device memory; its width and pitches are multiples of the pattern's unit.
CUresult FillBox(Context& current, CUstream stream, bool wait, BoxAt to, Pattern pattern, Box box);

}  // namespace cuplex::softcuda
