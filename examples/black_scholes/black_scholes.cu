// Every thread prices options far apart, as many as the grid leaves it: the grid is as large as the device is
// wide.

#include <cmath>
#include <cstdio>

#include "examples/black_scholes/black_scholes_reference.h"
#include "examples/common/runtime.h"

extern "C" {
__constant__ cuplex::examples::black_scholes::Market market;
}

namespace {

__device__ float Normal(float x) { return 0.5f * erfcf(-0.707106781f * x); }

}  // namespace

extern "C" __global__ void black_scholes(const float* spots, const float* strikes, const float* years,
                                         float* calls, float* puts, unsigned options) {
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < options; i += stride) {
    const float spot = spots[i];
    const float spread = market.volatility * sqrtf(years[i]);
    const float d1 =
        (logf(spot / strikes[i]) + (market.rate + 0.5f * market.volatility * market.volatility) * years[i]) /
        spread;
    const float d2 = d1 - spread;
    const float discounted = strikes[i] * expf(-market.rate * years[i]);
    calls[i] = spot * Normal(d1) - discounted * Normal(d2);
    puts[i] = discounted * Normal(-d2) - spot * Normal(-d1);
  }
}

namespace cuplex::examples::black_scholes {
namespace {

bool Run(const Options& options) {
  const std::size_t count = options.size;
  const Problem problem(count);
  const std::vector<double> expected = Reference(problem);
  std::printf("pricing %zu calls and puts at a rate of %g and a volatility of %g\n", count, kMarket.rate,
              kMarket.volatility);

  int device = 0;
  int processors = 0;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  Check(cudaMemcpyToSymbol(market, &kMarket, sizeof(kMarket)), "cudaMemcpyToSymbol");
  const DeviceArray<float> spots(problem.spots);
  const DeviceArray<float> strikes(problem.strikes);
  const DeviceArray<float> years(problem.years);
  const DeviceArray<float> both(2 * count);

  std::vector<float> prices(2 * count);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "price, copy out");
      ::black_scholes<<<4 * processors, kThreads>>>(spots.get(), strikes.get(), years.get(), both.get(),
                                                    both.get() + count, static_cast<unsigned>(count));
      CheckLaunch("black_scholes");
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
