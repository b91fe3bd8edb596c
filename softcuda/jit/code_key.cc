#include "softcuda/jit/code_key.h"

#include "ptx/printer.h"

namespace cuplex::softcuda {

Digest ContentOf(const ptx::Module& module, const ModuleLayout& layout, const KernelLayout& kernel,
                 const AddressWindow& window) {
  Digester d;
  for (const Window& w :
       {window.all(), window.device(), window.host(), window.aperture(), window.fault_zone()}) {
    d.Add(w.base);
    d.Add(w.size);
  }
  d.Add(kernel.local_bytes);
  d.Add(kernel.static_shared);
  for (const auto& [key, offset] : kernel.shared) {
    bool of_module = key.first == kModuleScope;
    d.Add(of_module ? module.variables[key.second].name
                    : module.functions[key.first].variables[key.second].name);
    d.Add(of_module ? std::string_view() : module.functions[key.first].name);
    d.Add(offset);
  }
  // Declarations, but for what variables hold; those that are called or have an address stand in the text.
  d.Add(ptx::PrintHead(module));
  for (const ptx::Variable& v : module.variables) {
    d.Add(v.name);
    d.Add(static_cast<uint64_t>(v.space));
    d.Add(static_cast<uint64_t>(v.type));
    d.Add(v.SizeBytes());
    d.Add(v.Alignment());
  }
  // What pointers to functions are, and which of them are called through.
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    if (!layout.functions[f].address_taken) continue;
    d.Add(module.functions[f].name);
    d.Add(ModuleLayout::FunctionToken(f));
  }
  for (uint32_t f : kernel.reachable) d.Add(ptx::Print(module, module.functions[f]));
  return d.Finish();
}

Digest KeyOf(const Digest& content, std::string_view variant) {
  Digester d;
  d.Add(content);
  d.Add(variant);
  return d.Finish();
}

}  // namespace cuplex::softcuda
