// print_sliced FOLDER FILE.ptx...: the sliced form of each module, as FOLDER/N.ptx. Says how many kernels
// that are. Fails where one does not come back from its text, or can be sliced once more.
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "ptx/parser.h"
#include "ptx/passes/slice.h"
#include "ptx/printer.h"

namespace {

/// Empty, or what is wrong.
std::string Check(const std::string& text) {
  using namespace cuplex::ptx;
  auto module = Parse(text);
  if (!module.ok()) return module.error().sentence;
  if (Print(*module) != text) return "it prints as another text";
  auto again = Slice(*module);
  if (!again.ok()) return again.error().sentence;
  for (const SlicedKernel& kernel : again->kernels) {
    if (kernel.refusal.empty()) return fmt::format("kernel `{}` can be sliced once more", kernel.name);
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cuplex::ptx;
  if (argc < 3) {
    std::cerr << "print_sliced: a folder to write to and PTX files were expected\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  size_t sliced = 0, refused = 0, bytes = 0;
  std::clock_t parsing = 0, slicing = 0;  // of the processor
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto began = std::clock();
    auto module = Parse(text);
    const auto parsed = std::clock();
    if (!module.ok()) {
      std::cerr << argv[i] << ": " << module.error().sentence << '\n';
      return 1;
    }
    auto made = Slice(*module);
    slicing += std::clock() - parsed;
    parsing += parsed - began;
    bytes += text.size();
    if (!made.ok()) {
      std::cerr << argv[i] << ": " << made.error().sentence << '\n';
      return 1;
    }
    for (const SlicedKernel& kernel : made->kernels) ++(kernel.refusal.empty() ? sliced : refused);
    if (made->text.empty()) continue;
    if (std::string wrong = Check(made->text); !wrong.empty()) {
      std::cerr << argv[i] << ": sliced, " << wrong << '\n';
      return 1;
    }
    std::ofstream(std::filesystem::path(argv[1]) / fmt::format("{}.ptx", i - 1)) << made->text;
  }
  const auto milliseconds = [](std::clock_t ticks) {
    return 1e3 * static_cast<double>(ticks) / CLOCKS_PER_SEC;
  };
  std::cout << fmt::format(
      "print_sliced: {} kernels sliced, {} refused; {:.2f} MB parsed in {:.1f} ms, sliced in {:.1f} ms\n",
      sliced, refused, static_cast<double>(bytes) / 1e6, milliseconds(parsing), milliseconds(slicing));
}
