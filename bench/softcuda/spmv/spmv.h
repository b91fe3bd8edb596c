// The sizes of a sparse matrix times a vector.
#pragma once

namespace cuplex::bench::spmv {

constexpr int kRows = 32768;
constexpr int kFewest = 16;  // elements that are not zero in a row
constexpr int kMost = 80;
constexpr int kThreads = 256;

}  // namespace cuplex::bench::spmv
