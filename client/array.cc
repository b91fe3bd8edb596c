#include "client/array.h"

#include "client/exports.h"

namespace cuplex::client {

CUresult ArrayTable::Create(Session& session, uint32_t context, const CUDA_ARRAY3D_DESCRIPTOR& wanted,
                            unsigned levels, Handle* out) {
  Array array;
  if (CUresult wrong = LayOutArray(wanted, levels ? levels : 1, &array.layout)) return wrong;
  array.context = context;
  array.mipmapped = levels != 0;
  array.descriptor = wanted;
  array.levels.resize(levels ? array.layout.levels : 0);
  const Handle h = source_.Take();
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  wire::wireArrayCreateReply reply;
  const wire::wireArrayCreateArgs args(h, wanted.Width, wanted.Height, wanted.Depth, wanted.Format,
                                       wanted.NumChannels, wanted.Flags, levels ? array.layout.levels : 0);
  if (CUresult r = session.submission().Ask(Op::wireArrayCreate, context, args, &reply)) {
    source_.Return(h);
    return r;
  }
  std::lock_guard lock(mutex_);
  arrays_.emplace(h, std::move(array));
  *out = h;
  return CUDA_SUCCESS;
}

CUresult ArrayTable::Destroy(Session& session, Handle h, bool mipmapped) {
  Array array;
  {
    std::lock_guard lock(mutex_);
    auto at = arrays_.find(h);
    if (at == arrays_.end() || at->second.mipmapped != mipmapped) return CUDA_ERROR_INVALID_HANDLE;
    if (at->second.level_of) return CUDA_ERROR_INVALID_VALUE;
    array = std::move(at->second);
    arrays_.erase(at);
    for (Handle level : array.levels) arrays_.erase(level);
  }
  const CUresult r =
      session.submission().Post(Op::wireArrayDestroy, array.context, wire::wireArrayDestroyArgs(h));
  // Only now may the handles be given out again.
  for (Handle level : array.levels)
    if (level) source_.Return(level);
  source_.Return(h);
  return r;
}

CUresult ArrayTable::Level(Session& session, Handle mipmapped, unsigned level, Handle* out) {
  // One at a time, so that a level has one handle.
  std::lock_guard lock(mutex_);
  auto at = arrays_.find(mipmapped);
  if (at == arrays_.end() || !at->second.mipmapped) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= at->second.levels.size()) return CUDA_ERROR_INVALID_VALUE;
  Handle& known = at->second.levels[level];
  if (!known) {
    const Handle h = source_.Take();
    if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
    wire::wireArrayLevelReply reply;
    const wire::wireArrayLevelArgs args(mipmapped, h, level);
    if (CUresult r = session.submission().Ask(Op::wireArrayLevel, at->second.context, args, &reply)) {
      source_.Return(h);
      return r;
    }
    Array one = at->second;
    one.mipmapped = false;
    one.descriptor = AtLevel(one.descriptor, one.layout, level);
    one.level = level;
    one.level_of = mipmapped;
    one.levels.clear();
    arrays_.emplace(h, std::move(one));
    known = h;
  }
  *out = known;
  return CUDA_SUCCESS;
}

std::optional<Array> ArrayTable::Find(Handle h, bool mipmapped) {
  std::lock_guard lock(mutex_);
  auto at = arrays_.find(h);
  if (at == arrays_.end() || at->second.mipmapped != mipmapped) return std::nullopt;
  return at->second;
}

void ArrayTable::Forget(uint32_t context) {
  std::lock_guard lock(mutex_);
  std::erase_if(arrays_, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    source_.Return(entry.first);
    return true;
  });
}

}  // namespace cuplex::client

using namespace cuplex;
using namespace cuplex::client;

namespace {

CUresult Create(Handle* out, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  return caller.session->arrays.Create(*caller.session, caller.number, wanted, levels, out);
}

CUresult Find(uint64_t handle, bool mipmapped, Array* out) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  auto array = caller.session->arrays.Find(handle, mipmapped);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  *out = *std::move(array);
  return CUDA_SUCCESS;
}

Handle HandleOf(const void* array) { return reinterpret_cast<Handle>(array); }

CUresult Requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, const void* handle, bool mipmapped,
                      CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  auto array = caller.session->arrays.Find(HandleOf(handle), mipmapped);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (device != caller.context->device) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->size = array->layout.Bytes();
  out->alignment = kArrayAlignment;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  if (!pHandle || !pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  Handle h;
  if (CUresult r = Create(&h, *pAllocateArray, 0)) return r;
  *pHandle = reinterpret_cast<CUarray>(h);
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wanted = InThreeDimensions(*pAllocateArray);
  return cuArray3DCreate_v2(pHandle, &wanted);
}

CUresult cuArrayDestroy(CUarray hArray) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->arrays.Destroy(*session, HandleOf(hArray), false);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
  Array array;
  if (CUresult r = Find(HandleOf(hArray), false, &array)) return r;
  *pArrayDescriptor = array.descriptor;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
  Array array;
  if (CUresult r = Find(HandleOf(hArray), false, &array)) return r;
  const CUDA_ARRAY3D_DESCRIPTOR& d = array.descriptor;
  *pArrayDescriptor = {d.Width, d.Height, d.Format, d.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements, CUarray array,
                                      CUdevice device) {
  return Requirements(memoryRequirements, array, false, device);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  if (!pHandle || !pMipmappedArrayDesc || !numMipmapLevels) return CUDA_ERROR_INVALID_VALUE;
  Handle h;
  if (CUresult r = Create(&h, *pMipmappedArrayDesc, numMipmapLevels)) return r;
  *pHandle = reinterpret_cast<CUmipmappedArray>(h);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->arrays.Destroy(*session, HandleOf(hMipmappedArray), true);
}

CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray,
                                  unsigned int level) {
  if (!pLevelArray) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = caller.session->arrays.Level(*caller.session, HandleOf(hMipmappedArray), level, &h))
    return r;
  *pLevelArray = reinterpret_cast<CUarray>(h);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device) {
  return Requirements(memoryRequirements, mipmap, true, device);
}

}  // extern "C"
