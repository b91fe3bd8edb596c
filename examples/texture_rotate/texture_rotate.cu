// A picture is turned: each thread reads one place of it from a texture, which repeats the picture beyond its
// rims and mixes four neighbours, and writes one texel of a surface.

#include <cmath>
#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/texture_rotate/texture_rotate_reference.h"

extern "C" __global__ void texture_rotate(cudaTextureObject_t picture, cudaSurfaceObject_t turned,
                                          unsigned columns, unsigned rows, float cosine, float sine) {
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= columns || row >= rows) return;
  const float u = static_cast<float>(column) / static_cast<float>(columns) - 0.5f;
  const float v = static_cast<float>(row) / static_cast<float>(rows) - 0.5f;
  const float value = tex2D<float>(picture, u * cosine - v * sine + 0.5f, v * cosine + u * sine + 0.5f);
  surf2Dwrite(value, turned, static_cast<int>(column * sizeof(float)), static_cast<int>(row));
}

namespace cuplex::examples::texture_rotate {
namespace {

/// An array of floats in two dimensions.
class Picture {
 public:
  Picture(unsigned columns, unsigned rows, unsigned flags) : columns_(columns), rows_(rows) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    Check(cudaMallocArray(&array_, &format, columns, rows, flags), "cudaMallocArray");
  }
  ~Picture() { cudaFreeArray(array_); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  cudaResourceDesc resource() const {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    return resource;
  }
  void CopyFrom(const std::vector<float>& texels) const {
    const std::size_t row = columns_ * sizeof(float);
    Check(cudaMemcpy2DToArray(array_, 0, 0, texels.data(), row, row, rows_, cudaMemcpyHostToDevice),
          "cudaMemcpy2DToArray");
  }
  void CopyTo(std::vector<float>* texels) const {
    const std::size_t row = columns_ * sizeof(float);
    Check(cudaMemcpy2DFromArray(texels->data(), row, array_, 0, 0, row, rows_, cudaMemcpyDeviceToHost),
          "cudaMemcpy2DFromArray");
  }

 private:
  unsigned columns_, rows_;
  cudaArray_t array_ = nullptr;
};

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<double> expected = Reference(problem);
  std::printf("turning a picture of %u x %u, in blocks of %u x %u threads\n", problem.rows, problem.columns,
              kBlockHeight, kBlockWidth);

  const Picture picture(problem.columns, problem.rows, cudaArrayDefault);
  const Picture result(problem.columns, problem.rows, cudaArraySurfaceLoadStore);
  picture.CopyFrom(problem.picture);
  const cudaResourceDesc from = picture.resource(), to = result.resource();
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
  how.filterMode = cudaFilterModeLinear;
  how.readMode = cudaReadModeElementType;
  how.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  cudaSurfaceObject_t surface = 0;
  Check(cudaCreateTextureObject(&texture, &from, &how, nullptr), "cudaCreateTextureObject");
  Check(cudaCreateSurfaceObject(&surface, &to), "cudaCreateSurfaceObject");

  std::vector<float> turned(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "turn");
      const dim3 grid(Blocks(problem.columns, kBlockWidth), Blocks(problem.rows, kBlockHeight));
      ::texture_rotate<<<grid, dim3(kBlockWidth, kBlockHeight)>>>(
          texture, surface, problem.columns, problem.rows, static_cast<float>(std::cos(kAngle)),
          static_cast<float>(std::sin(kAngle)));
      CheckLaunch("texture_rotate");
      Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    result.CopyTo(&turned);
    difference = Compare(turned, expected);
  }
  Check(cudaDestroySurfaceObject(surface), "cudaDestroySurfaceObject");
  Check(cudaDestroyTextureObject(texture), "cudaDestroyTextureObject");
  return Report(kDescription.name, "turned", difference, turned);
}

}  // namespace
}  // namespace cuplex::examples::texture_rotate

int main(int argc, char** argv) {
  namespace job = cuplex::examples::texture_rotate;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
