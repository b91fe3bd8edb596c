#include "client/runtime/runtime_errors.h"

namespace cuplex::runtime {

cudaError_t FromDriver(CUresult result) {
  if (result == CUDA_SUCCESS) [[likely]]
    return cudaSuccess;
  auto error = static_cast<cudaError_t>(result);
  return NameOf(error) ? error : cudaErrorUnknown;
}

const char* NameOf(cudaError_t error) {
  switch (error) {
#define CUPLEX_CASE(name, number, sentence) \
  case name:                                \
    return #name;
    CUPLEX_RUNTIME_ERRORS(CUPLEX_CASE)
#undef CUPLEX_CASE
  }
  return nullptr;
}

const char* SentenceOf(cudaError_t error) {
  switch (error) {
#define CUPLEX_CASE(name, number, sentence) \
  case name:                                \
    return sentence;
    CUPLEX_RUNTIME_ERRORS(CUPLEX_CASE)
#undef CUPLEX_CASE
  }
  return nullptr;
}

}  // namespace cuplex::runtime
