// The kernels of the conformance bodies. kernels.ptx is made from this file, see CMakeLists.txt.
#include "tests/conformance/kernel_types.h"

using cuplex::conformance::Link;
using cuplex::conformance::Mixed;

__constant__ unsigned table[4] = {11, 22, 33, 44};
__device__ unsigned counter = 7;
__device__ unsigned zeroed[3];

/// values[i] += amount
extern "C" __global__ void add(unsigned* values, unsigned amount, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += amount;
}

/// *sum += all values
extern "C" __global__ void sum(const unsigned* values, unsigned count, unsigned long long* sum) {
  const unsigned step = gridDim.x * blockDim.x;
  unsigned long long mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) mine += values[i];
  atomicAdd(sum, mine);
}

/// Where each thread of a grid of any shape is: six numbers a thread, in the order of the grid's threads.
extern "C" __global__ void where(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned* mine = out + 6 * (block * (blockDim.x * blockDim.y * blockDim.z) + thread);
  mine[0] = blockIdx.x;
  mine[1] = blockIdx.y;
  mine[2] = blockIdx.z;
  mine[3] = threadIdx.x;
  mine[4] = threadIdx.y;
  mine[5] = threadIdx.z;
}

/// A struct with holes, by value.
extern "C" __global__ void take_struct(char before, Mixed mixed, unsigned short after, double* out) {
  out[0] = before;
  out[1] = mixed.letter;
  out[2] = mixed.real;
  out[3] = mixed.shorts[0];
  out[4] = mixed.shorts[1];
  out[5] = mixed.shorts[2];
  out[6] = mixed.whole;
  out[7] = after;
}

/// The values of a linked list in device memory, added.
extern "C" __global__ void follow(const Link* link, unsigned long long* out) {
  unsigned long long sum = 0;
  for (; link; link = link->next) sum += link->value;
  *out = sum;
}

extern "C" __global__ void use_variables(unsigned* out) {
  for (int i = 0; i < 4; ++i) out[i] = table[i];
  out[4] = counter;
  out[5] = zeroed[0] | zeroed[1] | zeroed[2];
  counter += 1;
}

/// The block's numbers in reverse, through dynamic shared memory.
extern "C" __global__ void reverse(unsigned* values) {
  extern __shared__ unsigned shared[];
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

/// Works for a while, writing to memory on the way, and then writes `value`.
extern "C" __global__ void slow_write(volatile unsigned* at, unsigned value, unsigned turns) {
  unsigned x = value;
  for (unsigned i = 0; i < turns; ++i) {
    x = x * 1664525u + 1013904223u;
    at[1] = x;
  }
  at[0] = value;
}

extern "C" __global__ void copy_word(unsigned* to, const unsigned* from) { *to = *from; }

/// Writes wherever it is told to.
extern "C" __global__ void wild_write(unsigned long long address, unsigned value) {
  *reinterpret_cast<unsigned*>(address) = value;
}

extern "C" __global__ void wild_read(unsigned long long address, unsigned* out) {
  *out = *reinterpret_cast<const unsigned*>(address);
}

extern "C" __global__ void __launch_bounds__(64) small_blocks(unsigned* out) { *out = blockDim.x; }

extern "C" __global__ void nothing() {}

extern "C" __global__ void static_shared(unsigned* out) {
  __shared__ unsigned kept[256];
  kept[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned all = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) all += kept[i];
    *out = all;
  }
}
