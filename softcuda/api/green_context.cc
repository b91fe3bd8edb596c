// Green contexts: multiprocessors as resources, dividing them, and contexts that have some of them.
#include <cstring>
#include <vector>

#include "softcuda/exports.h"
#include "softcuda/green_context.h"
#include "softcuda/primary_context.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

// What a CUdevResource carries in its padding:
//   magic u64 | resources u64, a handle of Driver::resources | split u64, 0: not the result of one
struct Mark {
  static constexpr uint64_t kMagic = 0x6375706c65785352;
  uint64_t magic = kMagic;
  uint64_t resources = 0;
  uint64_t split = 0;
};
static_assert(sizeof(Mark) <= sizeof(CUdevResource::_internal_padding));

CUresult Put(Driver& driver, Device& device, const Partition::Set& set, uint64_t split, CUdevResource* out) {
  Ref<Resources> resources = device.Describe(driver.resources, set);
  if (!resources) return CUDA_ERROR_OUT_OF_MEMORY;
  const Mark mark{.resources = reinterpret_cast<uintptr_t>(resources.get()), .split = split};
  *out = {};
  out->type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(out->_internal_padding, &mark, sizeof(mark));
  // A multiprocessor here depends on no other.
  out->sm = {static_cast<unsigned>(set.count()), 1, 1};
  return CUDA_SUCCESS;
}

CUresult Get(Driver& driver, const CUdevResource& resource, Ref<Resources>* resources, uint64_t* split) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  Mark mark;
  std::memcpy(&mark, resource._internal_padding, sizeof(mark));
  if (mark.magic != Mark::kMagic) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *resources = driver.resources.Find(reinterpret_cast<void*>(mark.resources));
  *split = mark.split;
  return *resources ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

Partition::Set First(unsigned count) {
  Partition::Set set;
  for (unsigned i = 0; i < count; ++i) set.set(i);
  return set;
}

CUresult CheckQuery(const CUdevResource* resource, CUdevResourceType type) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

// f(GreenContext&), where it and its context live.
template <typename F>
CUresult InGreen(CUgreenCtx handle, F&& f) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<GreenContext> green = driver.green_contexts.Find(handle);
    if (!green) return CUDA_ERROR_INVALID_HANDLE;
    if (green->context().dead()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (CUresult fault = green->context().fault()) return fault;
    return f(*green);
  });
}

CUstream HandleOf(Stream& stream) { return reinterpret_cast<CUstream>(&stream); }

