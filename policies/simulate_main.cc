// cuplex-simulate: what tenants of given terms and loads would get of one device, without any device.
//
//   cuplex-simulate SCENARIO.csv [SECONDS]                  the shares and waiting times
//   cuplex-simulate SCENARIO.csv --svg FROM_MS TO_MS        who runs when, as an SVG on standard output
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "policies/quantity.h"
#include "policies/simulator.h"

int main(int argc, char** argv) {
  using namespace cuplex::policies;
  const bool draws = argc == 5 && std::string(argv[2]) == "--svg";
  const auto first = argc == 3 ? ParseInteger(argv[2])
                     : draws   ? ParseInteger(argv[3])
                               : std::optional<int64_t>(10);
  const auto second = draws ? ParseInteger(argv[4]) : std::optional<int64_t>(0);
  constexpr int64_t kLongest = 100'000;
  if (argc < 2 || (argc > 3 && !draws) || !first || !second || *first < (draws ? 0 : 1) ||
      *first > kLongest || (draws && (*second <= *first || *second > kLongest))) {
    fmt::print(stderr,
               "cuplex-simulate: \"SCENARIO.csv [SECONDS]\" or \"SCENARIO.csv --svg FROM_MS TO_MS\" was "
               "expected.\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) {
    fmt::print(stderr, "cuplex-simulate: {} cannot be read.\n", argv[1]);
    return 1;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto read = ReadScenario(text, argv[1]);
  if (!read.ok()) {
    fmt::print(stderr, "{}\n", read.error().sentence);
    return 1;
  }
  Scenario scenario = *std::move(read);
  scenario.length_ns = draws ? *second * 1'000'000 : *first * 1'000'000'000;
  const Simulation simulation = Simulate(scenario);
  const std::string out = draws ? DrawTimeline(scenario, simulation, *first * 1'000'000, *second * 1'000'000)
                                : PrintSimulation(scenario, simulation);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}
