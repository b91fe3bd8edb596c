// Pi by throwing darts at a square and counting those inside the circle. Random numbers by Marsaglia's
// xorshift.
static __device__ unsigned Next(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

extern "C" __global__ void monte_carlo(const unsigned* seeds, unsigned* hits, int darts) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = seeds[thread];
  unsigned inside = 0;
  for (int i = 0; i < darts; ++i) {
    const float x = (Next(state) >> 8) * 0x1p-24f;
    const float y = (Next(state) >> 8) * 0x1p-24f;
    if (x * x + y * y < 1.0f) ++inside;
  }
  hits[thread] = inside;
}
