// Batcher's bitonic network: what fits into shared memory is sorted there, longer strides go over global
// memory.
#include "bench/softcuda/bitonic_sort/bitonic_sort.h"

using namespace cuplex::bench::bitonic_sort;

static __device__ void Order(unsigned& a, unsigned& b, bool ascending) {
  if ((a > b) == ascending) {
    const unsigned other = a;
    a = b;
    b = other;
  }
}

// All steps with strides below kChunk, for sequences of lengths from `first` to `last`.
extern "C" __global__ void sort_shared(const unsigned* in, unsigned* out, unsigned first, unsigned last) {
  __shared__ unsigned keys[kChunk];
  const unsigned base = blockIdx.x * kChunk;
  keys[threadIdx.x] = in[base + threadIdx.x];
  keys[threadIdx.x + kThreads] = in[base + threadIdx.x + kThreads];
  for (unsigned length = first; length <= last; length *= 2) {
    for (unsigned stride = min(length, kChunk) / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      Order(keys[at], keys[at + stride], ((base + at) & length) == 0);
    }
  }
  __syncthreads();
  out[base + threadIdx.x] = keys[threadIdx.x];
  out[base + threadIdx.x + kThreads] = keys[threadIdx.x + kThreads];
}

extern "C" __global__ void merge_global(unsigned* keys, unsigned length, unsigned stride) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned at = 2 * thread - (thread & (stride - 1));
  Order(keys[at], keys[at + stride], (at & length) == 0);
}
