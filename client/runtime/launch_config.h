// DriverConfig: a launch configuration of the runtime as one of the driver's. Data: any thread.
#pragma once

#include "client/runtime/runtime_types.h"

namespace cuplex::runtime {

/// Borrows the attributes, which both APIs lay out alike.
inline CUlaunchConfig DriverConfig(const cudaLaunchConfig_t& config) {
  return {config.gridDim.x,
          config.gridDim.y,
          config.gridDim.z,
          config.blockDim.x,
          config.blockDim.y,
          config.blockDim.z,
          static_cast<unsigned>(config.dynamicSmemBytes),
          config.stream,
          config.attrs,
          config.numAttrs};
}

}  // namespace cuplex::runtime
