// Fuzz target: whatever the parser takes can be sliced or is refused, what comes out parses again as it was
// printed, and is not sliced once more; slices of any grid and budget end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ptx/parser.h"
#include "ptx/passes/slice_plan.h"
#include "ptx/printer.h"

namespace {

[[noreturn]] void Stop(std::string_view why, std::string_view text) {
  std::fprintf(stderr, "%.*s\n%.*s\n", static_cast<int>(why.size()), why.data(),
               static_cast<int>(text.size()), text.data());
  std::abort();
}

void Plan(const cuplex::ptx::SlicedKernel& kernel, uint64_t seed) {
  using namespace cuplex::ptx;
  const GridSize grid = {1 + static_cast<uint32_t>(seed % 50), 1 + static_cast<uint32_t>(seed / 50 % 20),
                         1 + static_cast<uint32_t>(seed / 1000 % 5)};
  if (!CheckGrid(kernel, grid).ok()) Stop("a small grid is refused", kernel.name);
  const uint64_t blocks = BlocksOf(grid);
  uint64_t first = 0;
  while (first < blocks) {
    const SliceBudget budget = {static_cast<double>(seed % 3), static_cast<double>(seed % 1009), seed % 17};
    const GridSlice slice = NextSlice(kernel, grid, first, budget);
    if (!slice.count || slice.first != first || slice.count != BlocksOf(slice.launch))
      Stop("a slice that is none", kernel.name);
    if (SliceArguments(kernel, grid, slice, {}).size() != kernel.arguments_size)
      Stop("arguments of another size", kernel.name);
    first += slice.count;
  }
  if (first != blocks) Stop("slices of more blocks than there are", kernel.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cuplex::ptx;
  auto module = Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  auto sliced = Slice(*module);
  if (!sliced.ok()) Stop(sliced.error().sentence, "");
  const auto is_sliced = [](const SlicedKernel& kernel) { return kernel.refusal.empty(); };
  if (sliced->text.empty()) {
    if (std::any_of(sliced->kernels.begin(), sliced->kernels.end(), is_sliced)) Stop("no text", "");
    return 0;
  }
  auto again = Parse(sliced->text);
  if (!again.ok()) Stop(again.error().sentence, sliced->text);
  if (Print(*again) != sliced->text) Stop("not the same module", sliced->text);
  auto twice = Slice(*again);
  if (!twice.ok()) Stop(twice.error().sentence, sliced->text);
  if (std::any_of(twice->kernels.begin(), twice->kernels.end(), is_sliced))
    Stop("sliced twice", sliced->text);
  uint64_t seed = 0;
  std::memcpy(&seed, data, std::min(size, sizeof(seed)));
  for (size_t i = 0; i < size; ++i) seed = seed * 31 + data[i];
  for (const SlicedKernel& kernel : sliced->kernels) {
    if (is_sliced(kernel)) Plan(kernel, seed);
  }
  return 0;
}
