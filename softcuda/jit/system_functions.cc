#include "softcuda/jit/system_functions.h"

#include <algorithm>

namespace cuplex::softcuda {

const SystemFunction* FindSystemFunction(std::string_view name, const FunctionLayout& declared) {
  static const std::vector<SystemFunction> functions = {
      {"vprintf", "cuplex_vprintf", {8, 8}, 4},
      {"__assertfail", "cuplex_assert_failed", {8, 8, 4, 8, 8}, 0, false},
      {"malloc", "cuplex_malloc", {8}, 8},
      {"free", "cuplex_free", {8}, 0},
  };
  auto it = std::ranges::find(functions, name, &SystemFunction::name);
  if (it == functions.end() || it->parameters != declared.params.sizes) return nullptr;
  std::vector<uint32_t> results;
  if (it->result) results.push_back(it->result);
  return results == declared.returns.sizes ? &*it : nullptr;
}

}  // namespace cuplex::softcuda
