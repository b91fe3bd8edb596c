#include "bench/softcuda/matvec/matvec.h"

#include "bench/softcuda/matvec/matvec_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace matvec {
namespace {

void Multiply(const float* matrix, const float* vector, float* result, int rows, int columns) {
#pragma clang fp reassociate(on)
  for (int i = 0; i < rows; ++i) {
    const float* row = matrix + static_cast<std::size_t>(i) * columns;
    float sum = 0;
    for (int j = 0; j < columns; ++j) sum += row[j] * vector[j];
    result[i] = sum;
  }
}

class MatVec : public Case {
 public:
  explicit MatVec(const Module& module)
      : kernel_(module.GetKernel("matvec")),
        device_matrix_(module.device(), matrix_),
        device_vector_(module.device(), vector_),
        result_(module.device(), kRows) {}
  void Launch() override {
    kernel_.Launch({kRows * 32 / kThreads}, {kThreads}, device_matrix_.at(), device_vector_.at(),
                   result_.at(), kRows, kColumns);
  }
  void Native() override { Multiply(matrix_.data(), vector_.data(), expected_.data(), kRows, kColumns); }
  std::optional<std::string> Compare() override { return Far(result_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  std::vector<float> matrix_ = Floats(kRows * kColumns, 1);
  std::vector<float> vector_ = Floats(kColumns, 2);
  std::vector<float> expected_ = std::vector<float>(kRows);
  Array<float> device_matrix_;
  Array<float> device_vector_;
  Array<float> result_;
};

}  // namespace
}  // namespace matvec

extern const Subject kMatvec;
const Subject kMatvec = {"matvec", matvec::kPtx, true, Make<matvec::MatVec>};

}  // namespace cuplex::bench
