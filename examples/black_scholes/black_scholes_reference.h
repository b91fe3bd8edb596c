// Prices of European options by the formula of Black and Scholes: the input and what the CPU expects. Any
// thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::black_scholes {

inline constexpr Description kDescription{
    .name = "black_scholes",
    .purpose = "Prices calls and puts by the formula of Black and Scholes.",
    .size_meaning = "options to price",
    .size = 50'003,
    .smallest = 1,
    .largest = 1 << 26,
};

inline constexpr unsigned kThreads = 128;  // a block

/// What all options share. The module has one in constant memory, named "market".
struct Market {
  float rate;        // a year, without risk
  float volatility;  // a year
};
inline constexpr Market kMarket = {.rate = 0.02f, .volatility = 0.30f};

struct Problem {
  explicit Problem(std::size_t options) : spots(options), strikes(options), years(options) {
    Numbers numbers(11);
    std::generate(spots.begin(), spots.end(), [&] { return numbers.Between(5, 30); });
    std::generate(strikes.begin(), strikes.end(), [&] { return numbers.Between(1, 100); });
    std::generate(years.begin(), years.end(), [&] { return numbers.Between(0.25f, 10); });
  }

  std::vector<float> spots;
  std::vector<float> strikes;
  std::vector<float> years;
};

/// The calls' prices, then the puts'. In double; the puts from the calls, as their parity has it.
inline std::vector<double> Reference(const Problem& problem) {
  const std::size_t options = problem.spots.size();
  std::vector<double> prices(2 * options);
  for (std::size_t i = 0; i < options; ++i) {
    const double spot = problem.spots[i];
    const double strike = problem.strikes[i];
    const double spread = kMarket.volatility * std::sqrt(double{problem.years[i]});
    const double discounted = strike * std::exp(-double{kMarket.rate} * problem.years[i]);
    const double d1 = std::log(spot / discounted) / spread + spread / 2;
    const auto normal = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
    prices[i] = spot * normal(d1) - discounted * normal(d1 - spread);
    prices[options + i] = prices[i] - spot + discounted;
  }
  return prices;
}

/// A price is a difference of two amounts up to 100, each right to some units in the last place of a float.
inline std::optional<Difference> Compare(const std::vector<float>& prices,
                                         const std::vector<double>& expected) {
  return FirstFar(prices, expected, 1e-5, 3e-5);
}

}  // namespace cuplex::examples::black_scholes
