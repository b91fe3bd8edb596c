// What every example has around its job: a description, its options, one report, an exit status. Main thread
// only.
//
// An example prints the same bytes on every run with the same options: no times, no addresses, no device
// names. Its last line is for machines:
//   NAME: ok checksum=HEX elements=N            exit status 0
//   NAME: wrong WHAT[INDEX]: got G, expected E  exit status 1
// A call that fails is one sentence on stderr and exit status 1; options that make no sense are one sentence
// on stderr and exit status 2. Times go to stderr, with --time alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace cuplex::examples {

struct Description {
  const char* name;          // as in the machine line
  const char* purpose;       // one sentence, for --help
  const char* size_meaning;  // what --size counts
  std::int64_t size;         // where none is given; so chosen that a CPU finishes in about half a second
  std::int64_t smallest;     // --size lies between these two, both included
  std::int64_t largest;
  const char* output = nullptr;  // the file that --output names by itself; nullptr: the example writes none
};

struct Options {
  std::int64_t size = 0;
  int repeat = 1;  // how often the device does the job; each result is checked
  bool time = false;
  std::string output;
};

/// A CUDA call that failed, or another reason to give up. what() is one whole sentence.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The whole of main(): reads the options, does `job`, which reports and says whether its result was right,
/// and gives the exit status. A Failure (or any std::exception) thrown by `job` is printed.
int RunProgram(int argc, char** argv, const Description& description,
               const std::function<bool(const Options&)>& job);

/// Prints to stderr how long its scope took, where --time was given.
class Timed {
 public:
  Timed(const Options& options, const char* what);
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  bool wanted_;
  const char* what_;
  std::chrono::steady_clock::time_point start_;
};

/// Prints a time measured by the device to stderr, where --time was given.
void PrintDeviceTime(const Options& options, const char* what, float milliseconds);

}  // namespace cuplex::examples
