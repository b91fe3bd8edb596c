// Image: the PTX in whatever a program hands to the module calls, as a tree; and the options of those calls.
// Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cuda/driver_types.h"
#include "ptx/module.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {

/// The parsed PTX of an image known by its address: PTX text, a fatbin, or the wrapper of one. `arch` is ten
/// times the compute capability. Errors carry the CUresult to answer with as driver_code.
Result<std::shared_ptr<const ptx::Module>> ReadImage(const void* image, unsigned arch);

/// The file's bytes, with a NUL after them.
Result<std::string> ReadImageFile(const char* path);

/// Compile(), with the CUresult to answer with in its errors.
Result<std::shared_ptr<Program>> CompileImage(std::shared_ptr<const ptx::Module> tree,
                                              const AddressWindow& window, const CompileOptions& options);

/// The CUjit_options of a call, as far as they mean something here. The log buffers are the program's.
class JitOptions {
 public:
  /// CUDA_ERROR_INVALID_VALUE where a pointer is missing.
  CUresult Read(unsigned count, const CUjit_option* options, void** values);
  /// Puts the sentence into the error log buffer and the bytes written, NUL included, into its size.
  void WriteError(std::string_view sentence);
  /// Puts what there is to know of a module that is loaded into the info log buffer, and nothing into the
  /// other.
  void WriteInfo(std::string_view text);

  /// Adds a scope's time to what CU_JIT_WALL_TIME says: a float, in milliseconds.
  class Timed {
   public:
    explicit Timed(JitOptions& options) : options_(options), begin_(std::chrono::steady_clock::now()) {}
    ~Timed() { options_.AddTime(std::chrono::steady_clock::now() - begin_); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    JitOptions& options_;
    std::chrono::steady_clock::time_point begin_;
  };

  CompileOptions compile;

 private:
  struct Log {
    char* buffer = nullptr;
    size_t size = 0;
    void** size_value = nullptr;

    void Write(std::string_view text);
  };
  void AddTime(std::chrono::duration<float, std::milli> time);

  Log error_, info_;
  float milliseconds_ = 0;
  void** wall_time_ = nullptr;
};

/// Logs what failed, and gives the code to answer with.
CUresult RefuseImage(const Error& error, JitOptions& options);

/// Logs which kernels of a program cannot run and why, and gives that as text, a line a kernel.
std::string ReportRefusals(const Program& program);

}  // namespace cuplex::softcuda
