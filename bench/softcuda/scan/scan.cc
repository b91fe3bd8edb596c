#include "bench/softcuda/scan/scan.h"

#include "bench/softcuda/scan/scan_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace scan {
namespace {

void Scan(const int* in, int* out, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) out[i] = sum += in[i];
}

std::vector<int> Small(int count) {
  std::vector<int> values;
  for (const std::uint32_t word : Words(count, 1)) values.push_back(static_cast<int>(word % 1000) - 500);
  return values;
}

class Scan3 : public Case {
 public:
  explicit Scan3(const Module& module)
      : chunks_(module.GetKernel("scan_chunks")),
        of_sums_(module.GetKernel("scan_sums")),
        add_(module.GetKernel("add_sums")),
        device_in_(module.device(), in_),
        out_(module.device(), kCount),
        sums_(module.device(), kChunks) {}
  void Launch() override {
    chunks_.Launch({kChunks}, {kThreads}, device_in_.at(), out_.at(), sums_.at());
    of_sums_.Launch({1}, {kChunks}, sums_.at());
    add_.Launch({kChunks}, {kThreads}, out_.at(), sums_.at());
  }
  void Native() override { Scan(in_.data(), expected_.data(), kCount); }
  std::optional<std::string> Compare() override { return Unequal(out_.Read(), expected_); }

 private:
  Kernel chunks_;
  Kernel of_sums_;
  Kernel add_;
  std::vector<int> in_ = Small(kCount);
  std::vector<int> expected_ = std::vector<int>(kCount);
  Array<int> device_in_;
  Array<int> out_;
  Array<int> sums_;
};

}  // namespace
}  // namespace scan

extern const Subject kScan;
const Subject kScan = {"scan", scan::kPtx, true, Make<scan::Scan3>};

}  // namespace cuplex::bench
