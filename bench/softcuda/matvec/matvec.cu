// A warp computes one element of the result: its lanes walk along the row and add up by shuffles.
extern "C" __global__ void matvec(const float* matrix, const float* vector, float* result, int rows,
                                  int columns) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  const int lane = threadIdx.x % warpSize;
  if (row >= rows) return;
  const float* elements = matrix + static_cast<size_t>(row) * columns;
  float sum = 0;
  for (int i = lane; i < columns; i += warpSize) sum += elements[i] * vector[i];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) result[row] = sum;
}
