// The calls of a session that concern arrays, textures and surfaces.
//
// An array's memory is the driver's, outside of the tenant's arena, and charged all the same: as much as its
// layout takes (cuda/array_layout.h), in whole units of what drivers give arrays.
#include <cstring>
#include <utility>

#include "base/log.h"
#include "protocol/texture_request.h"
#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr uint64_t kArrayUnit = 64 << 10;
constexpr uint32_t kFromArray = 1, kToArray = 2;

uint64_t CostOf(const ArrayLayout& layout) {
  return (layout.Bytes() + kArrayUnit - 1) / kArrayUnit * kArrayUnit;
}

}  // namespace

// -------------------------------------------------------------------------------------------------- arrays

Outcome Session::wireArrayCreate(const CallFrame& frame, const wire::wireArrayCreateArgs& args,
                                 wire::wireArrayCreateReply*) {
  CUresult why;
  if (!Live(frame.context, &why)) return why;
  if (arrays_.size() >= kMostArrays) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (arrays_.Find(args.array())) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  CUDA_ARRAY3D_DESCRIPTOR wanted{};
  wanted.Width = args.width();
  wanted.Height = args.height();
  wanted.Depth = args.depth();
  wanted.Format = static_cast<CUarray_format>(args.format());
  wanted.NumChannels = args.channels();
  wanted.Flags = args.flags();
  OwnArray array;
  array.context = frame.context;
  array.mipmapped = args.levels() != 0;
  if (CUresult wrong = LayOutArray(wanted, array.mipmapped ? args.levels() : 1, &array.layout))
    return Refuse(metrics::Refusal::kArgument, wrong);
  array.charged = CostOf(array.layout);
  MakeArray(frame.slot, args.array(), wanted, std::move(array));
  return Outcome::Later();
}

void Session::MakeArray(uint32_t slot, uint64_t handle, const CUDA_ARRAY3D_DESCRIPTOR& wanted,
                        OwnArray array) {
  const wire::wireArrayCreateReply reply{};
  CUresult why;
  Context* context = Live(array.context, &why);
  if (!context) return Answer(slot, why, reply);
  Holding& holding = context->holding();
  if (array.charged > holding.free() && frees_) {
    after_frees_.push_back([=, this] { MakeArray(slot, handle, wanted, array); });
    return;
  }
  if (AwaitBudget(holding, array.charged, [=, this](bool enough) {
        enough ? MakeArray(slot, handle, wanted, array)
               : Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, wire::wireArrayCreateReply{});
      }))
    return;
  if (!holding.Charge(array.charged)) return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, reply);
  struct Made {
    CUresult code = CUDA_SUCCESS;
    CUarray array = nullptr;
    CUmipmappedArray mipmapped = nullptr;
  };
  auto made = std::make_shared<Made>();
  Post(
      true,
      [made, wanted, levels = array.mipmapped ? array.layout.levels : 0, driver = context->driver(),
       &cu = house_.cu] {
        made->code = cu.cuCtxSetCurrent(driver);
        if (!made->code)
          made->code = levels ? cu.cuMipmappedArrayCreate(&made->mipmapped, &wanted, levels)
                              : cu.cuArray3DCreate_v2(&made->array, &wanted);
        Context::Leave(cu);
      },
      [this, made, slot, handle, array, &holding]() mutable {
        array.handle = made->array;
        array.mipmapped_handle = made->mipmapped;
        CUresult why = made->code;
        // Of a context that ends meanwhile it goes with the context.
        if (!why && !ending_ && Live(array.context, &why)) {
          const uint64_t charged = array.charged;
          const uint32_t number = array.context;
          if (arrays_.Insert(handle, std::make_unique<OwnArray>(array)))
            return Answer(slot, CUDA_SUCCESS, wire::wireArrayCreateReply{});
          // The handle is taken: nobody will ever name this array, so it goes again.
          ++frees_;
          array.context = number;
          array.charged = charged;
          DestroyArrayJob(array, holding);
          return Answer(slot, Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE),
                        wire::wireArrayCreateReply{});
        }
        holding.Refund(array.charged);
        if (!ending_) Answer(slot, why, wire::wireArrayCreateReply{});
      });
}

