// One stable pass over four bits: count the digits of each chunk, scan the counts digit by digit, scatter.
// Keys with the same digit in a warp find each other by ballots.
#include "bench/softcuda/radix_sort/radix_sort.h"

using namespace cuplex::bench::radix_sort;

extern "C" __global__ void count_digits(const unsigned* keys, unsigned* counts, int shift) {
  __shared__ unsigned of_block[kDigits];
  if (threadIdx.x < kDigits) of_block[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    atomicAdd(&of_block[keys[blockIdx.x * kChunk + i] >> shift & (kDigits - 1)], 1);
  }
  __syncthreads();
  if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = of_block[threadIdx.x];
}

// Turns the counts into the sums of those before them; one block.
extern "C" __global__ void scan_counts(unsigned* counts, int count) {
  __shared__ unsigned of_warp[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int share = count / kScanThreads;
  unsigned* own = counts + threadIdx.x * share;
  unsigned sum = 0;
  for (int i = 0; i < share; ++i) sum += own[i];
  unsigned through = sum;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned left = __shfl_up_sync(0xffffffff, through, offset);
    if (lane >= offset) through += left;
  }
  if (lane == 31) of_warp[warp] = through;
  __syncthreads();
  if (warp == 0) {
    unsigned warps = of_warp[lane];
    for (int offset = 1; offset < 32; offset *= 2) {
      const unsigned left = __shfl_up_sync(0xffffffff, warps, offset);
      if (lane >= offset) warps += left;
    }
    of_warp[lane] = warps;
  }
  __syncthreads();
  unsigned before = through - sum + (warp == 0 ? 0 : of_warp[warp - 1]);
  for (int i = 0; i < share; ++i) {
    const unsigned here = own[i];
    own[i] = before;
    before += here;
  }
}

extern "C" __global__ void scatter(const unsigned* in, unsigned* out, const unsigned* offsets, int shift) {
  __shared__ unsigned next[kDigits];  // where the block's next key with this digit goes
  __shared__ unsigned of_warp[kWarps]
                             [kDigits];  // how many keys a warp has of each digit, then of those before it
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < kDigits) next[threadIdx.x] = offsets[threadIdx.x * gridDim.x + blockIdx.x];
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    if (threadIdx.x < kWarps * kDigits) of_warp[threadIdx.x / kDigits][threadIdx.x % kDigits] = 0;
    __syncthreads();
    const unsigned key = in[blockIdx.x * kChunk + i];
    const unsigned digit = key >> shift & (kDigits - 1);
    unsigned peers = 0xffffffff;
    for (int bit = 0; bit < kBits; ++bit) {
      const bool set = digit >> bit & 1;
      const unsigned with = __ballot_sync(0xffffffff, set);
      peers &= set ? with : ~with;
    }
    const unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (rank == 0) of_warp[warp][digit] = __popc(peers);
    __syncthreads();
    if (threadIdx.x < kDigits) {
      unsigned at = next[threadIdx.x];
      for (int w = 0; w < kWarps; ++w) {
        const unsigned count = of_warp[w][threadIdx.x];
        of_warp[w][threadIdx.x] = at;
        at += count;
      }
      next[threadIdx.x] = at;
    }
    __syncthreads();
    out[of_warp[warp][digit] + rank] = key;
    __syncthreads();
  }
}
