#include "tests/slicing/sliced_module.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ptx/parser.h"

namespace cuplex::slicing {

std::optional<std::vector<std::byte>> LoadedKernel::Arguments(void** parameters, void** extra) const {
  std::vector<std::byte> bytes(layout.size);
  if (parameters) {
    for (size_t i = 0; i < layout.slots.size(); ++i)
      std::memcpy(bytes.data() + layout.slots[i].offset, parameters[i], layout.slots[i].size);
    return bytes;
  }
  const void* buffer = nullptr;
  size_t size = 0;
  for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const size_t*>(extra[1]);
  }
  if (size < bytes.size()) return std::nullopt;
  if (!bytes.empty()) std::memcpy(bytes.data(), buffer, bytes.size());
  return bytes;
}

std::vector<std::byte> LoadedKernel::Arguments(std::vector<std::byte> given, const ptx::GridSize& grid,
                                               const ptx::GridSlice& slice) const {
  const auto more = ptx::SliceArguments(sliced, grid, slice, globals);
  given.resize(sliced.arguments_offset);
  given.insert(given.end(), more.begin(), more.end());
  return given;
}

std::optional<std::string> SlicedModules::Add(CUmodule module, const char* image) {
  static constexpr std::array<unsigned char, 4> kFatbin = {0x50, 0xed, 0x55, 0xba},
                                                kElf = {0x7f, 'E', 'L', 'F'};
  if (!std::memcmp(image, kFatbin.data(), 4) || !std::memcmp(image, kElf.data(), 4)) return std::nullopt;
  auto tree = ptx::Parse(image);
  if (!tree.ok()) return std::nullopt;
  auto sliced = ptx::Slice(*tree);
  if (!sliced.ok()) return sliced.error().sentence;
  Row row;
  if (!sliced->text.empty()) {
    if (CUresult code = cu_.cuModuleLoadData(&row.sliced, sliced->text.c_str()))
      return fmt::format("the sliced module does not load ({}):\n{}", static_cast<int>(code), sliced->text);
  }
  std::lock_guard hold(lock_);
  for (ptx::SlicedKernel& kernel : sliced->kernels) {
    seen_[kernel.name] = kernel.refusal;
    if (auto layout = ptx::LayoutOf(*tree->FindFunction(kernel.name)); layout.ok())
      row.layouts[kernel.name] = *layout;
    row.kernels[kernel.name] = std::move(kernel);
  }
  for (const ptx::Variable& variable : tree->variables) {
    Memory memory;
    if ((variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) &&
        cu_.cuModuleGetGlobal_v2(&memory.address, &memory.bytes, module, variable.name.c_str()) ==
            CUDA_SUCCESS)
      row.variables.push_back(memory);
  }
  modules_[module] = std::move(row);
  return std::nullopt;
}

void SlicedModules::Remove(CUmodule module) {
  CUmodule sliced = nullptr;
  {
    std::lock_guard hold(lock_);
    auto found = modules_.find(module);
    if (found == modules_.end()) return;
    sliced = found->second.sliced;
    modules_.erase(found);
    std::erase_if(kernels_, [&](const auto& kernel) { return kernel.second.first == module; });
  }
  if (sliced) (void)cu_.cuModuleUnload(sliced);
}

std::optional<std::string> SlicedModules::Name(CUmodule module, CUfunction function, const char* name) {
  std::lock_guard hold(lock_);
  auto row = modules_.find(module);
  if (row == modules_.end() || !row->second.kernels.count(name)) return std::nullopt;
  auto kernel = std::make_shared<LoadedKernel>();
  kernel->sliced = row->second.kernels.at(name);
  kernels_[function] = {module, kernel};
  if (!kernel->sliced.refusal.empty()) return std::nullopt;
  kernel->layout = row->second.layouts.at(name);
  if (CUresult code = cu_.cuModuleGetFunction(&kernel->function, row->second.sliced, name))
    return fmt::format("the sliced module has no `{}` ({})", name, static_cast<int>(code));
  for (const std::string& global : kernel->sliced.globals) {
    CUdeviceptr address = 0;
    if (CUresult code = cu_.cuModuleGetGlobal_v2(&address, nullptr, module, global.c_str()))
      return fmt::format("the variable `{}` has no address ({})", global, static_cast<int>(code));
    kernel->globals.push_back(address);
  }
  for (const std::string& constant : kernel->sliced.constants) {
    LoadedKernel::Constant both{};
    if (cu_.cuModuleGetGlobal_v2(&both.original, &both.bytes, module, constant.c_str()) ||
        cu_.cuModuleGetGlobal_v2(&both.copy, &both.bytes, row->second.sliced, constant.c_str()))
      return fmt::format("the constant `{}` is not in both modules", constant);
    kernel->constants.push_back(both);
  }
  return std::nullopt;
}

std::shared_ptr<const LoadedKernel> SlicedModules::Find(CUfunction function) const {
  std::lock_guard hold(lock_);
  auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second.second;
}

std::vector<Memory> SlicedModules::VariablesOf(CUfunction function) const {
  std::lock_guard hold(lock_);
  auto found = kernels_.find(function);
  if (found == kernels_.end()) return {};
  auto module = modules_.find(found->second.first);
  return module == modules_.end() ? std::vector<Memory>() : module->second.variables;
}

std::map<std::string, std::string> SlicedModules::Kernels() const {
  std::lock_guard hold(lock_);
  return seen_;
}

}  // namespace cuplex::slicing
