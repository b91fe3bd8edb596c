#include "tests/conformance/ptx/corpus.h"

#include <fmt/format.h>

namespace cuplex::corpus {

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> subjects = {
      {"integer", FillInteger},
      {"bits", FillBits},
      {"float", FillFloat},
      {"double", FillDouble},
      {"math", FillMath},
      {"half", FillHalf},
      {"brain", FillBrain},
      {"compare", FillCompare},
      {"compare_float", FillCompareFloat},
      {"convert_integers", FillConvertIntegers},
      {"convert_to_float", FillConvertToFloat},
      {"convert_from_float", FillConvertFromFloat},
      {"convert_floats", FillConvertFloats},
      {"warp", FillWarp},
      {"atomics", FillAtomics},
      {"memory", FillMemory},
      {"moves", FillMoves},
      {"flow", FillFlow},
      {"copies", FillCopies},
      {"video", FillVideo},
      {"matrix", FillMatrix},
  };
  return subjects;
}

std::vector<Named> KernelsOf(const Subject& subject) {
  Family family(subject.name);
  subject.fill(family);
  std::vector<Named> named;
  std::map<std::string, int> seen;
  for (Kernel& kernel : family.Kernels()) {
    const int times = seen[kernel.name]++;
    if (times) kernel.name += fmt::format("#{}", times + 1);
    named.push_back({std::move(kernel), fmt::format("{}_{}", subject.name, named.size())});
  }
  return named;
}

namespace {

std::string Filled(const std::string& text, const std::string& entry) {
  std::string filled;
  for (char c : text) {
    if (c == '$') {
      filled += entry;
    } else {
      filled += c;
    }
  }
  return filled;
}

std::string Target(const Kernel& kernel) {
  return fmt::format("sm_{}{}", kernel.target, kernel.target_suffix);
}

}  // namespace

std::string ModuleText(const std::vector<const Named*>& kernels) {
  const Kernel& first = kernels.front()->kernel;
  std::string text = fmt::format(".version {}\n.target {}\n.address_size 64\n", first.version, Target(first));
  for (const Named* named : kernels) {
    text += fmt::format("\n// {}\n", named->kernel.name);
    text += Filled(named->kernel.declarations, named->entry);
    text += Filled(named->kernel.text, named->entry);
  }
  return text;
}

std::vector<std::vector<const Named*>> Grouped(const std::vector<Named>& kernels, size_t most) {
  std::vector<std::vector<const Named*>> groups;
  std::map<std::string, size_t> open;
  for (const Named& named : kernels) {
    const std::string key = Target(named.kernel) + " " + named.kernel.version;
    auto [at, fresh] = open.try_emplace(key, groups.size());
    if (!fresh && groups[at->second].size() >= most) fresh = true, at->second = groups.size();
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(&named);
  }
  return groups;
}

}  // namespace cuplex::corpus
