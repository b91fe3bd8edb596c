#include "server/test_driver.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>

#include "base/result.h"

namespace cuplex::server {
namespace {

TestDriver* g_driver;
thread_local uint64_t t_current;

template <typename... A>
CUresult NotThere(A...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
template <typename... A>
void Clear(CUresult (**slot)(A...)) {
  *slot = &NotThere<A...>;
}

template <typename T>
T As(uint64_t handle) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(handle));
}
template <typename T>
uint64_t Id(T handle) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
}

constexpr CUresult kBadHandle = CUDA_ERROR_INVALID_HANDLE;

}  // namespace

#define D (*g_driver)
#define LOCK std::lock_guard lock(g_driver->lock_)

struct TestCalls {
  static CUresult Work(CUstream stream, std::string what, uint64_t ns) {
    LOCK;
    if (!D.streams.contains(Id(stream))) return kBadHandle;
    if (auto fault = D.fault_of_.find(D.context_of_[Id(stream)]); fault != D.fault_of_.end())
      return fault->second;
    if (D.log.size() < 100000) D.log.push_back(std::move(what));
    ++D.given_;
    if (D.clock) D.device_ns_ = std::max(D.device_ns_, D.clock->NowNs());
    D.device_ns_ += static_cast<int64_t>(ns);
    D.over_at_.push_back(D.device_ns_);
    if (!D.hold_) D.DoneTo(D.given_);
    return CUDA_SUCCESS;
  }

