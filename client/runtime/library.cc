// Libraries: device code that the program loads itself, and whose kernels it launches by handle.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t LibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options,
                            void** jit_values, unsigned int jit_count, cudaLibraryOption* options,
                            void** values, unsigned int count) {
  if (!library || !code) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    return cu.cuLibraryLoadData(library, code, reinterpret_cast<CUjit_option*>(jit_options), jit_values,
                                jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

cudaError_t LibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption* jit_options,
                                void** jit_values, unsigned int jit_count, cudaLibraryOption* options,
                                void** values, unsigned int count) {
  if (!library || !file) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    return cu.cuLibraryLoadFromFile(library, file, reinterpret_cast<CUjit_option*>(jit_options), jit_values,
                                    jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

cudaError_t LibraryUnload(cudaLibrary_t library) {
  return InContext([&](const DriverTable& cu) {
    CUresult result = cu.cuLibraryUnload(library);
    if (result == CUDA_SUCCESS) Root().Forget(library);
    return result;
  });
}

cudaError_t LibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  if (!kernel || !name) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    CUresult result = cu.cuLibraryGetKernel(kernel, library, name);
    if (result == CUDA_SUCCESS) Root().Adopt(library, *kernel);
    return result;
  });
}

cudaError_t LibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
  return InContext([&](const DriverTable& cu) { return cu.cuLibraryGetKernelCount(count, library); });
}

cudaError_t LibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int room, cudaLibrary_t library) {
  if (!kernels) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    unsigned int count = 0;
    RUNTIME_TRY(FromDriver(cu.cuLibraryGetKernelCount(&count, library)));
    RUNTIME_TRY(FromDriver(cu.cuLibraryEnumerateKernels(kernels, room, library)));
    for (unsigned int i = 0; i < count && i < room; ++i) Root().Adopt(library, kernels[i]);
    return cudaSuccess;
  });
}

cudaError_t LibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return InContext([&](const DriverTable& cu) {
    CUdeviceptr found = 0;
    RUNTIME_TRY(FromDriver(cu.cuLibraryGetGlobal(&found, bytes, library, name)));
    if (address) *address = Pointer(found);
    return cudaSuccess;
  });
}

cudaError_t LibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return InContext([&](const DriverTable& cu) {
    CUdeviceptr found = 0;
    RUNTIME_TRY(FromDriver(cu.cuLibraryGetManaged(&found, bytes, library, name)));
    if (address) *address = Pointer(found);
    return cudaSuccess;
  });
}

cudaError_t LibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char* symbol) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuLibraryGetUnifiedFunction(function, library, symbol); });
}

}  // namespace cuplex::runtime
