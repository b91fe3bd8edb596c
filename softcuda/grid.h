// What a launch asks for, checked and run: alone (api/launch.cc) or as a node of a graph (graph/exec.h). Any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/driver_types.h"
#include "softcuda/context.h"
#include "softcuda/module.h"

namespace cuplex::softcuda {

struct Shape {
  std::array<uint32_t, 3> grid, block;
  uint32_t dynamic_shared;  // bytes
};

/// Whether any kernel, and whether this one, can be launched so.
CUresult CheckShape(const Shape& shape);
CUresult CheckAgainst(const Function& function, const Shape& shape);
CUresult CheckCooperative(const Device& device, Partition& partition, const Function& function,
                          const Shape& shape);

/// Gathers parameters into `out`, which has room for info.param_bytes.
CUresult ReadParams(const KernelInfo& info, void** params, void** extra, std::byte* out);

/// Gives the stream memory for the barrier of its cooperative grids, which follow one another, so one is
/// enough.
CUresult MakeWorkspace(Context& context, Stream& stream);

/// Runs a grid on the stream's thread, and fails the context where it dies.
void RunGrid(Context& context, Stream& stream, Kernel* kernel, const Shape& shape,
             std::span<const std::byte> params, CUdeviceptr workspace);

}  // namespace cuplex::softcuda
