// libcuda-slicing.so: softcuda with every launch sliced. A program that opens it instead of libcuda.so.1 runs
// as before, and each launch of a kernel that can be sliced is run both whole and in slices of random size,
// from the same memory; every byte of device memory must be the same after both.
//
//   SLICING_REPORT=FILE      where to write what was done, as JSON, when the program ends
//   SLICING_SEED=N           other slices
//   SLICING_LONGEST_NS=N     instead of all that: launches are sliced so that a slice takes so long, and not
//                            compared; each kernel's first three launches are whole and measured
//
// What is not here is softcuda's own, which the loader finds behind this library.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "cuda/driver.h"
#include "tests/slicing/sliced_module.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace cuplex::slicing {
namespace {

struct Launch {
  CUfunction function;
  ptx::GridSize grid;
  std::array<unsigned, 3> block;
  unsigned shared;
  CUstream stream;
  void** parameters;
  void** extra;
};

class SlicingDriver {
 public:
  SlicingDriver() {
    auto opened = OpenDriver("libcuda-soft.so");  // which is loaded already, behind this library
    if (!opened.ok()) {
      std::fprintf(stderr, "libcuda-slicing: %s\n", opened.error().sentence.c_str());
      std::abort();
    }
    driver_ = std::move(*opened).release();  // it outlives every library that might still call
    modules_ = std::make_unique<SlicedModules>(cu());
    longest_ns_ = static_cast<double>(Number("SLICING_LONGEST_NS", 0));
    random_.seed(Number("SLICING_SEED", 1));
  }

  ~SlicingDriver() {
    if (const char* file = std::getenv("SLICING_REPORT")) Report(file);
    for (const std::string& sentence : wrong_)
      std::fprintf(stderr, "libcuda-slicing: %s\n", sentence.c_str());
  }

  const DriverTable& cu() const { return driver_->table(); }
  SlicedModules& modules() { return *modules_; }
  void Wrong(std::optional<std::string> sentence) {
    std::lock_guard hold(lock_);
    if (sentence) wrong_.push_back(*std::move(sentence));
  }

  void Allocated(CUdeviceptr address, size_t bytes, bool host) {
    CUcontext context = nullptr;
    (void)cu().cuCtxGetCurrent(&context);
    std::lock_guard hold(lock_);
    memory_[address] = {bytes, host, context};
  }
  void Freed(CUdeviceptr address) {
    std::lock_guard hold(lock_);
    memory_.erase(address);
  }
  void Left(CUcontext context) {
    std::lock_guard hold(lock_);
    std::erase_if(memory_, [&](const auto& memory) { return memory.second.context == context; });
  }

  void Set(CUfunction function, CUfunction_attribute attribute, int value) {
    if (auto kernel = modules_->Find(function); kernel && kernel->function)
      (void)cu().cuFuncSetAttribute(kernel->function, attribute, value);
  }

  CUresult Run(const Launch& launch) {
    auto kernel = modules_->Find(launch.function);
    if (!kernel || !kernel->function || !ptx::CheckGrid(kernel->sliced, launch.grid).ok()) {
      ++whole_;
      return Whole(launch);
    }
    const auto arguments = kernel->Arguments(launch.parameters, launch.extra);
    if (!arguments) return Whole(launch);
    return longest_ns_ > 0 ? Measured(launch, *kernel, *arguments) : Compared(launch, *kernel, *arguments);
  }

 private:
  struct Allocation {
    size_t bytes;
    bool host;
    CUcontext context;
  };
  using Image = std::map<CUdeviceptr, std::vector<std::byte>>;

  static uint64_t Number(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  }

  CUresult Whole(const Launch& l) const {
    return cu().cuLaunchKernel(l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                               l.block[2], l.shared, l.stream, l.parameters, l.extra);
  }

  template <typename Budget>
  CUresult Slices(const Launch& l, const LoadedKernel& kernel, const std::vector<std::byte>& given,
                  Budget budget) {
    // Only what writes through pointers could change them after that, and no program measured here does.
    if (longest_ns_ <= 0 || constants_.insert(l.function).second) {
      for (const LoadedKernel::Constant& constant : kernel.constants) {
        if (CUresult code =
                cu().cuMemcpyDtoDAsync_v2(constant.copy, constant.original, constant.bytes, l.stream))
          return code;
      }
    }
    const uint64_t blocks = ptx::BlocksOf(l.grid);
    ++sliced_;
    uint64_t count = 0;
    for (uint64_t first = 0; first < blocks; ++count) {
      const ptx::GridSlice slice = ptx::NextSlice(kernel.sliced, l.grid, first, budget());
      first += slice.count;
      auto arguments = kernel.Arguments(given, l.grid, slice);
      size_t bytes = arguments.size();
      void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                       CU_LAUNCH_PARAM_END};
      if (CUresult code =
              cu().cuLaunchKernel(kernel.function, slice.launch[0], slice.launch[1], slice.launch[2],
                                  l.block[0], l.block[1], l.block[2], l.shared, l.stream, nullptr, extra))
        return code;
    }
    slices_ += count;
    several_ += count > 1;
    return CUDA_SUCCESS;
  }

