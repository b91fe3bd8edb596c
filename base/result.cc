#include "base/result.h"

#include <system_error>

namespace cuplex {

Error FailErrno(int errno_value, std::string sentence) {
  return Error{Blame::kSystem, fmt::format("{}: {}", sentence, std::generic_category().message(errno_value)),
               0};
}

}  // namespace cuplex
