// Green contexts, as the program sees them. The server gives a tenant the multiprocessors that its policy
// says, and does not divide these again: a green context here is the primary context with streams that are
// told apart, and its work may run on more multiprocessors than it asked for, as CUDA allows. What it never
// does is run on fewer. Its NULL stream is the primary context's.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "client/exports.h"

namespace cuplex::client {
namespace {

// What a CUdevResource carries in its padding:
//   magic u64 | device i32 | multiprocessors u32 | split u64, 0: not the result of one | group u64, of the
//   split
struct Mark {
  static constexpr uint64_t kMagic = 0x6375706c65785347;
  uint64_t magic = kMagic;
  int32_t device = 0;
  uint32_t multiprocessors = 0;
  uint64_t split = 0;
  uint64_t group = 0;
};
static_assert(sizeof(Mark) <= sizeof(CUdevResource::_internal_padding));

void Put(const Mark& mark, CUdevResource* out) {
  *out = {};
  out->type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(out->_internal_padding, &mark, sizeof(mark));
  out->sm = {mark.multiprocessors, 1, 1};
}

CUresult Get(Session& session, const CUdevResource& resource, Mark* out) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  std::memcpy(out, resource._internal_padding, sizeof(*out));
  return out->magic == Mark::kMagic && session.HasDevice(out->device) && out->multiprocessors
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

// A descriptor holds no more than which device and how many, so it is that: never given back, never stale.
//   1 bit set | device | multiprocessors
CUdevResourceDesc Describe(int device, uint32_t multiprocessors) {
  return reinterpret_cast<CUdevResourceDesc>((uintptr_t{1} << 62) | (static_cast<uintptr_t>(device) << 32) |
                                             multiprocessors);
}
bool Read(CUdevResourceDesc desc, int* device, uint32_t* multiprocessors) {
  const auto bits = reinterpret_cast<uintptr_t>(desc);
  *device = static_cast<int>((bits >> 32) & 0x3fffffff);
  *multiprocessors = static_cast<uint32_t>(bits);
  return bits >> 62 == 1 && *multiprocessors;
}

unsigned Multiprocessors(Session& session, int device) {
  return static_cast<unsigned>(
      session.device(device).AttributeOr(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1));
}

CUresult CheckQuery(const CUdevResource* resource, CUdevResourceType type) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

CUresult ResourceOf(Session& session, const Context& context, CUdevResource* out) {
  const unsigned its =
      context.green() ? context.green_multiprocessors : Multiprocessors(session, context.device);
  Put({.device = context.device, .multiprocessors = its}, out);
  return CUDA_SUCCESS;
}

/// The green context of a handle, alive.
CUresult Find(CUgreenCtx handle, Session** session, Context** out) {
  if (CUresult r = Enter(session)) return r;
  Context* context = (*session)->contexts.Find(reinterpret_cast<CUcontext>(handle));
  if (!context || !context->green()) return CUDA_ERROR_INVALID_HANDLE;
  if (!context->number.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *out = context;
  return CUDA_SUCCESS;
}

/// While one lives, the thread's current context is this.
class Within {
 public:
  explicit Within(Context* context) { ThisThread().contexts.push_back(context); }
  ~Within() { ThisThread().contexts.pop_back(); }
  Within(const Within&) = delete;
};

/// The streams of a green context, or of all of the context's.
std::vector<CUstream> StreamsOf(Session& session, const Context& context) {
  std::vector<CUstream> found;
  session.streams.ForEach([&](Handle h, Stream& s) {
    if (s.context == context.number.load() && (!context.green() || s.green == &context))
      found.push_back(reinterpret_cast<CUstream>(h));
  });
  return found;
}

/// A stream that has waited for all the context was given so far; destroyed with the scope.
class Gathered {
 public:
  Gathered(Session& session, Context& context) {
    CUevent event = nullptr;
    result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (!result) result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    auto streams = StreamsOf(session, context);
    if (!result) std::erase(streams, stream);
    streams.push_back(CU_STREAM_LEGACY);
    for (CUstream each : streams) {
      if (!result) result = cuEventRecord(event, each);
      if (!result) result = cuStreamWaitEvent(stream, event, 0);
    }
    if (event) (void)cuEventDestroy_v2(event);
  }
  ~Gathered() {
    if (stream) (void)cuStreamDestroy_v2(stream);
  }
  Gathered(const Gathered&) = delete;
  CUresult result = CUDA_SUCCESS;
  CUstream stream = nullptr;
};

CUresult RecordAll(Session& session, Context& context, CUevent event) {
  const Within within(&context);
  const Gathered all(session, context);
  return all.result ? all.result : cuEventRecord(event, all.stream);
}

CUresult WaitInAll(Session& session, Context& context, CUevent event) {
  const Within within(&context);
  auto streams = StreamsOf(session, context);
  streams.push_back(CU_STREAM_LEGACY);
  for (CUstream stream : streams)
    if (CUresult r = cuStreamWaitEvent(stream, event, 0)) return r;
  return CUDA_SUCCESS;
}

CUresult FindAny(CUcontext handle, Session** session, Context** out) {
  if (CUresult r = Enter(session)) return r;
  *out = (*session)->contexts.Find(handle);
  if (!*out) return CUDA_ERROR_INVALID_CONTEXT;
  return (*out)->number.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::atomic<uint64_t> last_split{0};

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  Session* session;
  if (CUresult r = EnterDevice(&session, device)) return r;
  if (CUresult r = CheckQuery(resource, type)) return r;
  Put({.device = device, .multiprocessors = Multiprocessors(*session, device)}, resource);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (CUresult r = CheckQuery(resource, type)) return r;
  Context* context = hCtx ? session->contexts.Find(hCtx) : ThisThread().current();
  return context ? ResourceOf(*session, *context, resource) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type) {
  Session* session;
  Context* context;
  if (CUresult r = CheckQuery(resource, type)) return r;
  if (CUresult r = Find(hCtx, &session, &context)) return r;
  return ResourceOf(*session, *context, resource);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int useFlags, unsigned int minCount) {
  constexpr unsigned kFlags =
      CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!nbGroups || !input || useFlags & ~kFlags) return CUDA_ERROR_INVALID_VALUE;
  Mark from;
  if (CUresult r = Get(*session, *input, &from)) return r;
  if (from.split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (minCount > from.multiprocessors) return CUDA_ERROR_INVALID_VALUE;
  const unsigned each = std::max(minCount, 1u);
  unsigned groups = from.multiprocessors / each;
  if (result) groups = std::min(groups, *nbGroups);
  Mark mark{.device = from.device, .multiprocessors = each, .split = ++last_split};
  for (unsigned i = 0; result && i < groups; ++i) {
    mark.group = i;
    Put(mark, &result[i]);
  }
  *nbGroups = groups;
  if (!remaining) return CUDA_SUCCESS;
  *remaining = {};
  mark.group = groups;
  mark.multiprocessors = from.multiprocessors - groups * each;
  if (mark.multiprocessors) Put(mark, remaining);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!phDesc || !resources || !nbResources) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint64_t> groups;
  Mark first;
  uint32_t multiprocessors = 0;
  for (unsigned i = 0; i < nbResources; ++i) {
    Mark mark;
    if (CUresult r = Get(*session, resources[i], &mark)) return r;
    if (i == 0) first = mark;
    const bool again = std::ranges::find(groups, mark.group) != groups.end();
    if (i && (mark.device != first.device || mark.split != first.split || !mark.split || again))
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    groups.push_back(mark.group);
    multiprocessors += mark.multiprocessors;
  }
  *phDesc = Describe(first.device, multiprocessors);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  int device;
  uint32_t multiprocessors;
  if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM || !Read(desc, &device, &multiprocessors) ||
      device != dev || multiprocessors > Multiprocessors(*session, dev)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context;
  if (CUresult r = session->contexts.CreateGreen(*session, dev, multiprocessors, &context)) return r;
  *phCtx = reinterpret_cast<CUgreenCtx>(context);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  Session* session;
  Context* context;
  if (CUresult r = Find(hCtx, &session, &context)) return r;
  for (CUstream stream : StreamsOf(*session, *context)) (void)cuStreamDestroy_v2(stream);
  Thread& thread = ThisThread();
  if (thread.current() == context) thread.contexts.pop_back();
  return session->contexts.DestroyGreen(*session, context);
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  Session* session;
  Context* context;
  if (CUresult r = Find(hCtx, &session, &context)) return r;
  if (!pContext) return CUDA_ERROR_INVALID_VALUE;
  *pContext = context->handle();
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  Session* session;
  Context* context;
  if (CUresult r = Find(greenCtx, &session, &context)) return r;
  if (!phStream || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const Within within(context);
  return cuStreamCreateWithPriority(phStream, flags, priority);
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!greenCtxId) return CUDA_ERROR_INVALID_VALUE;
  Context* context =
      greenCtx ? session->contexts.Find(reinterpret_cast<CUcontext>(greenCtx)) : ThisThread().current();
  if (!context || !context->green()) return CUDA_ERROR_INVALID_HANDLE;
  *greenCtxId = reinterpret_cast<uintptr_t>(context);  // never freed, so never another's
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  Session* session;
  Context* context;
  if (CUresult r = Find(hCtx, &session, &context)) return r;
  return RecordAll(*session, *context, hEvent);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  Session* session;
  Context* context;
  if (CUresult r = Find(hCtx, &session, &context)) return r;
  return WaitInAll(*session, *context, hEvent);
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  Session* session;
  Context* context;
  if (CUresult r = FindAny(hCtx, &session, &context)) return r;
  return RecordAll(*session, *context, hEvent);
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  Session* session;
  Context* context;
  if (CUresult r = FindAny(hCtx, &session, &context)) return r;
  return WaitInAll(*session, *context, hEvent);
}

}  // extern "C"
