// A matrix in compressed rows times a vector, a warp a row.
extern "C" __global__ void spmv(const int* begins, const int* columns, const float* values,
                                const float* vector, float* result, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int end = begins[row + 1];
  float sum = 0;
  for (int i = begins[row] + lane; i < end; i += 32) sum += values[i] * vector[columns[i]];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) result[row] = sum;
}
