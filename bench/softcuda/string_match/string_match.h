// The sizes of looking for a word in a text.
#pragma once

namespace cuplex::bench::string_match {

constexpr int kText = 1 << 20;  // bytes, each one of four letters
constexpr int kWord = 12;
constexpr int kThreads = 256;

}  // namespace cuplex::bench::string_match
