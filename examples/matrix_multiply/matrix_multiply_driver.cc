// matrix_multiply.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/matrix_multiply/matrix_multiply_ptx.h"
#include "examples/matrix_multiply/matrix_multiply_reference.h"

namespace cuplex::examples::matrix_multiply {
namespace {

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<float> expected = Reference(problem);
  std::printf("%u x %u times %u x %u, in tiles of %u x %u\n", problem.rows, problem.inner, problem.inner,
              problem.columns, kTile, kTile);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("matrix_multiply");
  const DeviceArray<float> a(cu, problem.a);
  const DeviceArray<float> b(cu, problem.b);
  const DeviceArray<float> c(cu, expected.size());

  std::vector<float> product(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "multiply, copy out");
      kernel.Launch({Tiles(problem.columns), Tiles(problem.rows)}, {kTile, kTile}, 0, nullptr, a.address(),
                    b.address(), c.address(), problem.rows, problem.inner, problem.columns);
      c.CopyTo(&product);
    }
    difference = FirstDifference(product, expected);
  }
  return Report(kDescription.name, "product", difference, product);
}

}  // namespace
}  // namespace cuplex::examples::matrix_multiply

int main(int argc, char** argv) {
  namespace job = cuplex::examples::matrix_multiply;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
