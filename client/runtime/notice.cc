#include "client/runtime/notice.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace cuplex::runtime {

void Tell(std::string_view sentence) {
  const char* level = getenv("CUPLEX_LOG");
  if (level && strcmp(level, "off") == 0) return;
  std::string line = "libcudart: " + std::string(sentence) + "\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

bool TellOnce(std::string_view subject, std::string_view sentence) {
  // Never destroyed: destructors of the program may still call us while it exits.
  static auto& mutex = *new std::mutex;
  static auto& told = *new std::set<std::string, std::less<>>;
  {
    std::lock_guard lock(mutex);
    if (!told.emplace(subject).second) return false;
  }
  Tell(sentence);
  return true;
}

}  // namespace cuplex::runtime
