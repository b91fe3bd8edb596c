// A program as nvcc builds it, for libcudart on a real driver: one function a subject, each checking on the
// CPU what the device did. Prints a line a subject and ends with status 0 where all were right. Built twice,
// also with per-thread default streams.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

namespace {

int faults = 0;

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ++faults;                                                         \
      printf("program_test.cu:%d: not so: %s\n", __LINE__, #condition); \
    }                                                                   \
  } while (0)
#define EXPECT_OK(call)                                                                     \
  do {                                                                                      \
    if (cudaError_t e = (call); e != cudaSuccess) {                                         \
      ++faults;                                                                             \
      printf("program_test.cu:%d: %s answered %s\n", __LINE__, #call, cudaGetErrorName(e)); \
    }                                                                                       \
  } while (0)

__device__ int counter = 5;
__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ float weights[4];

struct Line {
  float slope;
  double start;
  char label;
};

__global__ void Scale(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * weights[i & 3];
}

__global__ void Count(int by) { atomicAdd(&counter, by); }

__global__ void DoubleTable() { table[threadIdx.x] *= 2; }

__global__ void Draw(float* out, Line line) {
  out[threadIdx.x] = line.label == 'a' ? static_cast<float>(line.start) + line.slope * threadIdx.x : -1.f;
}

__global__ void Reverse(int* values) {
  extern __shared__ int held[];
  held[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

__global__ void Where(unsigned* out) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

template <typename T>
__global__ void Add(T* values, T by) {
  values[threadIdx.x] += by;
}

void Subject(const char* name, void (*play)()) {
  int before = faults;
  play();
  if (cudaError_t e = cudaGetLastError(); e != cudaSuccess) {
    ++faults;
    printf("program_test.cu: %s left the error %s behind\n", name, cudaGetErrorName(e));
  }
  printf("%s: %s\n", name, faults == before ? "ok" : "FAULTS");
}

void Devices() {
  int count = 0, device = -1, runtime = 0, major = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT(device == 0);
  EXPECT_OK(cudaRuntimeGetVersion(&runtime));
  EXPECT(runtime == CUDART_VERSION);
  cudaDeviceProp properties;
  EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT(properties.major == major && properties.warpSize == 32 && properties.name[0]);
  size_t free_bytes = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes > 0 && free_bytes <= total && total == properties.totalGlobalMem);
  EXPECT(cudaSetDevice(count) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
}

void Symbols() {
  const float given[4] = {1, 2, 3, 4};
  EXPECT_OK(cudaMemcpyToSymbol(weights, given, sizeof(given)));
  std::vector<float> in(1000), out(1000);
  for (int i = 0; i < 1000; ++i) in[i] = static_cast<float>(i);
  float *a = nullptr, *b = nullptr;
  EXPECT_OK(cudaMalloc(&a, 4000));
  EXPECT_OK(cudaMalloc(&b, 4000));
  EXPECT_OK(cudaMemcpy(a, in.data(), 4000, cudaMemcpyHostToDevice));
  Scale<<<8, 128>>>(b, a, 1000);
  EXPECT_OK(cudaMemcpy(out.data(), b, 4000, cudaMemcpyDefault));
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) wrong += out[i] != in[i] * given[i & 3];
  EXPECT(wrong == 0);

  int value = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
  EXPECT(value == 5);
  Count<<<2, 32>>>(3);
  EXPECT_OK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
  EXPECT(value == 5 + 64 * 3);
  DoubleTable<<<1, 8>>>();
  int pair[2];
  EXPECT_OK(cudaMemcpyFromSymbol(pair, table, sizeof(pair), 3 * sizeof(int)));
  EXPECT(pair[0] == 8 && pair[1] == 10);
  void* address = nullptr;
  size_t size = 0;
  EXPECT_OK(cudaGetSymbolAddress(&address, table));
  EXPECT_OK(cudaGetSymbolSize(&size, table));
  EXPECT(size == sizeof(table));
  EXPECT_OK(cudaMemcpy(&value, static_cast<int*>(address) + 7, sizeof(value), cudaMemcpyDeviceToHost));
  EXPECT(value == 16);
  EXPECT_OK(cudaFree(a));
  EXPECT_OK(cudaFree(b));
}

void Launches() {
  unsigned* out = nullptr;
  const dim3 grid(2, 3, 2), block(4, 2, 3);
  const unsigned n = 12 * 24;
  EXPECT_OK(cudaMalloc(&out, n * sizeof(unsigned)));
  Where<<<grid, block>>>(out);
  std::vector<unsigned> host(n);
  EXPECT_OK(cudaMemcpy(host.data(), out, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned i = 0; i < n; ++i) wrong += host[i] != i / 24 * 1000 + i % 24;
  EXPECT(wrong == 0);

  float* line = reinterpret_cast<float*>(out);
  Draw<<<1, 32>>>(line, Line{0.5f, 3.0, 'a'});
  float drawn[32];
  EXPECT_OK(cudaMemcpy(drawn, line, sizeof(drawn), cudaMemcpyDeviceToHost));
  EXPECT(drawn[0] == 3.f && drawn[31] == 18.5f);

  cudaFuncAttributes attributes{};
  EXPECT_OK(cudaFuncGetAttributes(&attributes, Reverse));
  EXPECT(attributes.maxThreadsPerBlock >= 64);
  EXPECT(attributes.ptxVersion == 75);  // what this program is compiled for
  int blocks = 0;
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Reverse, 64, 64 * sizeof(int)));
  EXPECT(blocks >= 1);
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = i;
  EXPECT_OK(cudaMemcpy(out, values, sizeof(values), cudaMemcpyHostToDevice));
  Reverse<<<1, 64, 64 * sizeof(int)>>>(reinterpret_cast<int*>(out));
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 64;
  EXPECT_OK(cudaLaunchKernelEx(&config, Add<int>, reinterpret_cast<int*>(out), 100));
  EXPECT_OK(cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost));
  EXPECT(values[0] == 163 && values[63] == 100);

  Add<int><<<0, 64>>>(reinterpret_cast<int*>(out), 1);
  EXPECT(cudaGetLastError() != cudaSuccess);
  Add<int><<<1, 4096>>>(reinterpret_cast<int*>(out), 1);
  EXPECT(cudaGetLastError() != cudaSuccess);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(out));
}

