// The sizes of softmax along rows.
#pragma once

namespace cuplex::bench::softmax {

constexpr int kRows = 1024;
constexpr int kColumns = 1024;
constexpr int kThreads = 256;

}  // namespace cuplex::bench::softmax
