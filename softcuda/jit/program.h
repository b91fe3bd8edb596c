// Program: a PTX module ready to run on CPU threads, and the values that describe its kernels and variables.
//
// The driver side of softcuda compiles a parsed module once, places its variables in device memory, then
// launches kernels through Workers (workers.h). Any thread; machine code is made per kernel, the first time
// it is needed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

/// CUDA's limits on every device that softcuda reports.
inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr uint32_t kMaxStaticShared = 48u << 10;
inline constexpr uint32_t kMaxShared = 227u << 10;  // static + dynamic, per block
inline constexpr uint32_t kMaxParamBytes = 32764;
inline constexpr uint32_t kMaxLocalBytes = 512u << 10;  // per thread

struct KernelParam {
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t alignment = 1;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelParam> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared = 0;    // bytes per block
  uint32_t reserved_shared = 0;  // bytes of shared memory before them that belong to the system
  uint32_t local_bytes = 0;      // bytes per thread
  uint32_t const_bytes = 0;      // file-scope .const the module declares
  uint32_t registers = 0;        // an estimate, 16..255
  uint32_t target = 0;           // the compute capability its .target names, as 75; 0 where it names none
  uint32_t max_threads = 1024;   // per block: .maxntid / .reqntid, else 1024
  std::array<uint32_t, 3> reqntid = {};  // zeros unless .reqntid is given
  bool waits = false;      // has barriers, warp collectives or loops that wait for other threads
  bool uses_heap = false;  // it, or what it calls, allocates memory
  std::string refusal;     // why softcuda cannot run it, as far as loading tells; empty where it seems to
};

/// A file-scope .global or .const variable. The driver allocates it and says where (Program::Place).
struct VariableInfo {
  std::string name;
  bool constant = false;
  size_t size = 0;
  size_t alignment = 1;
  /// A .texref or .surfref: holds the handle of what it is bound to, at first none.
  enum class Reference : uint8_t { kNone, kTexture, kSurface } reference = Reference::kNone;
};

class CodeCache;

/// How kernels run. What cannot run in the way that is asked for runs in the next best one.
enum class Path {
  kAuto,   // in lockstep, else as kLoop
  kLoop,   // the threads of a block in a loop, else as kSteps
  kSteps,  // one thread at a time up to where it waits: the way that every other one is held against
};

struct CompileOptions {
  Path path = Path::kAuto;
  /// Optimisation of the machine code, 0..3.
  int level = 2;
  /// Where code is kept for later, and other, processes; may be null, must outlive the program.
  CodeCache* cache = nullptr;
};

class Kernel;  // owned by its Program

class Program {
 public:
  virtual ~Program() = default;

  virtual const std::vector<KernelInfo>& kernels() const = 0;
  virtual const std::vector<VariableInfo>& variables() const = 0;

  /// nullptr where the module has no such entry. Valid as long as the Program.
  virtual Kernel* FindKernel(std::string_view name) = 0;
  virtual const KernelInfo& Info(const Kernel* kernel) const = 0;

  /// Says where a variable lies. Every variable must be placed before the first launch, and none moves after
  /// it.
  virtual Status Place(std::string_view variable, uintptr_t device_address) = 0;
  /// The variable's initial contents, addresses of other symbols filled in; call it once all are placed.
  /// Exactly `size` bytes.
  virtual Result<std::vector<std::byte>> InitialBytes(std::string_view variable) const = 0;

  /// Makes the kernel's machine code for blocks of that shape now, instead of at their first launch.
  virtual Status Prepare(Kernel* kernel, const std::array<uint32_t, 3>& block) = 0;
  /// Whether that is done.
  virtual bool IsReady(const Kernel* kernel, const std::array<uint32_t, 3>& block) const = 0;
};

/// Lays the module out and looks at every kernel, without compiling any: one with an instruction that
/// softcuda lacks, in itself or in what it calls, is there with its `refusal` and fails to Prepare, and the
/// others run. What a look does not tell, such as a type that an instruction does not take here, is refused
/// when the kernel is compiled. An Error is a module of which nothing can run, or whose variables cannot be.
/// `window` must outlive the program.
Result<std::shared_ptr<Program>> Compile(std::shared_ptr<const ptx::Module> module,
                                         const AddressWindow& window, CompileOptions options = {});

}  // namespace cuplex::softcuda