void Memory() {
  // Rows: 5 of 12 bytes into a pitched area and back into another shape.
  char in[60], out[80];
  for (int i = 0; i < 60; ++i) in[i] = static_cast<char>(i);
  memset(out, '.', sizeof(out));
  void* area = nullptr;
  size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&area, &pitch, 12, 5));
  EXPECT(pitch >= 12);
  EXPECT_OK(cudaMemcpy2D(area, pitch, in, 12, 12, 5, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemset2D(area, pitch, 'x', 2, 5));
  EXPECT_OK(cudaMemcpy2D(out, 16, area, pitch, 12, 5, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < 80; ++i)
    wrong += out[i] != (i % 16 >= 12 ? '.' : i % 16 < 2 ? 'x' : static_cast<char>(i / 16 * 12 + i % 16));
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(area));

  int* pinned = nullptr;
  int* mapped = nullptr;
  EXPECT_OK(cudaHostAlloc(&pinned, 256, cudaHostAllocMapped));
  for (int i = 0; i < 32; ++i) pinned[i] = i;
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  Add<int><<<1, 32>>>(mapped, 7);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(pinned[0] == 7 && pinned[31] == 38);
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_OK(cudaPointerGetAttributes(&attributes, in));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);

  size_t free_bytes = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total));
  void* much = nullptr;
  EXPECT(cudaMalloc(&much, total * 2) == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT_OK(cudaMalloc(&much, 1 << 20));
  EXPECT_OK(cudaPointerGetAttributes(&attributes, much));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
         attributes.devicePointer == much);
  EXPECT_OK(cudaMemset(much, 0x11, 1 << 20));
  int last = 0;
  EXPECT_OK(cudaMemcpy(&last, static_cast<char*>(much) + (1 << 20) - 4, 4, cudaMemcpyDeviceToHost));
  EXPECT(last == 0x11111111);
  EXPECT_OK(cudaFree(much));
  EXPECT_OK(cudaFree(nullptr));
}

void Streams() {
  cudaStream_t one, two;
  cudaEvent_t start, middle, end;
  EXPECT_OK(cudaStreamCreate(&one));
  EXPECT_OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreate(&start));
  EXPECT_OK(cudaEventCreate(&end));
  EXPECT_OK(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
  int* values = nullptr;
  EXPECT_OK(cudaMallocAsync(&values, 128, one));
  EXPECT_OK(cudaMemsetAsync(values, 0, 128, one));
  EXPECT_OK(cudaEventRecord(start, one));
  for (int i = 0; i < 10; ++i) Add<int><<<1, 32, 0, one>>>(values, 1);
  EXPECT_OK(cudaEventRecord(middle, one));
  EXPECT_OK(cudaStreamWaitEvent(two, middle, 0));
  for (int i = 0; i < 10; ++i) Add<int><<<1, 32, 0, two>>>(values, 10);
  struct Order {
    std::atomic<int> calls{0};
    int first = 0, second = 0;
  } order;
  EXPECT_OK(cudaLaunchHostFunc(
      two,
      [](void* p) {
        auto* o = static_cast<Order*>(p);
        o->first = ++o->calls;
      },
      &order));
  EXPECT_OK(cudaStreamAddCallback(
      two,
      [](cudaStream_t, cudaError_t status, void* p) {
        auto* o = static_cast<Order*>(p);
        if (status == cudaSuccess) o->second = ++o->calls;
      },
      &order, 0));
  EXPECT_OK(cudaEventRecord(end, two));
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaStreamSynchronize(two));
  EXPECT(order.first == 1 && order.second == 2);
  EXPECT_OK(cudaStreamQuery(two));
  EXPECT_OK(cudaEventQuery(end));
  float ms = -1;
  EXPECT_OK(cudaEventElapsedTime(&ms, start, end));
  EXPECT(ms >= 0 && ms < 60000);
  int host[32] = {};
  EXPECT_OK(cudaMemcpyAsync(host, values, 128, cudaMemcpyDeviceToHost, one));
  EXPECT_OK(cudaFreeAsync(values, one));
  EXPECT_OK(cudaStreamSynchronize(one));
  EXPECT(host[0] == 110 && host[31] == 110);
  cudaStreamCaptureStatus status;
  EXPECT_OK(cudaStreamIsCapturing(one, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaEventDestroy(start));
  EXPECT_OK(cudaEventDestroy(middle));
  EXPECT_OK(cudaEventDestroy(end));
  EXPECT_OK(cudaStreamDestroy(one));
  EXPECT_OK(cudaStreamDestroy(two));
}

