// MockDriver: a driver for libcudart's tests. It has one or two devices, keeps contexts and modules as
// numbers, takes device memory from the heap and copies at once, and writes down what was called. Unlisted
// calls answer CUDA_ERROR_NOT_SUPPORTED. One at a time in a process; its calls may come from any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/driver_table.h"

namespace cuplex::runtime {

class MockDriver {
 public:
  MockDriver();
  ~MockDriver();

  const DriverTable& table() const { return table_; }
  /// The calls so far, as "name argument argument".
  std::vector<std::string> calls() const;
  /// How many calls so far begin with `name`.
  int count(const std::string& name) const;
  void clear();

  /// From now on `name` answers `result` and does nothing; CUDA_SUCCESS lets it work again.
  void Answer(const std::string& name, CUresult result);

  int devices = 1;
  std::map<std::string, std::vector<char>> globals;  // the device variables of every module, by name
  std::set<std::string> functions;                   // the kernels of every module
  bool managed_globals = false;                      // whether cuPointerGetAttribute calls them managed
  bool open_fails = false;
  bool capturing = false;          // every stream is
  std::function<void()> captured;  // runs the last host function again
  std::function<void()> destroy;   // ends the last user object

  // For the mock's own calls.
  CUresult Note(const std::string& call);
  CUresult Global(const std::string& name, CUdeviceptr* address, size_t* bytes);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<std::string, CUresult> answers_;
  DriverTable table_{};
};

/// The living mock.
MockDriver& Mock();

/// Makes Root() a new Runtime over the living mock, and the calling thread one that has never called.
void RenewRoot();

}  // namespace cuplex::runtime
