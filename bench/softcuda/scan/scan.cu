// Running sums, the value itself included, in three steps: each block scans its chunk, one block scans the
// chunks' sums, each block adds what lies before it.
#include "bench/softcuda/scan/scan.h"

using namespace cuplex::bench::scan;

// The sum of `value` over the threads up to this one.
static __device__ int BlockScan(int value) {
  __shared__ int of_warp[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int left = __shfl_up_sync(0xffffffff, value, offset);
    if (lane >= offset) value += left;
  }
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int sum = lane < blockDim.x / 32 ? of_warp[lane] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
      const int left = __shfl_up_sync(0xffffffff, sum, offset);
      if (lane >= offset) sum += left;
    }
    of_warp[lane] = sum;
  }
  __syncthreads();
  return warp == 0 ? value : value + of_warp[warp - 1];
}

extern "C" __global__ void scan_chunks(const int4* in, int4* out, int* sums) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  int4 own = in[at];
  own.y += own.x;
  own.z += own.y;
  own.w += own.z;
  const int through = BlockScan(own.w);
  const int before = through - own.w;
  out[at] = make_int4(own.x + before, own.y + before, own.z + before, through);
  if (threadIdx.x == kThreads - 1) sums[blockIdx.x] = through;
}

extern "C" __global__ void scan_sums(int* sums) { sums[threadIdx.x] = BlockScan(sums[threadIdx.x]); }

extern "C" __global__ void add_sums(int4* out, const int* sums) {
  if (blockIdx.x == 0) return;
  const int at = blockIdx.x * kThreads + threadIdx.x;
  const int before = sums[blockIdx.x - 1];
  int4 own = out[at];
  own.x += before;
  own.y += before;
  own.z += before;
  own.w += before;
  out[at] = own;
}