/// Ends one of frees_.
void Session::DestroyArrayJob(const OwnArray& array, Holding& holding) {
  Post(
      true,
      [array, driver = contexts_.at(array.context).context->driver(), &cu = house_.cu] {
        if (!driver) return;  // it has gone with its context
        CUresult code = cu.cuCtxSetCurrent(driver);
        if (!code)
          code = array.mipmapped ? cu.cuMipmappedArrayDestroy(array.mipmapped_handle)
                                 : cu.cuArrayDestroy(array.handle);
        // One that the driver keeps goes with its context.
        if (code) Log().warn("An array is not destroyed: the driver answered {}.", static_cast<int>(code));
        Context::Leave(cu);
      },
      [this, charged = array.charged, &holding] {
        holding.Refund(charged);
        FreeDone();
      });
}

Outcome Session::wireArrayDestroy(const CallFrame&, const wire::wireArrayDestroyArgs& args) {
  std::unique_ptr<OwnArray>* found = arrays_.Find(args.array());
  if (!found) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if ((*found)->level_of) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  const OwnArray array = **found;
  if (contexts_.at(array.context).ending) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  for (uint64_t level : array.levels) arrays_.Erase(level);
  arrays_.Erase(args.array());
  ++gone_;
  // Copies and kernels that are queued may still use it.
  Holding& holding = contexts_.at(array.context).context->holding();
  ++frees_;
  contexts_.at(array.context).context->WhenAllDone([this, array, &holding](CUresult code) {
    if (code != CUDA_ERROR_CONTEXT_IS_DESTROYED) return DestroyArrayJob(array, holding);
    holding.Refund(array.charged);  // it goes with its context
    FreeDone();
  });
  return CUDA_SUCCESS;
}

Outcome Session::wireArrayLevel(const CallFrame&, const wire::wireArrayLevelArgs& args,
                                wire::wireArrayLevelReply*) {
  std::unique_ptr<OwnArray>* found = arrays_.Find(args.mipmapped());
  if (!found || !(*found)->mipmapped) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  OwnArray& whole = **found;
  CUresult why;
  Context* context = Live(whole.context, &why);
  if (!context) return why;
  if (args.level() >= whole.layout.levels)
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  if (arrays_.size() >= kMostArrays) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (CUresult code = context->Enter()) return code;
  auto level = std::make_unique<OwnArray>();
  level->context = whole.context;
  level->level_of = args.mipmapped();
  if (CUresult code =
          house_.cu.cuMipmappedArrayGetLevel(&level->handle, whole.mipmapped_handle, args.level()))
    return code;
  std::vector<uint64_t>& levels = whole.levels;
  if (!arrays_.Insert(args.array(), std::move(level)))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  levels.push_back(args.array());
  return CUDA_SUCCESS;
}

CUarray Session::FindArray(uint64_t handle, const Context* context) {
  std::unique_ptr<OwnArray>* found = arrays_.Find(handle);
  if (!found || (*found)->mipmapped) return nullptr;
  auto owner = contexts_.find((*found)->context);
  return owner != contexts_.end() && owner->second.context.get() == context ? (*found)->handle : nullptr;
}

