#include "ptx/parameters.h"

namespace cuplex::ptx {

Result<ParameterLayout> LayoutOf(const Function& entry) {
  constexpr uint64_t kMost = 32764;
  if (!entry.entry) {
    return Fail(Blame::kCaller, "parameter layout wants an .entry, but {} is a .func", entry.name);
  }
  ParameterLayout layout;
  uint64_t end = 0;
  for (const Parameter& parameter : entry.parameters) {
    const Variable& variable = entry.variables[parameter.id];
    uint64_t alignment = variable.Alignment();
    uint64_t offset = (end + alignment - 1) & ~(alignment - 1);
    end = offset + variable.SizeBytes();
    if (end > kMost) {
      return Fail(Blame::kCaller, "parameters of {} take {} bytes up to {}, at most {} are allowed",
                  entry.name, end, variable.name, kMost);
    }
    layout.slots.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(variable.SizeBytes()),
                            static_cast<uint32_t>(alignment), variable.pointer});
  }
  layout.size = static_cast<uint32_t>(end);
  return layout;
}

}  // namespace cuplex::ptx
