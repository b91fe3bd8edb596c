// Tell: a sentence to whoever runs the program, on standard error. Any thread.
//
// Plain write(2) and not base/log.h: libcudart goes into programs and containers that bring neither spdlog
// nor fmt, and must not pull them in. CUPLEX_LOG=off silences it, as it does the other libraries.
#pragma once

#include <string_view>

namespace cuplex::runtime {

/// Writes "libcudart: SENTENCE" as one line.
void Tell(std::string_view sentence);

/// The same, the first time that a caller gives this `subject`. Returns whether it was the first time.
bool TellOnce(std::string_view subject, std::string_view sentence);

}  // namespace cuplex::runtime