bool Session::CopyOf(const wire::wireCopyArrayArgs& args, const Context* context, Operation::Copy* out) {
  Operation::Copy& copy = *out;
  copy = BoxOf(args);
  bool good = context && args.arrays() >= 1 && args.arrays() <= (kFromArray | kToArray) &&
              !(args.staged() & args.arrays());
  auto end = [&](bool in_array, uint64_t handle, uint64_t x, uint64_t y, uint64_t z,
                 Operation::InArray& out) {
    if (!in_array || !good) return;
    out = {FindArray(handle, context), x, y, z};
    good &= out.array != nullptr;
  };
  end(args.arrays() & kFromArray, args.src(), args.src_x(), args.src_y(), args.src_z(), copy.from);
  end(args.arrays() & kToArray, args.dst(), args.dst_x(), args.dst_y(), args.dst_z(), copy.to);
  auto bytes = [&](bool in_array, uint64_t pitch, uint64_t slice) -> std::optional<uint64_t> {
    return in_array ? 0 : CopyExtent(copy.bytes, copy.height, copy.depth, pitch, slice);
  };
  auto to = bytes(args.arrays() & kToArray, copy.dst_pitch, copy.dst_slice);
  auto from = bytes(args.arrays() & kFromArray, copy.src_pitch, copy.src_slice);
  return CheckCopy(copy, args.staged(), to.value_or(0), from.value_or(0)) && good && to && from;
}

Outcome Session::wireCopyArray(const CallFrame& frame, const wire::wireCopyArrayArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  Operation::Copy copy;
  const bool good = CopyOf(args, stream ? stream->context : nullptr, &copy);
  return GiveCopy(frame, OperationKind::kCopyBox, copy, args.stream(), good);
}

// ------------------------------------------------------------------------------------ textures, surfaces

namespace {

/// The request at the head of a span, copied out; nullopt where the span is too short.
std::optional<TextureRequest> RequestIn(std::span<const std::byte> bytes) {
  TextureRequest request;
  if (bytes.size() < sizeof(request)) return std::nullopt;
  std::memcpy(&request, bytes.data(), sizeof(request));
  return request;
}

CUDA_TEXTURE_DESC TextureOf(const TextureRequest& r) {
  CUDA_TEXTURE_DESC out{};
  for (int i = 0; i < 3; ++i) out.addressMode[i] = static_cast<CUaddress_mode>(r.address_mode[i]);
  out.filterMode = static_cast<CUfilter_mode>(r.filter);
  out.flags = r.flags;
  out.maxAnisotropy = r.anisotropy;
  out.mipmapFilterMode = static_cast<CUfilter_mode>(r.level_filter);
  out.mipmapLevelBias = r.level_bias;
  out.minMipmapLevelClamp = r.least_level;
  out.maxMipmapLevelClamp = r.most_level;
  std::memcpy(out.borderColor, r.border, sizeof(out.borderColor));
  return out;
}

CUDA_RESOURCE_VIEW_DESC ViewOf(const TextureRequest& r) {
  CUDA_RESOURCE_VIEW_DESC out{};
  out.format = static_cast<CUresourceViewFormat>(r.view_format);
  out.width = r.view_width;
  out.height = r.view_height;
  out.depth = r.view_depth;
  out.firstMipmapLevel = r.first_level;
  out.lastMipmapLevel = r.last_level;
  out.firstLayer = r.first_layer;
  out.lastLayer = r.last_layer;
  return out;
}

bool Sensible(const TextureRequest& r) {
  for (uint32_t mode : r.address_mode)
    if (mode > CU_TR_ADDRESS_MODE_BORDER) return false;
  return r.surface <= 1 && r.filter <= CU_TR_FILTER_MODE_LINEAR &&
         r.level_filter <= CU_TR_FILTER_MODE_LINEAR && r.view_format <= CU_RES_VIEW_FORMAT_FLOAT_4X32;
}

}  // namespace

