// Initializer: which element of a variable each value of its initialiser sets. Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

/// Calls `set` for every value with the element it sets, counted in scalars of variable.type (a .v2 element
/// is two), in rising order; elements not visited are zero. Every dimension has its braces. Nothing is
/// called where there is no initialiser. Fails where the initialiser does not fit the variable, which Parse()
/// has already refused.
Status ForEachElement(const Variable& variable,
                      const std::function<void(uint64_t element, const Initializer& value)>& set);

}  // namespace cuplex::ptx
