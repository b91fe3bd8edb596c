#include "base/log.h"

#include <cstdlib>

#include <spdlog/sinks/stdout_sinks.h>

namespace cuplex {
namespace {

std::shared_ptr<spdlog::logger> Make(std::string_view name, spdlog::level::level_enum level) {
  auto log =
      std::make_shared<spdlog::logger>(std::string(name), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_pattern("%n[%P] %l: %v");
  if (const char* set = std::getenv("CUPLEX_LOG")) level = spdlog::level::from_str(set);
  log->set_level(level);
  return log;
}

// Leaked on purpose: threads of a host program may log while its static objects are being destroyed.
std::shared_ptr<spdlog::logger>& Slot() {
  static auto* slot = new std::shared_ptr<spdlog::logger>(Make("cuplex", spdlog::level::warn));
  return *slot;
}

}  // namespace

spdlog::logger& Log() { return *Slot(); }

void MakeLog(std::string_view name, spdlog::level::level_enum level) { Slot() = Make(name, level); }

}  // namespace cuplex
