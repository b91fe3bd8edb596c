#include "cuda/driver.h"

#include <dlfcn.h>

namespace cuplex {
namespace {

template <typename... A>
CUresult Missing(A...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <typename... A>
void Find(void* library, const char* name, CUresult (**slot)(A...)) {
  void* found = dlsym(library, name);
  *slot = found ? reinterpret_cast<CUresult (*)(A...)>(found) : &Missing<A...>;
}

}  // namespace

Driver::~Driver() {
  if (library_) dlclose(library_);
}

void* Driver::Find(const char* name) const { return dlsym(library_, name); }

Result<std::unique_ptr<Driver>> OpenDriver(const std::string& path) {
  std::unique_ptr<Driver> driver(new Driver);
  driver->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->library_)
    return Fail(Blame::kSystem, "the CUDA driver \"{}\" does not load: {}.", path, dlerror());
  void* init = dlsym(driver->library_, "cuInit");
  if (!init) return Fail(Blame::kCaller, "\"{}\" is not a CUDA driver: it has no cuInit.", path);
  Dl_info where;
  driver->path_ = dladdr(init, &where) && where.dli_fname ? where.dli_fname : path;
#define CUPLEX_FIND(name) Find(driver->library_, #name, &driver->table_.name);
  CUPLEX_DRIVER_CALLS(CUPLEX_FIND)
#undef CUPLEX_FIND
  return driver;
}

}  // namespace cuplex
