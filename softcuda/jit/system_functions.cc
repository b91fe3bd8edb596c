#include "softcuda/jit/system_functions.h"

#include <algorithm>

namespace cuplex::softcuda {

namespace {

const std::vector<SystemFunction>& Functions() {
  static const std::vector<SystemFunction> functions = {
      {"vprintf", "cuplex_vprintf", {8, 8}, 4},
      {"__assertfail", "cuplex_assert_failed", {8, 8, 4, 8, 8}, 0, false},
      {"malloc", "cuplex_malloc", {8}, 8},
      {"free", "cuplex_free", {8}, 0},
  };
  return functions;
}

}  // namespace

bool IsSystemFunction(std::string_view name) {
  return std::ranges::find(Functions(), name, &SystemFunction::name) != Functions().end();
}

const SystemFunction* FindSystemFunction(std::string_view name, const FunctionLayout& declared) {
  const std::vector<SystemFunction>& functions = Functions();
  auto it = std::ranges::find(functions, name, &SystemFunction::name);
  if (it == functions.end() || it->parameters != declared.params.sizes) return nullptr;
  std::vector<uint32_t> results;
  if (it->result) results.push_back(it->result);
  return results == declared.returns.sizes ? &*it : nullptr;
}

}  // namespace cuplex::softcuda
