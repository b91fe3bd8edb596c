#include "server/sliced_function.h"

#include <utility>

#include "server/driver_call.h"

namespace cuplex::server {
namespace {

Status Fill(const DriverTable& cu, CUmodule original, CUfunction whole, std::string_view name,
            SlicedFunction& made) {
  CUPLEX_TRY_DRIVER(cu, cuModuleGetFunction, &made.handle, made.module, std::string(name).c_str());
  int shared = 0;
  CUPLEX_TRY_DRIVER(cu, cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, whole);
  CUPLEX_TRY_DRIVER(cu, cuFuncSetAttribute, made.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    shared);
  for (const std::string& variable : made.kernel.globals) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUPLEX_TRY_DRIVER(cu, cuModuleGetGlobal_v2, &address, &bytes, original, variable.c_str());
    made.globals.push_back(address);
  }
  for (const std::string& variable : made.kernel.constants) {
    SlicedFunction::Constant constant;
    CUPLEX_TRY_DRIVER(cu, cuModuleGetGlobal_v2, &constant.original, &constant.bytes, original,
                      variable.c_str());
    CUPLEX_TRY_DRIVER(cu, cuModuleGetGlobal_v2, &constant.copy, &constant.bytes, made.module,
                      variable.c_str());
    made.constants.push_back(constant);
  }
  return {};
}

}  // namespace

Result<SlicedFunction> MakeSliced(const DriverTable& cu, CUcontext context, CUmodule original,
                                  CUfunction whole, SlicedTexts& texts, std::string_view image, uint32_t arch,
                                  std::string_view name) {
  TRY(const auto sliced, texts.Get(image, arch, name));
  SlicedFunction made;
  made.kernel = sliced->kernel;
  if (!made.kernel.refusal.empty()) return Fail(Blame::kUnsupported, "{}", made.kernel.refusal);
  CUPLEX_TRY_DRIVER(cu, cuCtxSetCurrent, context);
  CUresult code = cu.cuModuleLoadDataEx(&made.module, sliced->text.c_str(), 0, nullptr, nullptr);
  Status filled = code ? DriverError("cuModuleLoadDataEx", code) : Fill(cu, original, whole, name, made);
  if (!filled.ok() && made.module) (void)cu.cuModuleUnload(made.module);
  (void)cu.cuCtxSetCurrent(nullptr);
  if (!filled.ok()) return filled.error();
  return made;
}

}  // namespace cuplex::server
