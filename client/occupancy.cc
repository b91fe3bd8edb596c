#include <algorithm>

#include "client/exports.h"

namespace cuplex::client {
namespace {

CUresult BlocksPerProcessor(const Caller& caller, Handle function, int block_size, size_t shared,
                            unsigned flags, int* out) {
  wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsReply reply;
  const wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsArgs args(function, shared, block_size,
                                                                            flags);
  const Op op = Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
  if (CUresult r = caller.session->submission().Ask(op, caller.number, args, &reply)) return r;
  *out = reply.num_blocks();
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
  if (!numBlocks || blockSize <= 0 || (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)))
    return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Function* f;
  Handle h;
  if (CUresult r = ResolveFunction(caller, func, &f, &h)) return r;
  return BlocksPerProcessor(caller, h, blockSize, dynamicSMemSize, flags, numBlocks);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize sharedOf, size_t dynamicSMemSize,
                                                   int blockSizeLimit, unsigned int flags) {
  if (!minGridSize || !blockSize || blockSizeLimit < 0) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Function* f;
  Handle h;
  if (CUresult r = ResolveFunction(caller, func, &f, &h)) return r;
  const DeviceSnapshot& device = caller.session->device(caller.context->device);
  const int warp = device.AttributeOr(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  int largest = std::min<int>(device.limits.threads, f->facts.max_threads_per_block);
  if (blockSizeLimit) largest = std::min(largest, blockSizeLimit);
  int best_threads = 0;
  // From the largest down, whole warps but for the limit itself; the first of equals is the largest block.
  for (int threads = largest; threads > 0; threads = (threads - 1) / warp * warp) {
    const size_t shared = sharedOf ? sharedOf(threads) : dynamicSMemSize;
    int blocks;
    if (CUresult r = BlocksPerProcessor(caller, h, threads, shared, flags, &blocks)) return r;
    if (blocks * threads > best_threads) {
      best_threads = blocks * threads;
      *blockSize = threads;
      *minGridSize = blocks * device.AttributeOr(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
    }
    if (best_threads >= device.AttributeOr(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, INT32_MAX))
      break;
  }
  return best_threads ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize sharedOf, size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, sharedOf, dynamicSMemSize,
                                                   blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction func, int numBlocks,
                                                 int blockSize) {
  if (!bytes || numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Function* f;
  Handle h;
  if (CUresult r = ResolveFunction(caller, func, &f, &h)) return r;
  int possible;
  if (CUresult r = BlocksPerProcessor(caller, h, blockSize, 0, 0, &possible)) return r;
  *bytes = 0;
  if (possible < numBlocks) return CUDA_SUCCESS;
  const DeviceSnapshot& device = caller.session->device(caller.context->device);
  const int all = device.AttributeOr(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0);
  const int reserved = device.AttributeOr(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0);
  const int most = device.AttributeOr(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, all);
  const int each = std::min(all / numBlocks - reserved, most) - f->facts.shared_bytes;
  *bytes = static_cast<size_t>(std::max(each, 0));
  return CUDA_SUCCESS;
}

}  // extern "C"
