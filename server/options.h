// Options: what cuplexd is started with. A value; any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace cuplex::server {

struct Options {
  std::string policy;           // path of the policy file
  std::string driver = "auto";  // or a path
  std::string soft_driver;      // where softcuda lies; empty: beside the program
  std::string run_dir;          // takes the place of the policy's; empty: the policy's own
  unsigned job_threads = 4;
  unsigned stop_seconds = 5;  // for SIGTERM
  bool check = false;         // read the policy, say what is wrong with it, end
};

/// What the command line asks for: options, or a text to print and end with success (help, version). Errors
/// say what was given and what was expected.
struct CommandLine {
  Options options;
  std::string text;  // not empty: print it and end
};
Result<CommandLine> ReadCommandLine(int argc, const char* const* argv);

}  // namespace cuplex::server
