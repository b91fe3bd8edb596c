#include "softcuda/image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/log.h"
#include "cuda/fatbin.h"
#include "ptx/parser.h"

namespace cuplex::softcuda {
namespace {

Error With(Error error, CUresult code) {
  error.driver_code = code;
  return error;
}

Result<std::string> PtxOf(const void* image, unsigned arch) {
  auto bytes = ImageAt(image);
  if (!bytes.ok()) return With(bytes.error(), CUDA_ERROR_INVALID_IMAGE);
  switch (KindOfImage(*bytes)) {
    case ImageKind::kPtx:
      return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    case ImageKind::kFatbin: {
      auto ptx = PtxOfFatbin(*bytes, arch);
      if (ptx.ok()) return ptx;
      bool none = ptx.error().blame == Blame::kUnsupported;
      return With(ptx.error(), none ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE);
    }
    case ImageKind::kCubin:
      return With(
          Fail(Blame::kUnsupported,
               "the image is machine code, and softcuda runs PTX alone: build with `-gencode "
               "arch=compute_75,code=compute_75`, or have nvrtc make PTX (`-arch=compute_75`, nvrtcGetPTX)"),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    default:
      return With(Fail(Blame::kCaller, "the image begins like neither PTX nor a fatbin nor a cubin"),
                  CUDA_ERROR_INVALID_IMAGE);
  }
}

}  // namespace

Result<std::shared_ptr<const ptx::Module>> ReadImage(const void* image, unsigned arch) {
  TRY(std::string text, PtxOf(image, arch));
  auto tree = ptx::Parse(text);
  if (!tree.ok()) return With(tree.error(), CUDA_ERROR_INVALID_PTX);
  return std::make_shared<const ptx::Module>(*std::move(tree));
}

Result<std::string> ReadImageFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return With(Fail(Blame::kCaller, "{}: cannot be opened", path), CUDA_ERROR_FILE_NOT_FOUND);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (bytes.empty()) return With(Fail(Blame::kCaller, "{}: is empty", path), CUDA_ERROR_INVALID_IMAGE);
  bytes.push_back(0);
  return bytes;
}

Result<std::shared_ptr<Program>> CompileImage(std::shared_ptr<const ptx::Module> tree,
                                              const AddressWindow& window, const CompileOptions& options) {
  auto program = Compile(std::move(tree), window, options);
  if (program.ok()) return program;
  switch (program.error().blame) {
    case Blame::kUnsupported:
      return With(program.error(), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    case Blame::kExhausted:
      return With(program.error(), CUDA_ERROR_OUT_OF_MEMORY);
    case Blame::kOurs:
    case Blame::kSystem:
      return With(program.error(), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
    default:
      return With(program.error(), CUDA_ERROR_INVALID_PTX);
  }
}

CUresult JitOptions::Read(unsigned count, const CUjit_option* options, void** values) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    auto number = reinterpret_cast<uintptr_t>(values[i]);
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.size = static_cast<unsigned>(number);
        error_.size_value = values + i;
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        info_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.size = static_cast<unsigned>(number);
        info_.size_value = values + i;
        break;
      case CU_JIT_WALL_TIME:
        wall_time_ = values + i;
        break;
      case CU_JIT_OPTIMIZATION_LEVEL:
        if (number > 4) return CUDA_ERROR_INVALID_VALUE;
        compile.level = static_cast<int>(std::min<uintptr_t>(number, 3));
        break;
      default:
        if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::Log::Write(std::string_view text) {
  size_t written = 0;
  if (buffer && size) {
    size_t n = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = 0;
    written = text.empty() ? 0 : n + 1;
  }
  if (size_value) *size_value = reinterpret_cast<void*>(written);
}

void JitOptions::AddTime(std::chrono::duration<float, std::milli> time) {
  milliseconds_ += time.count();
  if (wall_time_) std::memcpy(wall_time_, &milliseconds_, sizeof(milliseconds_));
}

void JitOptions::WriteError(std::string_view sentence) {
  error_.Write(sentence);
  info_.Write({});
}

void JitOptions::WriteInfo(std::string_view text) {
  error_.Write({});
  info_.Write(text);
}

CUresult RefuseImage(const Error& error, JitOptions& options) {
  options.WriteError(error.sentence);
  Log().warn("module: {}", error.sentence);
  return error.driver_code ? static_cast<CUresult>(error.driver_code) : CUDA_ERROR_UNKNOWN;
}

std::string ReportRefusals(const Program& program) {
  std::string text;
  for (const KernelInfo& kernel : program.kernels()) {
    if (kernel.refusal.empty()) continue;
    Log().warn("module: kernel `{}` cannot run: {}", kernel.name, kernel.refusal);
    text += fmt::format("kernel `{}` cannot run: {}\n", kernel.name, kernel.refusal);
  }
  return text;
}

}  // namespace cuplex::softcuda
