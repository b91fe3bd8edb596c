// Nearest: the known word a misspelt one was probably meant to be. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

namespace cuplex::policies {

/// The word of `known` that is the fewest single-letter changes (insert, drop, replace, swap neighbours;
/// letter case counts nothing) away from `word`, the earlier of equals. Empty where none is within a third of
/// its length, at least one.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace cuplex::policies
