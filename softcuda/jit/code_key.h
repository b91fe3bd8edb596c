// What a kernel's machine code is made from, as a digest: its PTX and that of all it reaches, where things
// lie, and what the program's other parts make of it. Pure; any thread.
#pragma once

#include "softcuda/jit/code_cache.h"
#include "softcuda/jit/layout.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

/// Equal for two kernels only where every emitter makes the same code of both.
Digest ContentOf(const ptx::Module& module, const ModuleLayout& layout, const KernelLayout& kernel,
                 const AddressWindow& window);

/// The key of one of the ways to compile a kernel, such as "thread" or a block's shape.
Digest KeyOf(const Digest& content, std::string_view variant);

}  // namespace cuplex::softcuda
