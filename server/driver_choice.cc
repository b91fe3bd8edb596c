#include "server/driver_choice.h"

#include <filesystem>
#include <utility>

#include <dlfcn.h>

#include "base/log.h"
#include "server/driver_call.h"

namespace cuplex::server {
namespace {

/// Libraries of ours under the driver's name say so by a symbol.
constexpr const char* kClientMark = "cuplex_is_client";
constexpr const char* kZeroMark = "cuplex_memory_begins_zero";
constexpr const char* kSystemFolders[] = {"/usr/lib/x86_64-linux-gnu",  "/usr/lib64",
                                          "/usr/lib/aarch64-linux-gnu", "/usr/lib",
                                          "/usr/lib/wsl/lib",           "/usr/local/nvidia/lib64"};

bool Has(const std::string& path, const char* symbol) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) return false;
  const bool found = dlsym(library, symbol) != nullptr;
  dlclose(library);
  return found;
}

std::string Label(const DriverTable& cu, const Driver& driver, bool soft) {
  if (soft) return "softcuda";
  int version = 0;
  if (cu.cuDriverGetVersion(&version) != CUDA_SUCCESS) return std::filesystem::path(driver.path()).filename();
  return fmt::format("{} (CUDA {}.{})", std::filesystem::path(driver.path()).filename().string(),
                     version / 1000, version % 1000 / 10);
}

Result<DriverChoice> Open(const std::string& path) {
  if (Has(path, kClientMark))
    return Fail(Blame::kCaller, "\"{}\" is cuplex's client library; a CUDA driver was expected.", path);
  DriverChoice choice;
  TRY(choice.driver, OpenDriver(path));
  TRY(choice.devices, FindDevices(choice.driver->table()));
  if (choice.devices.empty()) return Fail(Blame::kSystem, "the CUDA driver \"{}\" reports no device.", path);
  choice.begins_zero = Has(choice.driver->path(), kZeroMark);
  choice.label = Label(choice.driver->table(), *choice.driver, choice.begins_zero);
  return choice;
}

Result<DriverChoice> OpenSystem() {
  auto found = Open("libcuda.so.1");
  if (found.ok()) return found;
  if (found.error().blame != Blame::kCaller) return found;
  // The loader's path leads to our client library first: look where drivers are installed.
  for (const char* folder : kSystemFolders) {
    const std::string path = fmt::format("{}/libcuda.so.1", folder);
    if (!std::filesystem::exists(path)) continue;
    auto other = Open(path);
    if (other.ok()) return other;
  }
  return found;
}

Result<std::string> SoftPath(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* beside :
       {"../soft/libcuda.so.1", "../lib/libcuda-soft.so", "../lib/cuplex/libcuda-soft.so"}) {
    const std::filesystem::path path = program.parent_path() / beside;
    if (std::filesystem::exists(path, error)) return path.lexically_normal().string();
  }
  return Fail(Blame::kSystem,
              "softcuda lies neither in ../soft nor in ../lib beside \"{}\"; --soft-driver says where.",
              program.string());
}

}  // namespace

Result<DriverChoice> ChooseDriver(const std::string& wanted, const std::string& soft_path) {
  std::string why;
  Result<DriverChoice> choice = Fail(Blame::kOurs, "no driver was tried.");
  if (wanted != "auto") {
    choice = Open(wanted);
    if (!choice.ok()) return choice;
  } else {
    choice = OpenSystem();
    if (!choice.ok()) {
      why = fmt::format("; no other driver has a device: {}", choice.error().sentence);
      TRY(std::string soft, SoftPath(soft_path));
      TRY(choice, Open(soft));
    }
  }
  Log().info("Work runs on {} at \"{}\", {} device{}{}", choice->label, choice->driver->path(),
             choice->devices.size(), choice->devices.size() == 1 ? "" : "s", why.empty() ? "." : why);
  return choice;
}

}  // namespace cuplex::server