CUresult Session::ResourceOf(const TextureRequest& r, uint32_t context, CUDA_RESOURCE_DESC* out) {
  *out = {};
  if (!Sensible(r)) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  out->resType = static_cast<CUresourcetype>(r.resource);
  auto owned = [&](uint64_t bytes) { return memory_.Around(r.address, bytes) != nullptr; };
  auto array = [&]() -> OwnArray* {
    std::unique_ptr<OwnArray>* found = arrays_.Find(r.array);
    return found && (*found)->context == context ? found->get() : nullptr;
  };
  const auto format = TexelFormatOf(static_cast<CUarray_format>(r.format), r.channels);
  switch (r.resource) {
    case CU_RESOURCE_TYPE_ARRAY: {
      OwnArray* own = array();
      if (!own || own->mipmapped) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
      out->res.array.hArray = own->handle;
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      OwnArray* own = array();
      if (!own || !own->mipmapped) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
      out->res.mipmap.hMipmappedArray = own->mipmapped_handle;
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR:
      if (!format || !owned(r.bytes)) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
      out->res.linear.devPtr = r.address;
      out->res.linear.format = static_cast<CUarray_format>(r.format);
      out->res.linear.numChannels = r.channels;
      out->res.linear.sizeInBytes = r.bytes;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto bytes = format && r.width >> 32 == 0
                             ? CopyExtent(r.width * format->bytes(), r.height, 1, r.pitch, 0)
                             : std::nullopt;
      if (!bytes || !owned(*bytes)) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
      out->res.pitch2D.devPtr = r.address;
      out->res.pitch2D.format = static_cast<CUarray_format>(r.format);
      out->res.pitch2D.numChannels = r.channels;
      out->res.pitch2D.width = r.width;
      out->res.pitch2D.height = r.height;
      out->res.pitch2D.pitchInBytes = r.pitch;
      return CUDA_SUCCESS;
    }
    default:
      return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  }
}

Outcome Session::wireTextureCreate(const CallFrame& frame, const wire::wireTextureCreateArgs&,
                                   std::span<const std::byte> request, wire::wireTextureCreateReply* reply) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  if (textures_.size() >= kMostTextures) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  const auto r = RequestIn(request);
  if (!r) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC resource;
  if (CUresult wrong = ResourceOf(*r, frame.context, &resource)) return wrong;
  if (CUresult code = context->Enter()) return code;
  const CUDA_TEXTURE_DESC texture = TextureOf(*r);
  const CUDA_RESOURCE_VIEW_DESC view = ViewOf(*r);
  CUtexObject handle = 0;
  const CUresult code =
      r->surface ? house_.cu.cuSurfObjectCreate(&handle, &resource)
                 : house_.cu.cuTexObjectCreate(&handle, &resource, &texture, r->has_view ? &view : nullptr);
  if (code) return code;
  textures_.insert({frame.context, r->surface != 0, handle});
  reply->mutate_texture(handle);
  return CUDA_SUCCESS;
}

Outcome Session::wireTextureDestroy(const CallFrame& frame, const wire::wireTextureDestroyArgs& args) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  const bool surface = args.surface() != 0;
  if (!textures_.erase({frame.context, surface, args.texture()}))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_VALUE);
  // Kernels that are queued may still name it.
  context->WhenAllDone([this, number = frame.context, surface, handle = args.texture()](CUresult code) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) return;  // it goes with its context
    Post(
        true,
        [surface, handle, driver = contexts_.at(number).context->driver(), &cu = house_.cu] {
          if (!driver) return;  // it has gone with its context
          CUresult gone = cu.cuCtxSetCurrent(driver);
          if (!gone) gone = surface ? cu.cuSurfObjectDestroy(handle) : cu.cuTexObjectDestroy(handle);
          if (gone && !IsSticky(gone))
            Log().warn("A texture is not destroyed: the driver answered {}.", static_cast<int>(gone));
          Context::Leave(cu);
        },
        [] {});
  });
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- references