// Records an event once all has come by that `green`, or the whole context, was given so far.
CUresult RecordAll(Context& context, GreenContext* green, CUevent handle) {
  Ref<Event> event = context.driver.events.Find(handle);
  if (!event || &event->context != &context) return CUDA_ERROR_INVALID_HANDLE;
  const auto streams = context.StreamsOf(green);
  for (auto& stream : streams)
    if (stream->captured.load()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Ref<Stream> gathers = context.MakeStream(Stream::Kind::kNonBlocking, 0, green);
  if (!gathers) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result;
  {
    Submission submission(context, HandleOf(*gathers));
    result = submission.result;
    if (!result) {
      for (auto& stream : streams) {
        const uint64_t number = stream->submitted();
        if (!stream->Done(number)) submission.PushWait(*stream, number);
      }
      submission.PushRecord(event);
    }
  }
  context.RetireStream(gathers.get());
  return result;
}

CUresult WaitInAll(Context& context, GreenContext* green, CUevent handle) {
  Ref<Event> event = context.driver.events.Find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  const Event::Mark mark = event->mark();
  if (mark.Done()) return CUDA_SUCCESS;
  for (auto& stream : context.StreamsOf(green)) {
    if (stream.get() == mark.stream.get()) continue;
    if (stream->captured.load()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    Submission submission(context, HandleOf(*stream));
    if (submission.result) continue;  // it has gone meanwhile
    submission.PushWait(*mark.stream, mark.number);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return OnDevice(device, [&](Device& found) -> CUresult {
    if (CUresult wrong = CheckQuery(resource, type)) return wrong;
    return Put(*RunningDriver(), found, First(found.multiprocessors), 0, resource);
  });
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (CUresult wrong = CheckQuery(resource, type)) return wrong;
    Ref<GreenContext> green = driver.green_contexts.Find(hCtx);
    if (!hCtx && Thread::Here().green()) green = Thread::Here().contexts.back().green;
    if (green) return Put(driver, green->resources->device, green->resources->set, 0, resource);
    Context* current = Thread::Here().current();
    if (!hCtx && !current) return CUDA_ERROR_INVALID_CONTEXT;
    Ref<Context> context = driver.contexts.Find(hCtx ? static_cast<void*>(hCtx) : current);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    return Put(driver, context->device, First(context->partition.multiprocessors), 0, resource);
  });
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (CUresult wrong = CheckQuery(resource, type)) return wrong;
    Ref<GreenContext> green = driver.green_contexts.Find(hCtx);
    if (!green) return CUDA_ERROR_INVALID_HANDLE;
    return Put(driver, green->resources->device, green->resources->set, 0, resource);
  });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int useFlags, unsigned int minCount) {
  return InDriver([&](Driver& driver) -> CUresult {
    constexpr unsigned kFlags =
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    if (!nbGroups || !input || useFlags & ~kFlags) return CUDA_ERROR_INVALID_VALUE;
    Ref<Resources> from;
    uint64_t split;
    if (CUresult wrong = Get(driver, *input, &from, &split)) return wrong;
    if (split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const auto all = static_cast<unsigned>(from->set.count());
    if (minCount > all) return CUDA_ERROR_INVALID_VALUE;
    const unsigned each = std::max(minCount, 1u);
    const unsigned groups = result ? std::min(*nbGroups, all / each) : all / each;
    if (!result) {
      *nbGroups = groups;
      if (!remaining) return CUDA_SUCCESS;
    }
    const uint64_t number = driver.NextId();
    size_t at = 0;
    auto take = [&](unsigned count, CUdevResource* out) {
      Partition::Set set;
      for (; count; ++at) {
        if (!from->set[at]) continue;
        set.set(at);
        --count;
      }
      return Put(driver, from->device, set, number, out);
    };
    for (unsigned i = 0; i < groups; ++i) {
      CUdevResource unwanted;
      if (CUresult failed = take(each, result ? &result[i] : &unwanted)) return failed;
    }
    *nbGroups = groups;
    if (!remaining) return CUDA_SUCCESS;
    *remaining = {};
    return groups * each == all ? CUDA_SUCCESS : take(all - groups * each, remaining);
  });
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!phDesc || !resources || !nbResources) return CUDA_ERROR_INVALID_VALUE;
    Partition::Set set;
    Device* device = nullptr;
    uint64_t of = 0;
    for (unsigned i = 0; i < nbResources; ++i) {
      Ref<Resources> part;
      uint64_t split;
      if (CUresult wrong = Get(driver, resources[i], &part, &split)) return wrong;
      const bool first = i == 0;
      if (!first && (device != &part->device || split != of || !split || (set & part->set).any()))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
      device = &part->device;
      of = split;
      set |= part->set;
    }
    Ref<Resources> described = device->Describe(driver.resources, set);
    if (!described) return CUDA_ERROR_OUT_OF_MEMORY;
    *phDesc = reinterpret_cast<CUdevResourceDesc>(described.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    Driver& driver = *RunningDriver();
    Ref<Resources> resources = driver.resources.Find(desc);
    if (!resources || &resources->device != &device) return CUDA_ERROR_INVALID_VALUE;
    Ref<Context> primary;
    if (CUresult failed = RetainPrimary(device, &primary)) return failed;
    auto made = [&]() -> CUresult {
      auto part = device.Part(resources->set);
      if (!part.ok()) {
        Log().error("{}", part.error().sentence);
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      Ref<GreenContext> green =
          driver.green_contexts.Make(primary.get(), primary, resources, **part, driver.NextId());
      if (!green) return CUDA_ERROR_OUT_OF_MEMORY;
      green->null_stream = primary->MakeStream(Stream::Kind::kLegacy, 0, green.get());
      if (!green->null_stream) {
        HandleTable<GreenContext>::Retire(green.get());
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      *phCtx = reinterpret_cast<CUgreenCtx>(green.get());
      return CUDA_SUCCESS;
    }();
    if (made) (void)ReleasePrimary(device);
    return made;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<GreenContext> green = driver.green_contexts.Find(hCtx);
    if (!green || !HandleTable<GreenContext>::Retire(green.get())) return CUDA_ERROR_INVALID_HANDLE;
    auto& stack = Thread::Here().contexts;
    if (!stack.empty() && stack.back().green.get() == green.get()) stack.pop_back();
    // What was given to its streams still runs, and keeps the context for so long.
    for (auto& stream : green->context().StreamsOf(green.get(), /*retire=*/true))
      stream->Wait(stream->submitted());
    (void)ReleasePrimary(green->context().device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return InGreen(hCtx, [&](GreenContext& green) -> CUresult {
    if (!pContext) return CUDA_ERROR_INVALID_VALUE;
    *pContext = reinterpret_cast<CUcontext>(&green);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  return InGreen(greenCtx, [&](GreenContext& green) -> CUresult {
    if (!phStream || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    Ref<Stream> stream = green.context().MakeStream(
        Stream::Kind::kNonBlocking, std::clamp(priority, 1 - StreamPool::kPriorities, 0), &green);
    if (!stream) return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = reinterpret_cast<CUstream>(stream.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!greenCtxId) return CUDA_ERROR_INVALID_VALUE;
    GreenContext* current = Thread::Here().green();
    Ref<GreenContext> green = driver.green_contexts.Find(greenCtx ? static_cast<void*>(greenCtx) : current);
    if (!green) return CUDA_ERROR_INVALID_HANDLE;
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return InGreen(hCtx, [&](GreenContext& green) { return RecordAll(green.context(), &green, hEvent); });
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return InGreen(hCtx, [&](GreenContext& green) { return WaitInAll(green.context(), &green, hEvent); });
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (Ref<GreenContext> green = driver.green_contexts.Find(hCtx))
      return RecordAll(green->context(), green.get(), hEvent);
    Ref<Context> context = driver.contexts.Find(hCtx);
    return context ? RecordAll(*context, nullptr, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (Ref<GreenContext> green = driver.green_contexts.Find(hCtx))
      return WaitInAll(green->context(), green.get(), hEvent);
    Ref<Context> context = driver.contexts.Find(hCtx);
    return context ? WaitInAll(*context, nullptr, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
  });
}
