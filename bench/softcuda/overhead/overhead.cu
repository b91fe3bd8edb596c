// What is not arithmetic: a launch of nothing; a loop with a barrier in each round, and the same loop
// without.
extern "C" __global__ void nothing() {}

extern "C" __global__ void barriers(unsigned* out, int rounds) {
  unsigned x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    x = x * 1664525 + 1013904223;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void no_barriers(unsigned* out, int rounds) {
  unsigned x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
