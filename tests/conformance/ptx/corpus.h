// The corpus as a whole: its families, and PTX modules made of their kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/conformance/ptx/form.h"

namespace cuplex::corpus {

struct Subject {
  const char* name;
  void (*fill)(Family&);
};
/// Every family of the corpus. Filling one computes nothing but its lists.
const std::vector<Subject>& Subjects();

/// The kernels of a family, each with the name its entry has in any module.
struct Named {
  Kernel kernel;
  std::string entry;
};
std::vector<Named> KernelsOf(const Subject& subject);

/// The text of a module with these kernels, which must agree in target and version.
std::string ModuleText(const std::vector<const Named*>& kernels);

/// Kernels that can be in one module, in order; at most `most` in each.
std::vector<std::vector<const Named*>> Grouped(const std::vector<Named>& kernels, size_t most);

// What fills the families, one function a family.
void FillInteger(Family& family);
void FillBits(Family& family);
void FillFloat(Family& family);
void FillDouble(Family& family);
void FillMath(Family& family);
void FillHalf(Family& family);
void FillBrain(Family& family);
void FillCompare(Family& family);
void FillCompareFloat(Family& family);
void FillConvertIntegers(Family& family);
void FillConvertToFloat(Family& family);
void FillConvertFromFloat(Family& family);
void FillConvertFloats(Family& family);
void FillWarp(Family& family);
void FillAtomics(Family& family);
void FillMemory(Family& family);
void FillMoves(Family& family);
void FillFlow(Family& family);
void FillCopies(Family& family);
void FillVideo(Family& family);
void FillMatrix(Family& family);

}  // namespace cuplex::corpus
