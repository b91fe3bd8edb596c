// The functions machine code calls: faults, printf, and arithmetic that no instruction of the host does.
// Called by generated code alone, on a thread that is Running.
#pragma once

#include <span>

namespace cuplex::softcuda {

struct RuntimeSymbol {
  const char* name;
  void* address;
};

/// By name, as the emitter and LLVM's code generator spell them.
std::span<const RuntimeSymbol> RuntimeSymbols();

// runtime_math.cc
std::span<const RuntimeSymbol> MathSymbols();
// runtime_texture.cc
std::span<const RuntimeSymbol> TextureSymbols();
// runtime_warp.cc
std::span<const RuntimeSymbol> WarpSymbols();

}  // namespace cuplex::softcuda
