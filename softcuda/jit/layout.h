// Where things lie: a kernel's parameters and shared memory, functions' local frames and parameter buffers, a
// module's variables. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"
#include "softcuda/jit/facts.h"

namespace cuplex::softcuda {

/// Formal parameters or returns of a .func, in a buffer of their own.
struct BufferLayout {
  std::vector<uint32_t> offsets, sizes;
  uint32_t bytes = 0;

  bool operator==(const BufferLayout&) const = default;
};

struct FunctionLayout {
  BufferLayout params, returns;
  std::map<uint32_t, uint64_t> locals;  // .local variables: offset in the function's frame
  uint64_t frame_bytes = 0;             // a multiple of 16
  bool address_taken = false;
  std::string refusal;  // why softcuda cannot run it; empty where it can
};

struct ModuleLayout {
  std::vector<FunctionLayout> functions;
  std::vector<uintptr_t> places;  // of module variables in device memory, 0 where not placed

  /// What PTX code sees as the address of a function: no address of this process, unique in the module.
  static uint64_t FunctionToken(uint32_t function) { return 0x10000 + uint64_t{function} * 16; }
};

constexpr uint32_t kModuleScope = ptx::kNoIndex;

/// Bytes of shared memory that belong to the system, as %reserved_smem_offset_* tell.
inline constexpr uint32_t kReservedShared = 1024;

struct KernelLayout {
  /// {function or kModuleScope, variable} -> offset in shared memory.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> shared;
  uint64_t static_shared = 0;
  uint64_t reserved_shared = 0;     // in front of it: 0, or kReservedShared where the kernel asks for it
  uint64_t local_bytes = 0;         // per thread, a multiple of 16
  uint64_t stack_base = 0;          // of them: where the stack of alloca starts; 0 where nothing uses it
  std::vector<uint32_t> reachable;  // functions, the kernel first
};

/// Whether the function allocates local memory as it runs.
bool UsesStack(const ptx::Function& function);

/// Parameters of a prototype: what calls through pointers pass.
BufferLayout LayoutOfBuffer(const std::vector<ptx::Variable>& variables);

Result<ModuleLayout> LayOutModule(const ptx::Module& module, const std::vector<FunctionFacts>& facts);
Result<KernelLayout> LayOutKernel(const ptx::Module& module, const std::vector<FunctionFacts>& facts,
                                  const ModuleLayout& layout, uint32_t kernel);

}  // namespace cuplex::softcuda
