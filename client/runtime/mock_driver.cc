#include "client/runtime/mock_driver.h"

#include <cstring>

#include <fmt/format.h>

#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

MockDriver* living = nullptr;
Runtime* root = nullptr;
thread_local CUcontext current = nullptr;

template <typename... A>
void AnswerNotSupported(CUresult (**slot)(A...)) {
  *slot = +[](A...) { return CUDA_ERROR_NOT_SUPPORTED; };
}

uint64_t Number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
template <typename H>
H Handle(uint64_t number) {
  return reinterpret_cast<H>(number);
}

#define NOTE(...) \
  if (CUresult answer = Mock().Note(fmt::format(__VA_ARGS__)); answer != CUDA_SUCCESS) return answer

// The handles: context 0x1000 + device, modules 0x2000 + context's last digit, functions 0x3000 + the same.
DriverTable MakeTable() {
  DriverTable t{};
#define CUPLEX_MISSING(name) AnswerNotSupported(&t.name);
  CUPLEX_DRIVER_CALLS(CUPLEX_MISSING)
#undef CUPLEX_MISSING
  t.cuInit = [](unsigned flags) {
    NOTE("cuInit {}", flags);
    return CUDA_SUCCESS;
  };
  t.cuDriverGetVersion = [](int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetCount = [](int* count) {
    *count = Mock().devices;
    return CUDA_SUCCESS;
  };
  t.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetName = [](char* name, int room, CUdevice) {
    strncpy(name, "mock device", room);
    return CUDA_SUCCESS;
  };
  t.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    *bytes = size_t{8} << 30;
    return CUDA_SUCCESS;
  };
  // Every attribute is its own number and a thousand, so that a test sees which one was asked for.
  t.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = 1000 + attribute;
    return CUDA_SUCCESS;
  };
  t.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    NOTE("cuDevicePrimaryCtxRetain {}", device);
    *context = Handle<CUcontext>(0x1000 + device);
    return CUDA_SUCCESS;
  };
  t.cuDevicePrimaryCtxReset_v2 = [](CUdevice device) {
    NOTE("cuDevicePrimaryCtxReset_v2 {}", device);
    return CUDA_SUCCESS;
  };
  t.cuCtxGetCurrent = [](CUcontext* context) {
    *context = current;
    return CUDA_SUCCESS;
  };
  t.cuCtxSetCurrent = [](CUcontext context) {
    NOTE("cuCtxSetCurrent {:#x}", Number(context));
    current = context;
    return CUDA_SUCCESS;
  };
  t.cuCtxGetDevice = [](CUdevice* device) {
    *device = static_cast<int>(Number(current) & 0xf);
    return CUDA_SUCCESS;
  };
  t.cuCtxSynchronize = []() {
    NOTE("cuCtxSynchronize");
    return CUDA_SUCCESS;
  };
  t.cuModuleLoadData = [](CUmodule* module, const void* image) {
    NOTE("cuModuleLoadData {:#x} in {:#x}", Number(image), Number(current));
    *module = Handle<CUmodule>(0x2000 + (Number(current) & 0xff));
    return CUDA_SUCCESS;
  };
  t.cuModuleUnload = [](CUmodule module) {
    NOTE("cuModuleUnload {:#x} in {:#x}", Number(module), Number(current));
    return CUDA_SUCCESS;
  };
  t.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    NOTE("cuModuleGetFunction {}", name);
    if (!Mock().functions.contains(name)) return CUDA_ERROR_NOT_FOUND;
    *function = Handle<CUfunction>(0x3000 + (Number(module) & 0xff));
    return CUDA_SUCCESS;
  };
  t.cuModuleGetGlobal_v2 = [](CUdeviceptr* address, size_t* bytes, CUmodule, const char* name) {
    NOTE("cuModuleGetGlobal_v2 {}", name);
    return Mock().Global(name, address, bytes);
  };
  t.cuLaunchKernel = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** params, void**) {
    NOTE("cuLaunchKernel {:#x} {},{},{} {},{},{} {} {:#x} {}", Number(f), gx, gy, gz, bx, by, bz, shared,
         Number(stream), params ? *static_cast<int*>(params[0]) : -1);
    return CUDA_SUCCESS;
  };
  t.cuLaunchKernelEx = [](const CUlaunchConfig* c, CUfunction f, void**, void**) {
    NOTE("cuLaunchKernelEx {:#x} {},{},{} {},{},{} {} {:#x} attributes {} first {}", Number(f), c->gridDimX,
         c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes,
         Number(c->hStream), c->numAttrs, static_cast<int>(c->attrs[0].id));
    return CUDA_SUCCESS;
  };
  t.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
    NOTE("cuMemAlloc_v2 {}", bytes);
    *address = reinterpret_cast<CUdeviceptr>(new char[bytes]);
    return CUDA_SUCCESS;
  };
  t.cuMemFree_v2 = [](CUdeviceptr address) {
    NOTE("cuMemFree_v2");
    delete[] reinterpret_cast<char*>(address);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyHtoD_v2 = [](CUdeviceptr dst, const void* src, size_t bytes) {
    NOTE("cuMemcpyHtoD_v2 {}", bytes);
    memcpy(reinterpret_cast<void*>(dst), src, bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoH_v2 = [](void* dst, CUdeviceptr src, size_t bytes) {
    NOTE("cuMemcpyDtoH_v2 {}", bytes);
    memcpy(dst, reinterpret_cast<void*>(src), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoD_v2 = [](CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    NOTE("cuMemcpyDtoD_v2 {}", bytes);
    memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
    NOTE("cuMemcpyHtoDAsync_v2 {} {:#x}", bytes, Number(stream));
    memcpy(reinterpret_cast<void*>(dst), src, bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoHAsync_v2 = [](void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    NOTE("cuMemcpyDtoHAsync_v2 {} {:#x}", bytes, Number(stream));
    memcpy(dst, reinterpret_cast<void*>(src), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    NOTE("cuMemcpyDtoDAsync_v2 {} {:#x}", bytes, Number(stream));
    memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpy2DUnaligned_v2 = [](const CUDA_MEMCPY2D* c) {
    NOTE("cuMemcpy2DUnaligned_v2 {}x{} from {} to {}", c->WidthInBytes, c->Height,
         static_cast<int>(c->srcMemoryType), static_cast<int>(c->dstMemoryType));
    return CUDA_SUCCESS;
  };
  t.cuMemsetD2D8Async = [](CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
    NOTE("cuMemsetD2D8Async {}x{} pitch {} {:#x}", width, height, pitch, Number(stream));
    for (size_t y = 0; y < height; ++y) memset(reinterpret_cast<char*>(dst) + y * pitch, value, width);
    return CUDA_SUCCESS;
  };
  t.cuStreamSynchronize = [](CUstream stream) {
    NOTE("cuStreamSynchronize {:#x}", Number(stream));
    return CUDA_SUCCESS;
  };
  t.cuStreamQuery = [](CUstream stream) {
    NOTE("cuStreamQuery {:#x}", Number(stream));
    return CUDA_SUCCESS;
  };
  t.cuStreamAddCallback = [](CUstream stream, CUstreamCallback call, void* data, unsigned) {
    NOTE("cuStreamAddCallback {:#x}", Number(stream));
    call(stream, CUDA_ERROR_ILLEGAL_ADDRESS, data);
    return CUDA_SUCCESS;
  };
  t.cuLaunchHostFunc = [](CUstream stream, CUhostFn call, void* data) {
    NOTE("cuLaunchHostFunc {:#x}", Number(stream));
    Mock().captured = [=] { call(data); };
    if (!Mock().capturing) call(data);
    return CUDA_SUCCESS;
  };
  // A node is 0x5000 and its type.
  t.cuGraphAddKernelNode_v2 = [](CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* p) {
    NOTE("cuGraphAddKernelNode_v2 {:#x} after {}: {:#x} {},{},{} {},{},{} {} {}", Number(graph), count,
         Number(p->func), p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
         p->sharedMemBytes, *static_cast<int*>(p->kernelParams[0]));
    *node = Handle<CUgraphNode>(0x5000);
    return CUDA_SUCCESS;
  };
  t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS* p) {
    *p = {Handle<CUfunction>(0x3000), 1, 2, 3, 4, 5, 6, 7, nullptr, nullptr, nullptr, nullptr};
    return CUDA_SUCCESS;
  };
  t.cuGraphAddMemcpyNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D* c,
                              CUcontext context) {
    NOTE("cuGraphAddMemcpyNode {}x{}x{} from {} to {} in {:#x}", c->WidthInBytes, c->Height, c->Depth,
         static_cast<int>(c->srcMemoryType), static_cast<int>(c->dstMemoryType), Number(context));
    *node = Handle<CUgraphNode>(0x5001);
    return CUDA_SUCCESS;
  };
  t.cuGraphAddNode_v2 = [](CUgraphNode* node, CUgraph, const CUgraphNode*, const CUgraphEdgeData* edges,
                           size_t, CUgraphNodeParams* p) {
    NOTE("cuGraphAddNode_v2 type {} edges {}", static_cast<int>(p->type), edges != nullptr);
    if (p->type == CU_GRAPH_NODE_TYPE_MEMSET)
      NOTE("fill {:#x} in {:#x}", p->memset.value, Number(p->memset.ctx));
    if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) p->alloc.dptr = 0x77000;
    *node = Handle<CUgraphNode>(0x5000 + p->type);
    return CUDA_SUCCESS;
  };
  t.cuGraphInstantiateWithParams = [](CUgraphExec* exec, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
    NOTE("cuGraphInstantiateWithParams {} {:#x}", p->flags, Number(p->hUploadStream));
    p->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    *exec = Handle<CUgraphExec>(0x6000);
    return CUDA_SUCCESS;
  };
  t.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
    NOTE("cuGraphLaunch {:#x} {:#x}", Number(exec), Number(stream));
    return CUDA_SUCCESS;
  };
  // Capturing is whatever the test says; host functions of a captured stream are kept and not run.
  t.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = Mock().capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph* graph,
                                   const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *graph = Handle<CUgraph>(0x4000);
    return CUDA_SUCCESS;
  };
  t.cuUserObjectCreate = [](CUuserObject* object, void* data, CUhostFn destroy, unsigned count, unsigned) {
    NOTE("cuUserObjectCreate {}", count);
    Mock().destroy = [=] { destroy(data); };
    *object = Handle<CUuserObject>(0x7000);
    return CUDA_SUCCESS;
  };
  t.cuGraphRetainUserObject = [](CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    NOTE("cuGraphRetainUserObject {:#x} {:#x} {} {}", Number(graph), Number(object), count, flags);
    return CUDA_SUCCESS;
  };
  // Device memory is what the module holds; everything else is unknown memory of the host.
  t.cuPointerGetAttribute = [](void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    NOTE("cuPointerGetAttribute {}", static_cast<int>(attribute));
    bool ours = false;
    for (auto& [name, bytes] : Mock().globals) {
      auto start = reinterpret_cast<CUdeviceptr>(bytes.data());
      ours |= address >= start && address < start + bytes.size();
    }
    if (!ours) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *static_cast<CUmemorytype*>(data) = CU_MEMORYTYPE_DEVICE;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) *static_cast<unsigned*>(data) = Mock().managed_globals;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(data) = 0;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) *static_cast<CUdeviceptr*>(data) = address;
    return CUDA_SUCCESS;
  };
  return t;
}

}  // namespace

