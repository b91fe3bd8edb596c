// Driver: a CUDA driver opened by path, as a table of functions. The table is read-only after OpenDriver: any
// thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cuda/driver_table.h"

namespace cuplex {

class Driver {
 public:
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const DriverTable& table() const { return table_; }
  const DriverTable* operator->() const { return &table_; }
  /// A function that the library exports besides the driver API; null where it does not.
  void* Find(const char* name) const;
  /// Where the library lies, as dlopen found it.
  const std::string& path() const { return path_; }

 private:
  friend Result<std::unique_ptr<Driver>> OpenDriver(const std::string& path);
  Driver() = default;

  void* library_ = nullptr;
  std::string path_;
  DriverTable table_{};
};

/// Opens the library at `path` (or, without a slash, found as the loader finds it). Every entry of the table
/// is callable: a name the library lacks answers CUDA_ERROR_NOT_SUPPORTED. The library is closed with the
/// Driver. Errors: the library does not load, or has no cuInit. Nothing is initialised.
Result<std::unique_ptr<Driver>> OpenDriver(const std::string& path);

}  // namespace cuplex
