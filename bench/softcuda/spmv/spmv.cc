#include "bench/softcuda/spmv/spmv.h"

#include "bench/softcuda/spmv/spmv_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace spmv {
namespace {

struct Matrix {
  std::vector<int> begins{0};
  std::vector<int> columns;
  std::vector<float> values;
};

Matrix Sparse() {
  std::mt19937 engine(1);
  Matrix matrix;
  for (int row = 0; row < kRows; ++row) {
    const unsigned filled = kFewest + engine() % (kMost - kFewest + 1);
    const unsigned apart = kRows / filled;  // a column from each stretch of the row, so that they ascend
    for (unsigned i = 0; i < filled; ++i) matrix.columns.push_back(i * apart + engine() % apart);
    matrix.begins.push_back(static_cast<int>(matrix.columns.size()));
  }
  matrix.values = Floats(matrix.columns.size(), 2);
  return matrix;
}

void Multiply(const int* begins, const int* columns, const float* values, const float* vector, float* result,
              int rows) {
#pragma clang fp reassociate(on)
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int i = begins[row]; i < begins[row + 1]; ++i) sum += values[i] * vector[columns[i]];
    result[row] = sum;
  }
}

class Spmv : public Case {
 public:
  explicit Spmv(const Module& module)
      : kernel_(module.GetKernel("spmv")),
        begins_(module.device(), matrix_.begins),
        columns_(module.device(), matrix_.columns),
        values_(module.device(), matrix_.values),
        device_vector_(module.device(), vector_),
        result_(module.device(), kRows) {}
  void Launch() override {
    kernel_.Launch({kRows * 32 / kThreads}, {kThreads}, begins_.at(), columns_.at(), values_.at(),
                   device_vector_.at(), result_.at(), kRows);
  }
  void Native() override {
    Multiply(matrix_.begins.data(), matrix_.columns.data(), matrix_.values.data(), vector_.data(),
             expected_.data(), kRows);
  }
  std::optional<std::string> Compare() override { return Far(result_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  Matrix matrix_ = Sparse();
  std::vector<float> vector_ = Floats(kRows, 3);
  std::vector<float> expected_ = std::vector<float>(kRows);
  Array<int> begins_;
  Array<int> columns_;
  Array<float> values_;
  Array<float> device_vector_;
  Array<float> result_;
};

}  // namespace
}  // namespace spmv

extern const Subject kSpmv;
const Subject kSpmv = {"spmv", spmv::kPtx, true, Make<spmv::Spmv>};

}  // namespace cuplex::bench
