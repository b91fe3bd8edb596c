#include "metrics/exposition.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace cuplex::metrics {
namespace {

bool IsSnakeCase(std::string_view name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

/// Reads one sample line from its start: NAME [{LABEL="VALUE",...}] VALUE.
class SampleReader {
 public:
  explicit SampleReader(std::string_view line) : rest_(line) {}

  std::optional<Sample> Read() {
    Sample sample;
    sample.name = Word("{ ");
    if (sample.name.empty()) return std::nullopt;
    if (Take('{')) {
      while (!Take('}')) {
        std::string label = Word("=");
        if (label.empty() || !Take('=') || !Take('"')) return std::nullopt;
        auto value = Quoted();
        if (!value || !sample.labels.emplace(label, *value).second) return std::nullopt;
        if (!Take(',') && !rest_.starts_with('}')) return std::nullopt;
      }
    }
    if (!Take(' ') || rest_.empty()) return std::nullopt;
    std::string number(rest_);
    char* end = nullptr;
    sample.value = std::strtod(number.c_str(), &end);
    if (*end != '\0') return std::nullopt;  // no timestamps here
    return sample;
  }

 private:
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string Word(std::string_view stops) {
    std::string word(rest_.substr(0, rest_.find_first_of(stops)));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::optional<std::string> Quoted() {
    std::string value;
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return value;
      if (c == '\\') {
        if (rest_.empty()) return std::nullopt;
        c = rest_.front() == 'n' ? '\n' : rest_.front();
        rest_.remove_prefix(1);
      }
      value += c;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

bool Belongs(const Sample& sample, const ExposedFamily& family) {
  if (sample.name == family.name) return true;
  if (!sample.name.starts_with(family.name)) return false;
  std::string_view suffix = std::string_view(sample.name).substr(family.name.size());
  if (family.type == "summary") return suffix == "_sum" || suffix == "_count";
  if (family.type == "histogram") return suffix == "_sum" || suffix == "_count" || suffix == "_bucket";
  return false;
}

std::string Selector(const Sample& sample) {
  std::string out = sample.name;
  if (sample.labels.empty()) return out;
  char before = '{';
  for (const auto& [label, value] : sample.labels)
    out += fmt::format("{}{}=\"{}\"", std::exchange(before, ','), label, value);
  return out + '}';
}

/// One family against the naming rules that `promtool check metrics` applies, and a few more.
void LintFamily(const ExposedFamily& family, std::vector<std::string>& findings) {
  auto find = [&](std::string_view what) { findings.push_back(fmt::format("{} {}.", family.name, what)); };
  const std::string& name = family.name;
  bool counter = family.type == "counter";

  if (!IsSnakeCase(name)) find("is not written in snake case");
  if (family.help.empty()) find("has no HELP");
  if (family.type.empty() || family.type == "untyped") find("has no TYPE");
  if (counter && !name.ends_with("_total")) find("is a counter and does not end in _total");
  if (!counter && name.ends_with("_total")) find("is no counter and ends in _total");
  for (std::string_view suffix : {"_count", "_sum", "_bucket"}) {
    if (name.ends_with(suffix)) find(fmt::format("ends in {}, which summaries and histograms own", suffix));
  }
  const std::string words = "_" + name + "_";
  for (std::string_view unit :
       {"ns", "us", "ms", "nanoseconds", "microseconds", "milliseconds", "minutes", "hours", "kb", "kib",
        "mb", "mib", "gb", "gib", "kilobytes", "megabytes", "bits", "percent"}) {
    if (words.find(fmt::format("_{}_", unit)) != std::string::npos)
      find(fmt::format("is in {}, no base unit", unit));
  }
  for (std::string_view type : {"counter", "gauge", "summary", "histogram"}) {
    if (words.find(fmt::format("_{}_", type)) != std::string::npos) find("has its type in its name");
  }
}

void LintSample(const Sample& sample, const ExposedFamily& family, std::vector<std::string>& findings) {
  auto find = [&](std::string_view what) {
    findings.push_back(fmt::format("{} {}.", Selector(sample), what));
  };
  for (const auto& [label, value] : sample.labels) {
    if (!IsSnakeCase(label)) find(fmt::format("has the label {}, not in snake case", label));
    if (label == "quantile" && family.type != "summary") find("has a quantile and is no summary");
    if (label == "le" && family.type != "histogram") find("has a bucket's bound and is no histogram");
  }
  if (family.type == "counter" && !(sample.value >= 0)) find("is a counter below zero");
  if (family.type == "gauge" && std::isnan(sample.value)) find("has no number for a value");
}

}  // namespace

Result<std::vector<ExposedFamily>> ParseExposition(std::string_view text) {
  std::vector<ExposedFamily> families;
  std::map<std::string, size_t, std::less<>> index;
  int number = 0;
  auto fail = [&](std::string_view line, std::string_view what) {
    return Fail(Blame::kCaller, "Line {} of the exposition, \"{}\", {}.", number, line, what);
  };
  while (!text.empty()) {
    size_t end = text.find('\n');
    ++number;
    if (end == std::string_view::npos) return fail(text, "has no end; a line feed was expected");
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.empty()) continue;
    bool help = line.starts_with("# HELP "), type = line.starts_with("# TYPE ");
    if (help || type) {
      std::string_view rest = line.substr(7);
      std::string_view name = rest.substr(0, rest.find(' '));
      std::string_view said = rest.substr(std::min(rest.size(), name.size() + 1));
      if (families.empty() || families.back().name != name) {
        if (!index.try_emplace(std::string(name), families.size()).second) {
          return fail(line, "returns to a family that was left; all of a family was expected together");
        }
        families.push_back({.name = std::string(name), .help = {}, .type = {}, .samples = {}});
      }
      std::string& place = help ? families.back().help : families.back().type;
      if (!place.empty()) return fail(line, "says it a second time; once was expected");
      if (!families.back().samples.empty())
        return fail(line, "comes after samples; before them was expected");
      place = said;
    } else if (!line.starts_with('#')) {
      auto sample = SampleReader(line).Read();
      if (!sample) return fail(line, "is no sample; NAME{LABEL=\"VALUE\",...} NUMBER was expected");
      if (families.empty() || !Belongs(*sample, families.back())) {
        return fail(line, "belongs to another family than the lines before; its HELP and TYPE were expected");
      }
      families.back().samples.push_back(*std::move(sample));
    }
  }
  return families;
}

std::map<std::string, double> Series(const std::vector<ExposedFamily>& families) {
  std::map<std::string, double> series;
  for (const ExposedFamily& family : families) {
    for (const Sample& sample : family.samples) series[Selector(sample)] = sample.value;
  }
  return series;
}

std::vector<std::string> Lint(const std::vector<ExposedFamily>& families) {
  std::vector<std::string> findings;
  std::map<std::string, int> seen;
  for (const ExposedFamily& family : families) {
    LintFamily(family, findings);
    for (const Sample& sample : family.samples) {
      LintSample(sample, family, findings);
      if (++seen[Selector(sample)] == 2)
        findings.push_back(fmt::format("{} is given twice.", Selector(sample)));
    }
  }
  return findings;
}

}  // namespace cuplex::metrics
