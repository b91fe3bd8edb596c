#include "tools/record_print.h"

#include <iterator>

#include <fmt/format.h>

namespace cuplex::tools {

std::string PrintRecord(const control::Record& record) {
  std::string out;
  if (!record.work()) return out;
  for (const control::RecordedWork* work : *record.work())
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{}\n", work->at_ns(), work->device(),
                   record.tenants()->Get(work->tenant())->string_view(), work->device_ns(),
                   work->sliceable() ? "yes" : "no");
  return out;
}

}  // namespace cuplex::tools