MockDriver::MockDriver() : table_(MakeTable()) { living = this; }

MockDriver::~MockDriver() { living = nullptr; }

MockDriver& Mock() { return *living; }

CUresult MockDriver::Note(const std::string& call) {
  std::lock_guard lock(mutex_);
  calls_.push_back(call);
  auto answer = answers_.find(call.substr(0, call.find(' ')));
  return answer == answers_.end() ? CUDA_SUCCESS : answer->second;
}

CUresult MockDriver::Global(const std::string& name, CUdeviceptr* address, size_t* bytes) {
  auto found = globals.find(name);
  if (found == globals.end()) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(found->second.data());
  *bytes = found->second.size();
  return CUDA_SUCCESS;
}

void MockDriver::Answer(const std::string& name, CUresult result) {
  std::lock_guard lock(mutex_);
  answers_[name] = result;
}

std::vector<std::string> MockDriver::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

int MockDriver::count(const std::string& name) const {
  int n = 0;
  for (const std::string& call : calls()) n += call.substr(0, call.find(' ')) == name;
  return n;
}

void MockDriver::clear() {
  std::lock_guard lock(mutex_);
  calls_.clear();
}

void RenewRoot() {
  delete root;
  root = new Runtime([]() -> Result<const DriverTable*> {
    if (Mock().open_fails) return Fail(Blame::kSystem, "The mock does not open.");
    return &Mock().table();
  });
  this_thread = {};
  current = nullptr;
}

Runtime& Root() { return *root; }

}  // namespace cuplex::runtime