void Graphs() {
  cudaGraph_t built = nullptr;
  if (cudaGraphCreate(&built, 0) == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    printf("  the driver has no graphs\n");
    return;
  }
  // By nodes: the kernel is named by its host function, a variable by its symbol.
  long long* values = nullptr;
  EXPECT_OK(cudaMalloc(&values, 32 * sizeof(long long)));
  long long by = 3;
  void* args[] = {&values, &by};
  cudaMemsetParams fill = {};
  fill.dst = values;
  fill.elementSize = 4;
  fill.width = 64;
  fill.height = 1;
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(Add<long long>);
  kernel.gridDim = 1;
  kernel.blockDim = 32;
  kernel.kernelParams = args;
  long long home[32] = {};
  int from_symbol = -1;
  cudaGraphNode_t first, second, third, fourth;
  EXPECT_OK(cudaGraphAddMemsetNode(&first, built, nullptr, 0, &fill));
  EXPECT_OK(cudaGraphAddKernelNode(&second, built, &first, 1, &kernel));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&third, built, &second, 1, home, values, sizeof(home),
                                     cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaGraphAddMemcpyNodeFromSymbol(&fourth, built, &third, 1, &from_symbol, counter, sizeof(int), 0,
                                             cudaMemcpyDeviceToHost));
  cudaKernelNodeParams kept = {};
  EXPECT_OK(cudaGraphKernelNodeGetParams(second, &kept));
  EXPECT(kept.func == kernel.func && kept.blockDim.x == 32);
  int counted = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&counted, counter, sizeof(int)));
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, built, 0));
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(home[0] == 3 && home[31] == 3 && from_symbol == counted);
  by = 4;
  EXPECT_OK(cudaGraphExecKernelNodeSetParams(exec, second, &kernel));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(home[0] == 4);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(built));

  // By capture, with a copy that no driver sees.
  int from = 0, to = 0;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaMemsetAsync(values, 0, sizeof(home), stream));
  for (int i = 0; i < 10; ++i) Add<long long><<<1, 32, 0, stream>>>(values, i);
  EXPECT_OK(cudaMemcpyAsync(home, values, sizeof(home), cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaMemcpyAsync(&to, &from, sizeof(int), cudaMemcpyHostToHost, stream));
  cudaGraph_t captured = nullptr;
  EXPECT_OK(cudaStreamEndCapture(stream, &captured));
  EXPECT_OK(cudaGraphInstantiate(&exec, captured, 0));
  EXPECT_OK(cudaGraphDestroy(captured));
  for (from = 1; from <= 3; ++from) {
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(home[7] == 45 && to == from);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(values));
}

void Threads() {
  constexpr int kThreads = 4, kLaunches = 50;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&wrong, t] {
      long long* values = nullptr;
      wrong += cudaMalloc(&values, 32 * sizeof(long long)) != cudaSuccess;
      wrong += cudaMemset(values, 0, 32 * sizeof(long long)) != cudaSuccess;
      for (int n = 0; n < kLaunches; ++n) Add<long long><<<1, 32>>>(values, t + 1);
      long long host[32];
      wrong += cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess;
      for (long long value : host) wrong += value != static_cast<long long>(kLaunches) * (t + 1);
      wrong += cudaFree(values) != cudaSuccess;
      wrong += cudaGetLastError() != cudaSuccess;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT(wrong == 0);
}

}  // namespace

int main() {
  Subject("devices", Devices);
  Subject("symbols", Symbols);
  Subject("launches", Launches);
  Subject("memory", Memory);
  Subject("streams", Streams);
  Subject("graphs", Graphs);
  Subject("threads", Threads);
  printf("%d faults\n", faults);
  return faults ? 1 : 0;
}
