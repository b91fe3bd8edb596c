// print_corpus FOLDER: the corpus as .ptx files, a file for each group of kernels that fits in one module;
// each file's name begins with the target it needs. For ptxas and for people.
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

int main(int argc, char** argv) {
  using namespace cuplex::corpus;
  if (argc != 2) {
    std::cerr << "print_corpus: a folder to write to was expected\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  size_t files = 0, kernels = 0;
  for (const Subject& subject : Subjects()) {
    const std::vector<Named> named = KernelsOf(subject);
    kernels += named.size();
    size_t part = 0;
    for (const auto& group : Grouped(named, 64)) {
      const Kernel& first = group.front()->kernel;
      std::ofstream out(std::filesystem::path(argv[1]) / fmt::format("sm_{}{}.{}.{}.ptx", first.target,
                                                                     first.target_suffix, subject.name,
                                                                     part++));
      out << ModuleText(group);
      if (!out.flush()) {
        std::cerr << "print_corpus: a file in " << argv[1] << " could not be written\n";
        return 1;
      }
      ++files;
    }
  }
  std::cout << fmt::format("print_corpus: {} kernels in {} files\n", kernels, files);
}
