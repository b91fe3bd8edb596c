// cuplex-simulate: what tenants of given terms and loads would get of one device, without any device.
//
// Exit status: 0 done; 1 a file cannot be read or says what cannot be; 2 the command line is not understood.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include "policies/load.h"
#include "policies/policy.h"
#include "policies/quantity.h"
#include "policies/simulator.h"

namespace cuplex::policies {
namespace {

namespace options = boost::program_options;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int64_t kLongest = 100'000;  // seconds, or ms of a picture

constexpr const char* kHeading = R"(cuplex-simulate SCENARIO.csv [SECONDS] [--svg FROM_MS TO_MS]
cuplex-simulate SCENARIO.csv --load LOAD.csv ...
cuplex-simulate --policy POLICY.yaml --load LOAD.csv ...

What each tenant would get of one device, decided by the scheduler of the server: its share of the time,
overall and in the least and the most of any second, kernels ended and still waiting at the end, and from
when a kernel was asked for to its end. Loads are made up, by the lines of a scenario
(policies/scenarios/), or recorded from a server (cuplexctl record).

Options)";

struct Line {
  std::string scenario, policy, load;
  std::string device = "0";
  std::optional<int64_t> seconds;
  std::optional<std::pair<int64_t, int64_t>> picture_ms;
};

options::options_description Options(Line* line) {
  options::options_description all(kHeading);
  auto option = all.add_options();
  option("help,h", "this text");
  option("policy,p", options::value(&line->policy)->value_name("FILE"),
         "tenants have the terms of this policy");
  option("load,l", options::value(&line->load)->value_name("FILE"),
         "tenants ask for what was recorded in this file");
  option("device,d", options::value(&line->device)->value_name("N")->default_value("0"),
         "of the policy's and the record's devices");
  option("seconds,s", options::value<std::string>()->value_name("N"),
         "how long, 1 to 100000; else 10, or as long as the record");
  option("svg", options::value<std::vector<std::string>>()->multitoken()->value_name("FROM_MS TO_MS"),
         "draw who runs when, as an SVG on standard output");
  return all;
}

Result<int64_t> Number(const std::string& text, const char* what, int64_t least) {
  const auto n = ParseInteger(text);
  if (!n || *n < least || *n > kLongest)
    return Fail(Blame::kCaller, "{} is \"{}\"; a whole number from {} to {} was expected.", what, text, least,
                kLongest);
  return *n;
}

Result<Line> ReadLine(int argc, char** argv, bool* help, std::string* usage) {
  Line line;
  const options::options_description shown = Options(&line);
  std::ostringstream text;
  text << shown;
  *usage = text.str();
  options::options_description all;
  all.add(shown).add_options()("words", options::value<std::vector<std::string>>());
  options::positional_options_description words;
  words.add("words", -1);
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc, argv).options(all).positional(words).run(), given);
    options::notify(given);
  } catch (const options::error& e) {
    return Fail(Blame::kCaller, "{}.", e.what());
  }
  *help = given.count("help") != 0;
  if (*help) return line;

  auto rest =
      given.count("words") ? given["words"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (line.policy.empty()) {
    if (rest.empty()) return Fail(Blame::kCaller, "Nothing was given; a scenario or --policy was expected.");
    line.scenario = rest.front();
    rest.erase(rest.begin());
  } else if (line.load.empty()) {
    return Fail(Blame::kCaller, "A policy says nothing of loads; --load was expected with it.");
  }
  if (given.count("seconds")) rest.push_back(given["seconds"].as<std::string>());
  if (rest.size() > 1)
    return Fail(Blame::kCaller, "\"{}\" is one word too many; SCENARIO.csv [SECONDS] was expected.", rest[1]);
  if (!rest.empty()) {
    TRY(line.seconds, Number(rest[0], "The time", 1));
  }
  if (given.count("svg")) {
    const auto& range = given["svg"].as<std::vector<std::string>>();
    if (range.size() != 2)
      return Fail(Blame::kCaller, "--svg has {} values; FROM_MS TO_MS was expected.", range.size());
    TRY(const int64_t from, Number(range[0], "--svg's begin", 0));
    TRY(const int64_t to, Number(range[1], "--svg's end", from + 1));
    line.picture_ms = {from, to};
  }
  return line;
}

Result<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return Fail(Blame::kSystem, "{} cannot be read.", path);
  return text;
}

Result<Scenario> MakeScenario(const Line& line) {
  const auto number = ParseInteger(line.device);
  RecordedLoad load;
  if (!line.load.empty()) {
    if (!number || *number < 0 || *number > 255)
      return Fail(Blame::kCaller, "--device is \"{}\"; a number from 0 to 255 was expected.", line.device);
    TRY(const std::string text, ReadAll(line.load));
    TRY(load, ReadLoad(text, line.load, static_cast<int>(*number)));
  }
  if (!line.policy.empty()) {
    TRY(const Policy policy, LoadPolicy(line.policy, SystemAccounts()));
    return ScenarioOf(policy, static_cast<int>(*number), load);
  }
  TRY(const std::string text, ReadAll(line.scenario));
  TRY(Scenario scenario, ReadScenario(text, line.scenario));
  if (!line.load.empty()) TRY(TakeLoad(load, scenario));
  return scenario;
}

int Run(int argc, char** argv) {
  bool help = false;
  std::string usage;
  const auto line = ReadLine(argc, argv, &help, &usage);
  if (!line.ok()) {
    std::cerr << "cuplex-simulate: " << line.error().sentence
              << "\n`cuplex-simulate --help` says what there is.\n";
    return kUsage;
  }
  if (help) {
    std::cout << usage;
    return kDone;
  }
  auto scenario = MakeScenario(*line);
  if (!scenario.ok()) {
    std::cerr << scenario.error().sentence << '\n';
    return kFailed;
  }
  if (line->seconds) scenario->length_ns = *line->seconds * 1'000'000'000;
  const auto& picture = line->picture_ms;
  if (picture && !line->seconds) scenario->length_ns = picture->second * 1'000'000;
  const Simulation simulation = Simulate(*scenario);
  const std::string out =
      picture ? DrawTimeline(*scenario, simulation, picture->first * 1'000'000, picture->second * 1'000'000)
              : PrintSimulation(*scenario, simulation);
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0 ? kDone
                                                                                                  : kFailed;
}

}  // namespace
}  // namespace cuplex::policies

int main(int argc, char** argv) { return cuplex::policies::Run(argc, argv); }
