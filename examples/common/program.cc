#include "examples/common/program.h"

#include <cstdio>
#include <iostream>
#include <optional>

#include <boost/program_options.hpp>

namespace cuplex::examples {
namespace {

namespace po = boost::program_options;

/// The options, or nothing after --help. Throws Failure or po::error for what makes no sense.
std::optional<Options> ParseOptions(int argc, char** argv, const Description& description) {
  Options options;
  std::string size_text = description.size_meaning + std::string(", ") +
                          std::to_string(description.smallest) + " to " + std::to_string(description.largest);
  po::options_description accepted("Options");
  po::options_description_easy_init add = accepted.add_options();
  add("help", "print this and stop");
  add("size", po::value(&options.size)->default_value(description.size)->value_name("N"), size_text.c_str());
  add("repeat", po::value(&options.repeat)->default_value(1)->value_name("N"),
      "do the job N times on the device, 1 to 1000000, and check each result");
  add("time", po::bool_switch(&options.time), "print times to stderr");
  if (description.output != nullptr) {
    add("output", po::value(&options.output)->default_value(description.output)->value_name("FILE"),
        "the file to write");
  }

  po::variables_map given;
  po::store(po::command_line_parser(argc, argv)
                .options(accepted)
                .positional(po::positional_options_description())
                .run(),
            given);
  if (given.count("help") != 0) {
    std::cout << description.name << ": " << description.purpose << "\n\n" << accepted;
    return std::nullopt;
  }
  po::notify(given);
  if (options.size < description.smallest || options.size > description.largest) {
    throw Failure("--size is " + std::to_string(options.size) + ", expected " +
                  std::to_string(description.smallest) + " to " + std::to_string(description.largest));
  }
  if (options.repeat < 1 || options.repeat > 1'000'000) {
    throw Failure("--repeat is " + std::to_string(options.repeat) + ", expected 1 to 1000000");
  }
  return options;
}

}  // namespace

int RunProgram(int argc, char** argv, const Description& description,
               const std::function<bool(const Options&)>& job) {
  std::optional<Options> options;
  try {
    options = ParseOptions(argc, argv, description);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s; --help lists the options\n", description.name, e.what());
    return 2;
  }
  if (!options) return 0;
  try {
    const bool right = job(*options);
    if (std::fflush(stdout) != 0) throw Failure("stdout cannot be written");
    return right ? 0 : 1;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", description.name, e.what());
    return 1;
  }
}

Timed::Timed(const Options& options, const char* what)
    : wanted_(options.time), what_(what), start_(std::chrono::steady_clock::now()) {}

Timed::~Timed() {
  if (!wanted_) return;
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "%s: %.3f ms\n", what_, passed.count());
}

void PrintDeviceTime(const Options& options, const char* what, float milliseconds) {
  if (options.time) std::fprintf(stderr, "%s, by the device's clock: %.3f ms\n", what, milliseconds);
}

}  // namespace cuplex::examples
