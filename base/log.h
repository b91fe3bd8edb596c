// Log lines: one a line, to standard error, "cuplexd[pid] LEVEL text". Any thread.
//
// Libraries loaded into other people's programs (client, runtime, softcuda) log through here too, under their
// own name, and only what their user must know. Level from CUPLEX_LOG (trace, debug, info, warn, error, off);
// default `warn` in libraries and `info` in programs.
#pragma once

#include <memory>
#include <string_view>

#include <spdlog/spdlog.h>

namespace cuplex {

/// The logger of this binary. `MakeLog` once, early, names it; before that it is called "cuplex" at level
/// warn.
spdlog::logger& Log();
void MakeLog(std::string_view name, spdlog::level::level_enum level);

}  // namespace cuplex
