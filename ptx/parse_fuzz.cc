// Fuzz target: no text may crash the parser; what it takes must print, and come back from print the same.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ptx/initializer.h"
#include "ptx/parameters.h"
#include "ptx/parser.h"
#include "ptx/printer.h"

namespace {

[[noreturn]] void Stop(std::string_view why, std::string_view text) {
  std::fprintf(stderr, "%.*s\n%.*s\n", static_cast<int>(why.size()), why.data(),
               static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cuplex::ptx;
  auto module = Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  for (const Variable& variable : module->variables) {
    if (!ForEachElement(variable, [](uint64_t, const Initializer&) {}).ok())
      Stop("initialiser", variable.name);
  }
  for (const Function& function : module->functions) {
    if (auto layout = LayoutOf(function); layout.ok() && layout->slots.size() != function.parameters.size()) {
      Stop("layout", function.name);
    }
  }
  std::string text = Print(*module);
  auto again = Parse(text);
  if (!again.ok()) Stop(again.error().sentence, text);
  if (!(*again == *module)) Stop("not the same module", text);
  return 0;
}
