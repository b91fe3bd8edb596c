// Print: Module -> PTX text that ptxas takes, and that Parse() turns into an equal Module. Any thread.
#pragma once

#include <string>

#include "ptx/module.h"

namespace cuplex::ptx {

std::string Print(const Module& module);

/// One of its functions or variables alone, and what stands at the module's head: version, target and size of
/// addresses.
std::string Print(const Module& module, const Function& function);
std::string Print(const Module& module, const Variable& variable);
std::string PrintHead(const Module& module);

}  // namespace cuplex::ptx
