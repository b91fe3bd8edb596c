// Exposition: the Prometheus text format, read back. For tests and tools; pure, any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cuplex::metrics {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ExposedFamily {
  std::string name;
  std::string help;
  std::string type;  // "counter", "gauge", "summary", "histogram", "untyped"
  std::vector<Sample> samples;
};

/// The families of `text` in its order. An Error (Blame::kCaller) names the line that is not of the format,
/// gives a family's HELP or TYPE twice, or a sample that belongs to no family begun before it.
Result<std::vector<ExposedFamily>> ParseExposition(std::string_view text);

/// The series written as PromQL selects it, `name{a="x",b="y"}` with labels in order of name, to its value.
std::map<std::string, double> Series(const std::vector<ExposedFamily>& families);

/// What a Prometheus operator would frown upon, a sentence each: names that are not snake case or carry no or
/// the wrong unit or suffix, missing HELP or TYPE, a series given twice, counters below zero, values that are
/// no number.
std::vector<std::string> Lint(const std::vector<ExposedFamily>& families);

}  // namespace cuplex::metrics
