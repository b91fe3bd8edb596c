// SHA-256 of many messages of 64 bytes, one a thread.
#include "bench/softcuda/sha256/sha256.h"

using namespace cuplex::bench::sha256;

__constant__ uint32_t kRounds[64] = {CUPLEX_BENCH_SHA256_ROUNDS};

static __device__ uint32_t Rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

// Takes one block of 16 words, which it overwrites, into `state`.
static __device__ void Compress(uint32_t (&state)[8], uint32_t (&w)[16]) {
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    if (i >= 16) {
      const uint32_t x = w[(i + 1) % 16];
      const uint32_t y = w[(i + 14) % 16];
      const uint32_t s0 = Rotate(x, 7) ^ Rotate(x, 18) ^ x >> 3;
      const uint32_t s1 = Rotate(y, 17) ^ Rotate(y, 19) ^ y >> 10;
      w[i % 16] += s0 + w[(i + 9) % 16] + s1;
    }
    const uint32_t t1 =
        h + (Rotate(e, 6) ^ Rotate(e, 11) ^ Rotate(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i % 16];
    const uint32_t t2 = (Rotate(a, 2) ^ Rotate(a, 13) ^ Rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

extern "C" __global__ void sha256(const uint32_t* messages, uint32_t* digests, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t state[8] = {CUPLEX_BENCH_SHA256_START};
  uint32_t w[16];
  for (int k = 0; k < 16; ++k) w[k] = __byte_perm(messages[i * kWords + k], 0, 0x0123);
  Compress(state, w);
  for (int k = 0; k < 16; ++k) w[k] = 0;
  w[0] = 0x80000000;
  w[15] = kWords * 32;  // the message's length in bits
  Compress(state, w);
  for (int k = 0; k < 8; ++k) digests[i * kDigest + k] = __byte_perm(state[k], 0, 0x0123);
}