  CUresult Compared(const Launch& launch, const LoadedKernel& kernel, const std::vector<std::byte>& given) {
    if (CUresult code = cu().cuCtxSynchronize()) return code;
    const Image before = Read(launch.function);
    if (CUresult code = Whole(launch)) return code;
    if (cu().cuCtxSynchronize()) return CUDA_SUCCESS;  // a fault: the next call of the program says so
    const Image whole = Read(launch.function);
    Write(before);
    const uint64_t blocks = ptx::BlocksOf(launch.grid);
    const uint64_t most = std::max<uint64_t>(1, blocks / (2 + random_() % 12));
    CUresult code = Slices(launch, kernel, given, [&] {
      return ptx::SliceBudget{1, static_cast<double>(1 + random_() % (2 * most)), 1 + random_() % 4};
    });
    if (!code) code = cu().cuCtxSynchronize();
    if (code) {
      Wrong(fmt::format("kernel `{}`: the sliced launch gives {}, the whole one does not", kernel.sliced.name,
                        static_cast<int>(code)));
      return code;
    }
    const Image sliced = Read(launch.function);
    for (const auto& [address, bytes] : whole) {
      const auto& other = sliced.at(address);
      const auto differs = std::mismatch(bytes.begin(), bytes.end(), other.begin());
      if (differs.first == bytes.end()) continue;
      Wrong(fmt::format("kernel `{}`, grid {}x{}x{}: byte {} of {} at {:#x} differs", kernel.sliced.name,
                        launch.grid[0], launch.grid[1], launch.grid[2], differs.first - bytes.begin(),
                        bytes.size(), address));
    }
    return CUDA_SUCCESS;
  }

  CUresult Measured(const Launch& launch, const LoadedKernel& kernel, const std::vector<std::byte>& given) {
    auto& [runs, block_ns] = known_[{launch.function, launch.grid, launch.block}];
    if (++runs > 3)
      return Slices(launch, kernel, given,
                    [&, ns = block_ns] { return ptx::SliceBudget{ns, longest_ns_, 1}; });
    if (CUresult code = cu().cuCtxSynchronize()) return code;
    const auto began = std::chrono::steady_clock::now();
    if (CUresult code = Whole(launch)) return code;
    if (CUresult code = cu().cuCtxSynchronize()) return code;
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() /
        static_cast<double>(ptx::BlocksOf(launch.grid));
    block_ns = runs > 1 ? std::min(ns, block_ns) : ns;
    return CUDA_SUCCESS;
  }

  Image Read(CUfunction function) {
    CUcontext context = nullptr;
    (void)cu().cuCtxGetCurrent(&context);
    Image image;
    std::lock_guard hold(lock_);
    for (const auto& [address, allocation] : memory_) {
      if (allocation.context != context) continue;
      std::vector<std::byte> bytes(allocation.bytes);
      if (allocation.host) {
        std::memcpy(bytes.data(), reinterpret_cast<const void*>(address), bytes.size());
      } else if (cu().cuMemcpyDtoH_v2(bytes.data(), address, bytes.size())) {
        continue;
      }
      image[address] = std::move(bytes);
    }
    for (const Memory& variable : modules_->VariablesOf(function)) {
      std::vector<std::byte> bytes(variable.bytes);
      if (!cu().cuMemcpyDtoH_v2(bytes.data(), variable.address, bytes.size()))
        image[variable.address] = std::move(bytes);
    }
    return image;
  }

  void Write(const Image& image) {
    std::lock_guard hold(lock_);
    for (const auto& [address, bytes] : image) {
      auto known = memory_.find(address);
      if (known != memory_.end() && known->second.host) {
        std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
      } else {
        (void)cu().cuMemcpyHtoD_v2(address, bytes.data(), bytes.size());
      }
    }
  }

