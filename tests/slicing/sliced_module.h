// SlicedModules: the modules that a program has loaded, each beside the module of its sliced kernels. Any
// thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cuda/driver_table.h"
#include "ptx/parameters.h"
#include "ptx/passes/slice_plan.h"

namespace cuplex::slicing {

/// A kernel that a program holds, and its sliced form.
struct LoadedKernel {
  ptx::SlicedKernel sliced;  // with a refusal: nothing below is set
  ptx::ParameterLayout layout;
  CUfunction function = nullptr;  // of the sliced module
  std::vector<uint64_t> globals;
  struct Constant {
    CUdeviceptr original, copy;
    size_t bytes;
  };
  std::vector<Constant> constants;

  /// The parameter buffer of a launch, without what is to be added. nullopt: the arguments make no sense.
  std::optional<std::vector<std::byte>> Arguments(void** parameters, void** extra) const;
  /// With the arguments of a slice.
  std::vector<std::byte> Arguments(std::vector<std::byte> given, const ptx::GridSize& grid,
                                   const ptx::GridSlice& slice) const;
};

/// Memory that kernels may write: [address, address + bytes).
struct Memory {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

class SlicedModules {
 public:
  explicit SlicedModules(const DriverTable& cu) : cu_(cu) {}

  /// `image` has been loaded as `module`. What is no PTX text is left alone. A sentence where the sliced
  /// module does not load.
  std::optional<std::string> Add(CUmodule module, const char* image);
  void Remove(CUmodule module);
  /// `function` has been got from `module`.
  std::optional<std::string> Name(CUmodule module, CUfunction function, const char* name);

  std::shared_ptr<const LoadedKernel> Find(CUfunction function) const;
  /// Variables in .global and .const of the module that `function` was got from.
  std::vector<Memory> VariablesOf(CUfunction function) const;
  /// Every kernel that has been loaded, by name, with its refusal or an empty text.
  std::map<std::string, std::string> Kernels() const;

 private:
  struct Row {
    CUmodule sliced = nullptr;
    std::map<std::string, ptx::SlicedKernel> kernels;
    std::map<std::string, ptx::ParameterLayout> layouts;
    std::vector<Memory> variables;
  };

  const DriverTable& cu_;
  mutable std::mutex lock_;
  std::map<CUmodule, Row> modules_;
  std::map<CUfunction, std::pair<CUmodule, std::shared_ptr<const LoadedKernel>>> kernels_;
  std::map<std::string, std::string> seen_;
};

}  // namespace cuplex::slicing
