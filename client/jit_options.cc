#include "client/jit_options.h"

#include <algorithm>
#include <cstring>

namespace cuplex::client {

CUresult JitOptions::Read(unsigned count, CUjit_option* options, void** values) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(values[i]));
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        info_.buffer = static_cast<char*>(values[i]);
        continue;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.bytes = number;
        info_.written = values + i;
        continue;
      case CU_JIT_ERROR_LOG_BUFFER:
        errors_.buffer = static_cast<char*>(values[i]);
        continue;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        errors_.bytes = number;
        errors_.written = values + i;
        continue;
      case CU_JIT_WALL_TIME:
        wall_time_ = values + i;
        break;
      case CU_JIT_THREADS_PER_BLOCK:
        threads_ = values + i;
        break;
      default:
        break;
    }
    if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    if (LinkOption::Travels(options[i]))
      numbers_.push_back({static_cast<uint32_t>(options[i]), number});
    else
      names_symbols_ = true;
  }
  return CUDA_SUCCESS;
}

void JitOptions::Log::Write(std::string_view text) const {
  size_t n = 0;
  if (buffer && bytes) {
    const size_t length = std::min(text.size(), bytes - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
    n = text.empty() ? 0 : length + 1;
  }
  if (written) *written = reinterpret_cast<void*>(n);
}

void JitOptions::WriteLogs(std::string_view info, std::string_view errors) const {
  info_.Write(info);
  errors_.Write(errors);
}

void JitOptions::WriteResults(uint32_t wall_time, uint32_t threads) const {
  // The driver keeps them in the low bytes, as CUDA does.
  if (wall_time_) std::memcpy(wall_time_, &wall_time, sizeof(wall_time));
  if (threads_) std::memcpy(threads_, &threads, sizeof(threads));
}

}  // namespace cuplex::client
