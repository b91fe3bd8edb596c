// How often each byte occurs: every block counts in shared memory and adds its counts to the whole.
#include "bench/softcuda/histogram/histogram.h"

using namespace cuplex::bench::histogram;

extern "C" __global__ void histogram(const unsigned* words, unsigned* counts, int word_count) {
  __shared__ unsigned of_block[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) of_block[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < word_count; i += gridDim.x * blockDim.x) {
    const unsigned word = words[i];
    atomicAdd(&of_block[word & 255], 1);
    atomicAdd(&of_block[word >> 8 & 255], 1);
    atomicAdd(&of_block[word >> 16 & 255], 1);
    atomicAdd(&of_block[word >> 24], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(&counts[i], of_block[i]);
}
