#include "bench/softcuda/subject.h"

namespace cuplex::bench {

extern const Subject kMatmul, kMatvec, kStencil2d, kStencil3d, kReduction, kScan, kHistogram, kBitonicSort,
    kRadixSort, kNbody, kMonteCarlo, kSha256, kStringMatch, kSpmv, kConvolution, kFft, kSoftmax, kLayerNorm,
    kAttention, kQuantisedMatmul;

std::span<const Subject* const> Subjects() {
  static constexpr const Subject* kAll[] = {
      &kMatmul,      &kMatvec,    &kStencil2d, &kStencil3d,  &kReduction, &kScan,           &kHistogram,
      &kBitonicSort, &kRadixSort, &kNbody,     &kMonteCarlo, &kSha256,    &kStringMatch,    &kSpmv,
      &kConvolution, &kFft,       &kSoftmax,   &kLayerNorm,  &kAttention, &kQuantisedMatmul};
  return kAll;
}

}  // namespace cuplex::bench
