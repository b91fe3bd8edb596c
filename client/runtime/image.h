// Image, Kernel, Variable: a fat binary that the program registered, and the host addresses that stand for
// its kernels and variables. Made and erased under Runtime's lock; a Kernel's handles are read on any thread
// without it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda/driver_types.h"

namespace cuplex::runtime {

/// How many contexts the runtime works in at once: each has a slot in every Kernel and Variable.
inline constexpr int kContextSlots = 32;

struct Image;

struct Kernel {
  Image* image = nullptr;  // null for a kernel of a cudaLibrary_t, whose handle serves in every context
  const void* host = nullptr;
  std::string name;  // as in the device code
  std::array<std::atomic<CUfunction>, kContextSlots> functions{};
};

struct Variable {
  Image* image = nullptr;
  const void* host = nullptr;
  std::string name;
  size_t bytes = 0;
  void** managed = nullptr;  // where the program keeps the address of a __managed__ variable, else null
  std::array<std::atomic<CUdeviceptr>, kContextSlots> addresses{};
};

/// What __cudaRegisterFatBinary is given:  wrapper = u32 0x466243b1, u32 version, ptr container, ptr rest.
/// The container is what a driver loads; its size stands in its own header.
struct Image {
  const void* container = nullptr;  // the program's memory; null where the wrapper was not recognised
  std::string defect;               // why, as a sentence
  bool linked = false;  // by nvcc -rdc=true: the container holds what its linker made, machine code alone
  std::array<CUmodule, kContextSlots> modules{};
  CUlibrary library = nullptr;  // for cudaGetKernel alone
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Variable>> variables;
};

/// Reads a wrapper; never fails, but leaves a defect.
std::unique_ptr<Image> ReadImage(const void* wrapper);

}  // namespace cuplex::runtime
