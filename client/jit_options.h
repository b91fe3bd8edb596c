// JitOptions: the option arrays that programs give to cuModuleLoadDataEx, cuLinkCreate and cuLinkAddData. The
// buffers and arrays are the program's, and are written where the calls say so. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cuda/driver_types.h"
#include "protocol/link_request.h"

namespace cuplex::client {

class JitOptions {
 public:
  /// CUDA_ERROR_INVALID_VALUE where an array is missing or an option is none.
  CUresult Read(unsigned count, CUjit_option* options, void** values);

  /// Those that are numbers.
  const std::vector<LinkOption>& numbers() const { return numbers_; }
  /// Whether any names symbols of the program, which nobody else can look at.
  bool names_symbols() const { return names_symbols_; }

  /// What there is to say, cut to what the program has room for; the sizes become the bytes written, their
  /// NUL included.
  void WriteLogs(std::string_view info, std::string_view errors) const;
  /// What the driver has left in CU_JIT_WALL_TIME (the bits of a float) and CU_JIT_THREADS_PER_BLOCK.
  void WriteResults(uint32_t wall_time, uint32_t threads) const;

 private:
  struct Log {
    char* buffer = nullptr;
    size_t bytes = 0;
    void** written = nullptr;
    void Write(std::string_view text) const;
  };
  Log info_, errors_;
  void** wall_time_ = nullptr;
  void** threads_ = nullptr;
  bool names_symbols_ = false;
  std::vector<LinkOption> numbers_;
};

}  // namespace cuplex::client
