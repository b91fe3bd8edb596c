// LinkImages: what a client wants linked, by the driver's own linker. Slow: run as a job.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/driver_table.h"

namespace cuplex::server {

struct Linked {
  CUresult code = CUDA_SUCCESS;
  std::string image;
  std::string info, errors;             // what the linker says
  uint32_t wall_time = 0, threads = 0;  // as the driver leaves them in its options
};

/// Links a request (protocol/link_request.h) that need not be one, for the device of `context`. An image of
/// more than `most_bytes` is refused.
Linked LinkImages(const DriverTable& cu, CUcontext context, const std::string& request, uint64_t most_bytes);

}  // namespace cuplex::server
