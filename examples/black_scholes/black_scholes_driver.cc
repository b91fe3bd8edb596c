// black_scholes.cu through the driver API.

#include <cstdio>

#include "examples/black_scholes/black_scholes_ptx.h"
#include "examples/black_scholes/black_scholes_reference.h"
#include "examples/common/driver.h"

namespace cuplex::examples::black_scholes {
namespace {

bool Run(const Options& options) {
  const std::size_t count = options.size;
  const Problem problem(count);
  const std::vector<double> expected = Reference(problem);
  std::printf("pricing %zu calls and puts at a rate of %g and a volatility of %g\n", count, kMarket.rate,
              kMarket.volatility);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("black_scholes");
  cu.MemcpyHtoD(module.GetGlobal("market", sizeof(kMarket)), &kMarket, sizeof(kMarket));
  const int processors = context.DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const DeviceArray<float> spots(cu, problem.spots);
  const DeviceArray<float> strikes(cu, problem.strikes);
  const DeviceArray<float> years(cu, problem.years);
  const DeviceArray<float> both(cu, 2 * count);

  std::vector<float> prices(2 * count);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "price, copy out");
      kernel.Launch({4 * static_cast<unsigned>(processors)}, {kThreads}, 0, nullptr, spots.address(),
                    strikes.address(), years.address(), both.address(),
                    both.address() + count * sizeof(float), static_cast<unsigned>(count));
      both.CopyTo(&prices);
    }
    difference = Compare(prices, expected);
  }
  std::printf("option 0: call %.3f, put %.3f\n", prices[0], prices[count]);
  return Report(kDescription.name, "prices", difference, prices);
}

}  // namespace
}  // namespace cuplex::examples::black_scholes

int main(int argc, char** argv) {
  namespace job = cuplex::examples::black_scholes;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
