// texture_rotate.cu through the driver API.

#include <cmath>
#include <cstdio>

#include "examples/common/driver.h"
#include "examples/texture_rotate/texture_rotate_ptx.h"
#include "examples/texture_rotate/texture_rotate_reference.h"

namespace cuplex::examples::texture_rotate {
namespace {

constexpr unsigned kSurfaces = 0x02;  // CUDA_ARRAY3D_SURFACE_LDST
constexpr unsigned kAsElements = 0x01,
                   kNormalized = 0x02;  // CU_TRSF_READ_AS_INTEGER, ..._NORMALIZED_COORDINATES

/// An array of floats in two dimensions.
class Picture {
 public:
  Picture(const Driver& driver, unsigned columns, unsigned rows, unsigned flags)
      : driver_(driver), columns_(columns), rows_(rows) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {};
    shape.Width = columns;
    shape.Height = rows;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    shape.Flags = flags;
    driver_.Array3DCreate(&array_, &shape);
  }
  ~Picture() { driver_.ArrayDestroy.Try(array_); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  CUDA_RESOURCE_DESC resource() const {
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array_;
    return resource;
  }
  void CopyFrom(const std::vector<float>& texels) const {
    CUDA_MEMCPY2D copy = Rows();
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = texels.data();
    copy.srcPitch = copy.WidthInBytes;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array_;
    driver_.Memcpy2D(&copy);
  }
  void CopyTo(std::vector<float>* texels) const {
    CUDA_MEMCPY2D copy = Rows();
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array_;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = texels->data();
    copy.dstPitch = copy.WidthInBytes;
    driver_.Memcpy2D(&copy);
  }

 private:
  CUDA_MEMCPY2D Rows() const {
    CUDA_MEMCPY2D copy = {};
    copy.WidthInBytes = columns_ * sizeof(float);
    copy.Height = rows_;
    return copy;
  }

  const Driver& driver_;
  unsigned columns_, rows_;
  CUarray array_ = nullptr;
};

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<double> expected = Reference(problem);
  std::printf("turning a picture of %u x %u, in blocks of %u x %u threads\n", problem.rows, problem.columns,
              kBlockHeight, kBlockWidth);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("texture_rotate");
  const Picture picture(cu, problem.columns, problem.rows, 0);
  const Picture result(cu, problem.columns, problem.rows, kSurfaces);
  picture.CopyFrom(problem.picture);
  const CUDA_RESOURCE_DESC from = picture.resource(), to = result.resource();
  CUDA_TEXTURE_DESC how = {};
  how.addressMode[0] = how.addressMode[1] = CU_TR_ADDRESS_MODE_WRAP;
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  how.flags = kAsElements | kNormalized;
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  cu.TexObjectCreate(&texture, &from, &how, nullptr);
  cu.SurfObjectCreate(&surface, &to);

  std::vector<float> turned(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "turn");
      const Extent grid = {Blocks(problem.columns, kBlockWidth), Blocks(problem.rows, kBlockHeight)};
      kernel.Launch(grid, {kBlockWidth, kBlockHeight}, 0, nullptr, texture, surface, problem.columns,
                    problem.rows, static_cast<float>(std::cos(kAngle)), static_cast<float>(std::sin(kAngle)));
      cu.StreamSynchronize(nullptr);
    }
    result.CopyTo(&turned);
    difference = Compare(turned, expected);
  }
  cu.SurfObjectDestroy(surface);
  cu.TexObjectDestroy(texture);
  return Report(kDescription.name, "turned", difference, turned);
}

}  // namespace
}  // namespace cuplex::examples::texture_rotate

int main(int argc, char** argv) {
  namespace job = cuplex::examples::texture_rotate;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