  void Report(const char* file) const {
    std::FILE* out = std::fopen(file, "w");
    if (!out) return;
    const auto text = [](std::string_view from) {
      std::string quoted = "\"";
      for (char c : from)
        quoted += c == '"' || c == '\\' ? '\'' : static_cast<unsigned char>(c) < ' ' ? ' ' : c;
      return quoted + '"';
    };
    fmt::print(out, "{{\"whole\": {}, \"sliced\": {}, \"several\": {}, \"slices\": {}, \"wrong\": [", whole_,
               sliced_, several_, slices_);
    const char* comma = "";
    for (const std::string& sentence : wrong_)
      fmt::print(out, "{}{}", std::exchange(comma, ", "), text(sentence));
    fmt::print(out, "], \"kernels\": {{");
    comma = "";
    for (const auto& [name, refusal] : modules_->Kernels())
      fmt::print(out, "{}{}: {}", std::exchange(comma, ", "), text(name), text(refusal));
    fmt::print(out, "}}}}\n");
    std::fclose(out);
  }

  Driver* driver_ = nullptr;
  std::unique_ptr<SlicedModules> modules_;
  std::mutex lock_;
  std::map<CUdeviceptr, Allocation> memory_;
  std::vector<std::string> wrong_;
  std::mt19937_64 random_;
  double longest_ns_ = 0;
  std::set<CUfunction> constants_;  // that have been copied, where launches are measured
  std::map<std::tuple<CUfunction, ptx::GridSize, std::array<unsigned, 3>>, std::pair<int, double>> known_;
  uint64_t whole_ = 0, sliced_ = 0, several_ = 0,
           slices_ = 0;  // launches, and the slices of those that were sliced
};

/// The library's one object, from the first call to the end of the process.
SlicingDriver& It() {
  static SlicingDriver it;
  return it;
}

}  // namespace
}  // namespace cuplex::slicing

using cuplex::slicing::It;

namespace {
CUresult Loaded(CUresult code, CUmodule* module, const void* image) {
  if (!code) It().Wrong(It().modules().Add(*module, static_cast<const char*>(image)));
  return code;
}
CUresult Allocated(CUresult code, const CUdeviceptr* at, size_t bytes, bool host = false) {
  if (!code && at) It().Allocated(*at, bytes, host);
  return code;
}
}  // namespace

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return Loaded(It().cu().cuModuleLoadData(module, image), module, image);
}
EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                   void** values) {
  return Loaded(It().cu().cuModuleLoadDataEx(module, image, count, options, values), module, image);
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  It().modules().Remove(module);
  return It().cu().cuModuleUnload(module);
}
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult code = It().cu().cuModuleGetFunction(function, module, name);
  if (!code) It().Wrong(It().modules().Name(module, *function, name));
  return code;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  It().Set(function, attribute, value);
  return It().cu().cuFuncSetAttribute(function, attribute, value);
}
EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void** parameters,
                               void** extra) {
  return It().Run({f, {gx, gy, gz}, {bx, by, bz}, shared, stream, parameters, extra});
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* at, size_t bytes) {
  return Allocated(It().cu().cuMemAlloc_v2(at, bytes), at, bytes);
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* at, size_t* pitch, size_t width, size_t height,
                                   unsigned element) {
  const CUresult code = It().cu().cuMemAllocPitch_v2(at, pitch, width, height, element);
  return Allocated(code, at, code ? 0 : *pitch * height);
}
EXPORT CUresult cuMemAllocManaged(CUdeviceptr* at, size_t bytes, unsigned flags) {
  return Allocated(It().cu().cuMemAllocManaged(at, bytes, flags), at, bytes);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr at) {
  It().Freed(at);
  return It().cu().cuMemFree_v2(at);
}
EXPORT CUresult cuMemHostAlloc(void** at, size_t bytes, unsigned flags) {
  const CUresult code = It().cu().cuMemHostAlloc(at, bytes, flags);
  const auto address = code ? 0 : reinterpret_cast<CUdeviceptr>(*at);
  return Allocated(code, &address, bytes, true);
}
EXPORT CUresult cuMemAllocHost_v2(void** at, size_t bytes) { return cuMemHostAlloc(at, bytes, 0); }
EXPORT CUresult cuMemFreeHost(void* at) {
  It().Freed(reinterpret_cast<CUdeviceptr>(at));
  return It().cu().cuMemFreeHost(at);
}
EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  It().Left(context);
  return It().cu().cuCtxDestroy_v2(context);
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUcontext context = nullptr;
  (void)It().cu().cuCtxGetCurrent(&context);
  const CUresult code = It().cu().cuDevicePrimaryCtxRelease_v2(device);
  int active = 0;
  unsigned flags = 0;
  if (!It().cu().cuDevicePrimaryCtxGetState(device, &flags, &active) && !active) It().Left(context);
  return code;
}
