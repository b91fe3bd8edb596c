// Occupancy: how many blocks of a function a multiprocessor of the reported kind would hold. softcuda has no
// multiprocessors; programs size their grids by these numbers, so they follow the device's attributes.
#include <algorithm>

#include "softcuda/exports.h"
#include "softcuda/occupancy.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

constexpr unsigned kRegistersPerMultiprocessor = 65536;

template <typename F>
CUresult WithFunction(CUfunction handle, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Function> function;
    if (CUresult failed = FindFunction(context, handle, &function)) return failed;
    return f(context.device, *function);
  });
}

unsigned RoundToWarps(unsigned threads) { return (threads + kWarpSize - 1) / kWarpSize * kWarpSize; }

size_t SharedOf(const Device& device, const KernelInfo& info, size_t dynamic) {
  return info.static_shared + dynamic + (device.capability_major >= 8 ? 1024 : 0);
}

}  // namespace

int cuplex::softcuda::BlocksPerMultiprocessor(const Device& device, const Function& function,
                                              unsigned threads, size_t dynamic) {
  const KernelInfo& info = function.info;
  if (threads > info.max_threads || dynamic > function.settings.MaxDynamicShared(info)) return 0;
  unsigned rounded = RoundToWarps(threads);
  size_t blocks = std::min(device.BlocksPerMultiprocessor(), device.ThreadsPerMultiprocessor() / rounded);
  blocks = std::min<size_t>(blocks, kRegistersPerMultiprocessor / (std::max(info.registers, 16u) * rounded));
  if (size_t shared = SharedOf(device, info, dynamic)) {
    blocks = std::min(blocks, device.SharedPerMultiprocessor() / shared);
  }
  return static_cast<int>(blocks);
}

namespace {

CUresult ActiveBlocks(int* blocks, CUfunction func, int block_size, size_t dynamic, unsigned flags) {
  return WithFunction(func, [&](Device& device, Function& function) -> CUresult {
    if (!blocks || block_size <= 0 || block_size > static_cast<int>(kMaxThreadsPerBlock) ||
        flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *blocks = BlocksPerMultiprocessor(device, function, static_cast<unsigned>(block_size), dynamic);
    return CUDA_SUCCESS;
  });
}

CUresult PotentialBlockSize(int* min_grid, int* block_size, CUfunction func, CUoccupancyB2DSize dynamic_of,
                            size_t dynamic, int limit, unsigned flags) {
  return WithFunction(func, [&](Device& device, Function& function) -> CUresult {
    if (!min_grid || !block_size || limit < 0 || flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned most = function.info.max_threads;
    if (limit) most = std::min(most, static_cast<unsigned>(limit));
    int best_size = 0, best_blocks = 0;
    for (unsigned rounded = RoundToWarps(most); rounded; rounded -= kWarpSize) {
      unsigned threads = std::min(rounded, most);
      size_t wanted = dynamic_of ? dynamic_of(static_cast<int>(threads)) : dynamic;
      int blocks = BlocksPerMultiprocessor(device, function, threads, wanted);
      if (blocks * static_cast<int>(threads) <= best_size * best_blocks) continue;
      best_size = static_cast<int>(threads);
      best_blocks = blocks;
      if (best_size * best_blocks == static_cast<int>(device.ThreadsPerMultiprocessor())) break;
    }
    *block_size = best_size;
    *min_grid = best_blocks * static_cast<int>(device.multiprocessors);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return ActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, 0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
  return ActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize, flags);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return PotentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                            blockSizeLimit, 0);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
  return PotentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                            blockSizeLimit, flags);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  return WithFunction(func, [&](Device& device, Function& function) -> CUresult {
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
        blockSize > static_cast<int>(function.info.max_threads) ||
        numBlocks > static_cast<int>(device.BlocksPerMultiprocessor())) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    size_t each = device.SharedPerMultiprocessor() / static_cast<unsigned>(numBlocks);
    size_t own = SharedOf(device, function.info, 0);
    size_t left = each > own ? each - own : 0;
    *dynamicSmemSize = std::min<size_t>(left, device.MaxSharedOptIn() - function.info.static_shared);
    return CUDA_SUCCESS;
  });
}
