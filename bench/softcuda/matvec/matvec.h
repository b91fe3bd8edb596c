// The sizes of a matrix times a vector.
#pragma once

namespace cuplex::bench::matvec {

constexpr int kRows = 2048;
constexpr int kColumns = 2048;
constexpr int kThreads = 256;

}  // namespace cuplex::bench::matvec