  // ------------------------------------------------------------------------------------------- device
  static CUresult Init(unsigned) { return CUDA_SUCCESS; }
  static CUresult Version(int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  }
  static CUresult Count(int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  }
  static CUresult Get(CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  }
  static CUresult Name(char* text, int bytes, CUdevice) {
    std::snprintf(text, static_cast<size_t>(bytes), "test device");
    return CUDA_SUCCESS;
  }
  static CUresult Uuid(CUuuid* uuid, CUdevice) {
    std::memset(uuid, 7, sizeof(*uuid));
    return CUDA_SUCCESS;
  }
  static CUresult BusId(char* text, int bytes, CUdevice) {
    std::snprintf(text, static_cast<size_t>(bytes), "0000:00:00.0");
    return CUDA_SUCCESS;
  }
  static CUresult Total(size_t* bytes, CUdevice) {
    *bytes = TestDriver::kMemory;
    return CUDA_SUCCESS;
  }
  static CUresult Attribute(int* value, CUdevice_attribute attribute, CUdevice) {
    *value = static_cast<int>(attribute);
    return CUDA_SUCCESS;
  }
  static CUresult Confines(int* value, CUexecAffinityType, CUdevice) {
    *value = D.confines_;
    return CUDA_SUCCESS;
  }
  static CUresult Granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
    *bytes = TestDriver::kGranule;
    return CUDA_SUCCESS;
  }

  // ------------------------------------------------------------------------------------------- contexts
  static CUresult CtxCreate(CUcontext* context, unsigned, CUdevice) {
    LOCK;
    t_current = D.next_ += 16;
    D.contexts.insert(t_current);
    *context = As<CUcontext>(t_current);
    return CUDA_SUCCESS;
  }
  static CUresult CtxCreateOn(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,
                              CUdevice device) {
    const CUresult code = CtxCreate(context, flags, device);
    if (count == 1) D.confined[Id(*context)] = affinity->param.smCount.val;
    return code;
  }
  static CUresult CtxDestroy(CUcontext context) {
    LOCK;
    const uint64_t id = Id(context);
    if (!D.contexts.erase(id)) return CUDA_ERROR_INVALID_CONTEXT;
    std::erase_if(D.streams, [&](uint64_t each) { return D.context_of_[each] == id; });
    std::erase_if(D.modules, [&](uint64_t each) { return D.context_of_[each] == id; });
    std::erase_if(D.events, [&](uint64_t each) { return D.event_of_[each].context == id; });
    return CUDA_SUCCESS;
  }
  static CUresult CtxSet(CUcontext context) {
    LOCK;
    if (context && !D.contexts.contains(Id(context))) return CUDA_ERROR_INVALID_CONTEXT;
    t_current = Id(context);
    return CUDA_SUCCESS;
  }
  static CUresult SetLimit(CUlimit, size_t) { return CUDA_SUCCESS; }
  static CUresult GetLimit(size_t* value, CUlimit limit) {
    *value = 1024 + static_cast<size_t>(limit);
    return CUDA_SUCCESS;
  }

  // ------------------------------------------------------------------------------------------- memory
  static CUresult Info(size_t* free, size_t* total) {
    LOCK;
    *total = TestDriver::kMemory;
    *free = TestDriver::kMemory - D.physical_bytes();
    return CUDA_SUCCESS;
  }
  static CUresult Reserve(CUdeviceptr* base, size_t bytes, size_t alignment, CUdeviceptr,
                          unsigned long long) {
    LOCK;
    D.next_base_ = (D.next_base_ + alignment - 1) / alignment * alignment;
    *base = D.next_base_;
    D.next_base_ += bytes;
    D.reserved[*base] = bytes;
    return CUDA_SUCCESS;
  }
  static CUresult Unreserve(CUdeviceptr base, size_t) {
    LOCK;
    return D.reserved.erase(base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                         unsigned long long) {
    LOCK;
    if (bytes % TestDriver::kGranule) return CUDA_ERROR_INVALID_VALUE;
    if (D.physical_bytes() + bytes > TestDriver::kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = D.next_ += 16;
    D.physical[*handle] = bytes;
    return CUDA_SUCCESS;
  }
  static CUresult Map(CUdeviceptr base, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                      unsigned long long) {
    LOCK;
    auto after = D.mapped.lower_bound(base);
    if (after != D.mapped.end() && after->first < base + bytes) return CUDA_ERROR_INVALID_VALUE;
    if (after != D.mapped.begin() && std::prev(after)->first + std::prev(after)->second.bytes > base)
      return CUDA_ERROR_INVALID_VALUE;
    if (!D.physical.contains(handle)) return kBadHandle;
    D.mapped[base] = {bytes, handle, false};
    return CUDA_SUCCESS;
  }
  static CUresult Access(CUdeviceptr base, size_t, const CUmemAccessDesc*, size_t) {
    LOCK;
    auto at = D.mapped.find(base);
    if (at == D.mapped.end()) return CUDA_ERROR_INVALID_VALUE;
    at->second.access = true;
    return CUDA_SUCCESS;
  }
  static CUresult Unmap(CUdeviceptr base, size_t) {
    LOCK;
    return D.mapped.erase(base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Release(CUmemGenericAllocationHandle handle) {
    LOCK;
    return D.physical.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Register(void*, size_t, unsigned) { return CUDA_SUCCESS; }
  static CUresult Unregister(void*) { return CUDA_SUCCESS; }

  // ------------------------------------------------------------------------------------------- modules
  static CUresult Load(CUmodule* module, const void* image, unsigned options, CUjit_option*, void** values) {
    LOCK;
    if (!D.contexts.contains(t_current)) return CUDA_ERROR_INVALID_CONTEXT;
    if (std::strstr(static_cast<const char*>(image), "nonsense")) {
      if (options == 2) std::strcpy(static_cast<char*>(values[0]), "nonsense is no instruction");
      return CUDA_ERROR_INVALID_PTX;
    }
    const uint64_t id = D.next_ += 16;
    D.modules.insert(id);
    D.context_of_[id] = t_current;
    *module = As<CUmodule>(id);
    return CUDA_SUCCESS;
  }
  static CUresult Unload(CUmodule module) {
    LOCK;
    return D.modules.erase(Id(module)) ? CUDA_SUCCESS : kBadHandle;
  }
  static CUresult GetFunction(CUfunction* function, CUmodule module, const char* name) {
    LOCK;
    if (!D.modules.contains(Id(module))) return kBadHandle;
    if (std::strcmp(name, "kernel") != 0) return CUDA_ERROR_NOT_FOUND;
    *function = As<CUfunction>(Id(module) + 1);
    return CUDA_SUCCESS;
  }
  static CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
    *value = 100 + static_cast<int>(attribute);
    return CUDA_SUCCESS;
  }
  static CUresult ParamInfo(CUfunction, size_t index, size_t* offset, size_t* size) {
    if (index >= 2) return CUDA_ERROR_INVALID_VALUE;
    *offset = index * 8;
    *size = index ? 4 : 8;
    return CUDA_SUCCESS;
  }
  static CUresult Global(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    LOCK;
    if (!D.modules.contains(Id(module))) return kBadHandle;
    if (std::strcmp(name, "variable") != 0) return CUDA_ERROR_NOT_FOUND;
    *address = (uint64_t{1} << 43) + Id(module) * 4096;
    *bytes = 64;
    return CUDA_SUCCESS;
  }

  // A link's image is what its inputs are, in a row, each behind its name.
  static CUresult LinkCreate(unsigned count, CUjit_option* names, void** values, CUlinkState* state) {
    LOCK;
    if (!D.contexts.contains(t_current)) return CUDA_ERROR_INVALID_CONTEXT;
    TestDriver::Link link;
    for (unsigned i = 0; i < count; ++i) {
      link.options.emplace_back(names[i], Id(values[i]));
      if (names[i] == CU_JIT_INFO_LOG_BUFFER) link.info = static_cast<char*>(values[i]);
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER) link.errors = static_cast<char*>(values[i]);
      if (names[i] == CU_JIT_WALL_TIME) link.wall_time = values + i;
      if (names[i] == CU_JIT_THREADS_PER_BLOCK) link.threads = values + i;
    }
    const uint64_t id = D.next_ += 16;
    D.links[id] = std::move(link);
    *state = As<CUlinkState>(id);
    return CUDA_SUCCESS;
  }
  static CUresult LinkAdd(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned count, CUjit_option* names, void** values) {
    LOCK;
    auto at = D.links.find(Id(state));
    if (at == D.links.end()) return kBadHandle;
    const std::string_view text(static_cast<const char*>(data), size);
    if (text.find("nonsense") != std::string_view::npos) {
      std::strcpy(at->second.errors, "nonsense is no instruction");
      return CUDA_ERROR_INVALID_PTX;
    }
    at->second.image += fmt::format("{} {}:", static_cast<int>(type), name ? name : "-");
    for (unsigned i = 0; i < count; ++i)
      at->second.image += fmt::format("{}={} ", static_cast<int>(names[i]), Id(values[i]));
    at->second.image += text;
    return CUDA_SUCCESS;
  }
  static CUresult LinkComplete(CUlinkState state, void** image, size_t* bytes) {
    LOCK;
    auto at = D.links.find(Id(state));
    if (at == D.links.end()) return kBadHandle;
    TestDriver::Link& link = at->second;
    std::strcpy(link.info, "linked");
    if (link.wall_time) *link.wall_time = As<void*>(0x40200000);  // 2.5f
    if (link.threads) *link.threads = As<void*>(96);
    D.linked_with = link.options;
    *image = link.image.data();
    *bytes = link.image.size();
    return CUDA_SUCCESS;
  }
  static CUresult LinkDestroy(CUlinkState state) {
    LOCK;
    return D.links.erase(Id(state)) ? CUDA_SUCCESS : kBadHandle;
  }

  // ------------------------------------------------------------------------------------------- streams
  static CUresult StreamCreate(CUstream* stream, unsigned) {
    LOCK;
    if (!D.contexts.contains(t_current)) return CUDA_ERROR_INVALID_CONTEXT;
    const uint64_t id = D.next_ += 16;
    D.streams.insert(id);
    D.context_of_[id] = t_current;
    *stream = As<CUstream>(id);
    return CUDA_SUCCESS;
  }
  static CUresult StreamDestroy(CUstream stream) {
    LOCK;
    return D.streams.erase(Id(stream)) ? CUDA_SUCCESS : kBadHandle;
  }
  static CUresult StreamSync(CUstream) { return CUDA_SUCCESS; }
  static CUresult StreamWait(CUstream stream, CUevent event, unsigned) {
    return Work(stream, fmt::format("wait {} on {}", Id(event), Id(stream)), 0);
  }
  static CUresult HostFunc(CUstream, CUhostFn, void*) { return CUDA_SUCCESS; }
  static CUresult EventCreate(CUevent* event, unsigned) {
    LOCK;
    if (!D.contexts.contains(t_current)) return CUDA_ERROR_INVALID_CONTEXT;
    const uint64_t id = D.next_ += 16;
    D.events.insert(id);
    D.event_of_[id] = {t_current, 0, 0};
    *event = As<CUevent>(id);
    return CUDA_SUCCESS;
  }
  static CUresult Record(CUevent event, CUstream stream) {
    if (CUresult code = Work(stream, fmt::format("record on {}", Id(stream)), 0)) return code;
    LOCK;
    if (!D.events.contains(Id(event))) return kBadHandle;
    TestDriver::Event& own = D.event_of_[Id(event)];
    own.position = D.given_;
    own.time_ns = D.device_ns_;
    return CUDA_SUCCESS;
  }
  static CUresult Query(CUevent event) {
    LOCK;
    if (!D.events.contains(Id(event))) return kBadHandle;
    const TestDriver::Event& own = D.event_of_[Id(event)];
    if (auto fault = D.fault_of_.find(own.context); fault != D.fault_of_.end()) return fault->second;
    return own.position <= D.done_ ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult EventSync(CUevent event) { return Query(event); }
  static CUresult Elapsed(float* ms, CUevent start, CUevent end) {
    LOCK;
    if (!D.events.contains(Id(start)) || !D.events.contains(Id(end))) return kBadHandle;
    *ms = static_cast<float>(
        static_cast<double>(D.event_of_[Id(end)].time_ns - D.event_of_[Id(start)].time_ns) / 1e6);
    return CUDA_SUCCESS;
  }

  // ------------------------------------------------------------------------------------------- work
  static CUresult SetFunctionAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
  static CUresult LaunchCooperative(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                                    unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                    void** parameters) {
    return Launch(function, x, y, z, bx, by, bz, shared, stream, parameters, nullptr);
  }
  static CUresult Launch(CUfunction function, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream stream, void**, void**) {
    if (x == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult code = Work(stream, fmt::format("launch {} on {}", x, Id(stream)), D.kernel_ns * x);
    LOCK;
    if (!code) D.grids.push_back(x);
    return code;
  }
  static CUresult Copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return Work(stream, fmt::format("copy {}", bytes), bytes);
  }
  static CUresult HtoD(CUdeviceptr, const void*, size_t bytes, CUstream stream) {
    return Work(stream, fmt::format("in {}", bytes), bytes);
  }
  static CUresult DtoH(void* host, CUdeviceptr, size_t bytes, CUstream stream) {
    std::memset(host, 0x5a, bytes);
    return Work(stream, fmt::format("out {}", bytes), bytes);
  }
  static CUresult Fill(CUdeviceptr, unsigned char, size_t bytes, CUstream stream) {
    return Work(stream, fmt::format("fill {}", bytes), bytes);
  }
};

TestDriver::TestDriver(bool confines) : confines_(confines) {
  assert(!g_driver);
  g_driver = this;
#define CLEAR(name) Clear(&table_.name);
  CUPLEX_DRIVER_CALLS(CLEAR)
#undef CLEAR
  using C = TestCalls;
  table_.cuInit = C::Init;
  table_.cuDriverGetVersion = C::Version;
  table_.cuDeviceGetCount = C::Count;
  table_.cuDeviceGet = C::Get;
  table_.cuDeviceGetName = C::Name;
  table_.cuDeviceGetUuid_v2 = C::Uuid;
  table_.cuDeviceGetPCIBusId = C::BusId;
  table_.cuDeviceTotalMem_v2 = C::Total;
  table_.cuDeviceGetAttribute = C::Attribute;
  table_.cuDeviceGetExecAffinitySupport = C::Confines;
  table_.cuMemGetAllocationGranularity = C::Granularity;
  table_.cuCtxCreate_v2 = C::CtxCreate;
  table_.cuCtxCreate_v3 = C::CtxCreateOn;
  table_.cuCtxDestroy_v2 = C::CtxDestroy;
  table_.cuCtxSetCurrent = C::CtxSet;
  table_.cuCtxSetLimit = C::SetLimit;
  table_.cuCtxGetLimit = C::GetLimit;
  table_.cuMemGetInfo_v2 = C::Info;
  table_.cuMemAddressReserve = C::Reserve;
  table_.cuMemAddressFree = C::Unreserve;
  table_.cuMemCreate = C::Create;
  table_.cuMemMap = C::Map;
  table_.cuMemSetAccess = C::Access;
  table_.cuMemUnmap = C::Unmap;
  table_.cuMemRelease = C::Release;
  table_.cuMemHostRegister_v2 = C::Register;
  table_.cuMemHostUnregister = C::Unregister;
  table_.cuModuleLoadDataEx = C::Load;
  table_.cuModuleUnload = C::Unload;
  table_.cuModuleGetFunction = C::GetFunction;
  table_.cuModuleGetGlobal_v2 = C::Global;
  table_.cuFuncGetAttribute = C::FunctionAttribute;
  table_.cuFuncGetParamInfo = C::ParamInfo;
  table_.cuLinkCreate_v2 = C::LinkCreate;
  table_.cuLinkAddData_v2 = C::LinkAdd;
  table_.cuLinkComplete = C::LinkComplete;
  table_.cuLinkDestroy = C::LinkDestroy;
  table_.cuStreamCreate = C::StreamCreate;
  table_.cuStreamDestroy_v2 = C::StreamDestroy;
  table_.cuStreamSynchronize = C::StreamSync;
  table_.cuStreamWaitEvent = C::StreamWait;
  table_.cuLaunchHostFunc = C::HostFunc;
  table_.cuEventCreate = C::EventCreate;
  table_.cuEventRecord = C::Record;
  table_.cuEventQuery = C::Query;
  table_.cuEventSynchronize = C::EventSync;
  table_.cuEventElapsedTime_v2 = C::Elapsed;
  table_.cuLaunchKernel = C::Launch;
  table_.cuLaunchCooperativeKernel = C::LaunchCooperative;
  table_.cuFuncSetAttribute = C::SetFunctionAttribute;
  table_.cuMemcpyAsync = C::Copy;
  table_.cuMemcpyHtoDAsync_v2 = C::HtoD;
  table_.cuMemcpyDtoHAsync_v2 = C::DtoH;
  table_.cuMemsetD8Async = C::Fill;
}

TestDriver::~TestDriver() { g_driver = nullptr; }

uint64_t TestDriver::physical_bytes() const {
  uint64_t sum = 0;
  for (auto [handle, bytes] : physical) sum += bytes;
  return sum;
}

void TestDriver::DoneTo(uint64_t piece) {
  done_ = piece;
  if (clock && piece) clock->AdvanceTo(over_at_[piece - 1]);
}

void TestDriver::Finish() {
  std::lock_guard lock(lock_);
  DoneTo(given_);
}

void TestDriver::Finish(uint64_t pieces) {
  std::lock_guard lock(lock_);
  DoneTo(std::min(given_, done_ + pieces));
}

void TestDriver::Fault(CUcontext context, CUresult code) {
  std::lock_guard lock(lock_);
  fault_of_[Id(context)] = code;
}

}  // namespace cuplex::server
