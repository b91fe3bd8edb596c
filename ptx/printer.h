// Print: Module -> PTX text that ptxas takes, and that Parse() turns into an equal Module. Any thread.
#pragma once

#include <string>

#include "ptx/module.h"

namespace cuplex::ptx {

std::string Print(const Module& module);

}  // namespace cuplex::ptx
