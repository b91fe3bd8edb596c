#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cassert>
#include <cstdio>
namespace cg = cooperative_groups;

struct Pair {
  float a;
  double b;
  int c[3];
};

__device__ int counter = 7;
__device__ float table_of[4] = {1.0f, 2.5f, -3.0f, 0.0f};
__constant__ double factors[2][3] = {{1, 2, 3}, {4, 5}};
__device__ int* pointer_to = &counter;
__device__ const char* word = "hello";

extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void __launch_bounds__(256, 2) reduce(const float* in, float* out, int n) {
  __shared__ float part[256];
  extern __shared__ float more[];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s >= 32; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  float v = part[threadIdx.x & 31];
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
  unsigned who = __ballot_sync(~0u, v > 0);
  if (threadIdx.x == 0) {
    atomicAdd(out, v);
    more[0] = who;
    out[1] = more[0];
  }
}

extern "C" __global__ void by_value(Pair p, double* out, short s, char c) {
  out[0] = p.a * p.b + p.c[threadIdx.x % 3] + factors[s & 1][c & 1] + table_of[threadIdx.x & 3] + *pointer_to;
}

typedef int (*binary)(int, int);
__device__ __noinline__ int plus_(int a, int b) { return a + b; }
__device__ __noinline__ int times_(int a, int b) { return a * b; }
__device__ binary choices[2] = {plus_, times_};

extern "C" __global__ void calls(int* x, int k) {
  printf("value %d %s\n", x[0], word);
  assert(x[1] != 3);
  x[threadIdx.x] = choices[k](x[0], x[1]);
  x[2] = plus_(x[3], x[4]);
}

extern "C" __global__ void local_array(int* x, int n) {
  int a[32];
  for (int i = 0; i < n; ++i) a[(i * 7) & 31] = x[i];
  int* p = n > 5 ? a : x;
  x[n] = p[x[0] & 31];
}

extern "C" __global__ void texture_read(cudaTextureObject_t t, float4* out, cudaSurfaceObject_t s) {
  out[threadIdx.x] = tex2D<float4>(t, threadIdx.x + 0.5f, 2.0f);
  surf2Dwrite(make_float2(1, 2), s, 8, 4);
}

extern "C" __global__ void halves(half2* x, const half2* y) {
  x[threadIdx.x] = __hfma2(x[threadIdx.x], y[threadIdx.x], __float2half2_rn(2.0f));
}

extern "C" __global__ void grid_wide(int* x) {
  auto grid = cg::this_grid();
  x[grid.thread_rank()] = 1;
  grid.sync();
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  x[grid.thread_rank()] += tile.shfl_xor(x[0], 3);
  tile.sync();
}

extern "C" __global__ void switching(int* x, float* f) {
  switch (x[threadIdx.x]) {
    case 0:
      f[0] = sinf(f[1]);
      break;
    case 1:
      f[0] = expf(f[2]);
      break;
    case 2:
      f[1] = f[3] / f[4];
      break;
    case 3:
      f[2] = __fdividef(f[1], f[5]);
      break;
    case 4:
      f[7] = logf(f[1]);
      break;
    case 5:
      f[8] = sqrtf(f[1]);
      break;
    default:
      f[9] = 0;
  }
  asm volatile(
      "{ .reg .pred p; .reg .b32 t<3>;\n setp.lt.and.s32 p, %1, 3, 1;\n @!p bra DONE;\n mov.b32 t1, 5;\n"
      " st.global.b32 [%0+4], t1;\n DONE:\n }" ::"l"(x),
      "r"(x[1]));
  asm volatile("{ .reg .pred p; DONE: setp.gt.s32 p, %1, 3; @p bra DONE; mov.b64 {%0, _}, %2; }"
               : "=r"(x[5])
               : "r"(x[1]), "l"(x));
}