namespace {

/// Makes a reference what the request says, on a thread whose current context is the module's.
CUresult BindTexture(const DriverTable& cu, CUtexref reference, const TextureRequest& r,
                     const CUDA_RESOURCE_DESC& resource) {
  CUresult code = CUDA_SUCCESS;
  auto then = [&](CUresult next) { code = code ? code : next; };
  for (int i = 0; i < 3; ++i)
    then(cu.cuTexRefSetAddressMode(reference, i, static_cast<CUaddress_mode>(r.address_mode[i])));
  then(cu.cuTexRefSetFilterMode(reference, static_cast<CUfilter_mode>(r.filter)));
  then(cu.cuTexRefSetFlags(reference, r.flags));
  float border[4];
  std::memcpy(border, r.border, sizeof(border));
  then(cu.cuTexRefSetBorderColor(reference, border));
  if (resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    then(cu.cuTexRefSetMipmapFilterMode(reference, static_cast<CUfilter_mode>(r.level_filter)));
    then(cu.cuTexRefSetMipmapLevelBias(reference, r.level_bias));
    then(cu.cuTexRefSetMipmapLevelClamp(reference, r.least_level, r.most_level));
  }
  if (code) return code;
  constexpr unsigned kOverrideFormat = 1;
  size_t offset = 0;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return cu.cuTexRefSetArray(reference, resource.res.array.hArray, kOverrideFormat);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return cu.cuTexRefSetMipmappedArray(reference, resource.res.mipmap.hMipmappedArray, kOverrideFormat);
    case CU_RESOURCE_TYPE_LINEAR:
      then(cu.cuTexRefSetFormat(reference, resource.res.linear.format,
                                static_cast<int>(resource.res.linear.numChannels)));
      then(cu.cuTexRefSetAddress_v2(&offset, reference, resource.res.linear.devPtr,
                                    resource.res.linear.sizeInBytes));
      return code;
    default: {
      const auto& p = resource.res.pitch2D;
      const CUDA_ARRAY_DESCRIPTOR shape{p.width, p.height, p.format, p.numChannels};
      then(cu.cuTexRefSetFormat(reference, p.format, static_cast<int>(p.numChannels)));
      then(cu.cuTexRefSetAddress2D_v3(reference, &shape, p.devPtr, p.pitchInBytes));
      return code;
    }
  }
}

}  // namespace

Outcome Session::wireReferenceBind(const CallFrame& frame, const wire::wireReferenceBindArgs& args,
                                   std::span<const std::byte> request, wire::wireReferenceBindReply*) {
  std::unique_ptr<OwnModule>* module = modules_.Find(args.module_id());
  if (!module) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  const uint32_t number = (*module)->context;
  CUresult why;
  Context* context = Live(number, &why);
  if (!context) return why;
  const auto r = RequestIn(request);
  if (!r) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  const auto name_bytes = request.subspan(sizeof(TextureRequest));
  const std::string name(reinterpret_cast<const char*>(name_bytes.data()), name_bytes.size());
  if (CUresult code = context->Enter()) return code;
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  const CUresult found = r->surface ? house_.cu.cuModuleGetSurfRef(&surface, (*module)->handle, name.c_str())
                                    : house_.cu.cuModuleGetTexRef(&texture, (*module)->handle, name.c_str());
  if (found || r->resource == kNoResource) return found;
  CUDA_RESOURCE_DESC resource;
  if (CUresult wrong = ResourceOf(*r, number, &resource)) return wrong;
  if (r->surface && resource.resType != CU_RESOURCE_TYPE_ARRAY)
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  // Kernels that are queued still mean what it is bound to now.
  context->WhenAllDone([=, this, slot = frame.slot, r = *r](CUresult code) {
    if (code) return Answer(slot, code, wire::wireReferenceBindReply{});
    auto bound = std::make_shared<CUresult>(CUDA_SUCCESS);
    Post(
        true,
        [=, driver = contexts_.at(number).context->driver(), &cu = house_.cu] {
          *bound = cu.cuCtxSetCurrent(driver);
          if (!*bound)
            *bound = r.surface ? cu.cuSurfRefSetArray(surface, resource.res.array.hArray, 0)
                               : BindTexture(cu, texture, r, resource);
          Context::Leave(cu);
        },
        [this, bound, slot] {
          if (!ending_) Answer(slot, *bound, wire::wireReferenceBindReply{});
        });
  });
  return Outcome::Later();
}

}  // namespace cuplex::server
