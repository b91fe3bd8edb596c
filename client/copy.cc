#include "client/copy.h"

#include <algorithm>
#include <cstring>

#include "client/exports.h"
#include "client/graph/capture.h"
#include "client/staging.h"

namespace cuplex::client {
namespace {

constexpr uint32_t kSourceStaged = 1;  // bits of wireCopy's `staged`
constexpr uint32_t kTargetStaged = 2;

CUresult PostCopy(const Caller& caller, uint64_t dst, uint64_t src, uint64_t bytes, Handle stream,
                  uint32_t staged) {
  return caller.session->submission().Post(Op::wireCopy, caller.number,
                                           wire::wireCopyArgs(dst, src, bytes, stream, staged));
}

}  // namespace

Place PlaceOf(const Session& session, uint64_t address, uint64_t bytes) {
  if (address == 0 || bytes > UINT64_MAX - address) return Place::kNowhere;
  const Snapshot& snapshot = session.snapshot();
  for (const DeviceSnapshot& d : snapshot.devices)
    if (d.arena.Contains(address)) return d.arena.Contains(address, bytes) ? Place::kDevice : Place::kNowhere;
  if (!snapshot.host_window.Contains(address)) {
    // A module's variables lie where the driver put them, outside every arena.
    const auto a = session.allocations.Find(address);
    if (!a || a->kind != Allocation::kGlobal) return Place::kPageable;
    return session.allocations.Holds(address, bytes) ? Place::kDevice : Place::kNowhere;
  }
  return session.allocations.Holds(address, bytes) ? Place::kShared : Place::kNowhere;
}

CUresult CheckPlace(Place place, Says says) {
  const bool right = place != Place::kNowhere && !(says == Says::kHost && place == Place::kDevice) &&
                     !(says == Says::kDevice && place == Place::kPageable);
  return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult AwaitStream(const Caller& caller, Handle stream) {
  wire::cuStreamSynchronizeReply reply;
  Submission& submission = caller.session->submission();
  const wire::cuStreamSynchronizeArgs args(stream);
  if (CUresult r = submission.Ask(Op::cuStreamSynchronize, caller.number, args, &reply)) return r;
  return submission.TakeDeferred();
}

CUresult CopyBytes(const Caller& caller, uint64_t dst, Says dst_says, uint64_t src, Says src_says,
                   uint64_t bytes, CopyOrder order) {
  if (bytes == 0) return CUDA_SUCCESS;
  Session& session = *caller.session;
  if (CUresult r = session.submission().TakeDeferred()) return r;
  const Place to = PlaceOf(session, dst, bytes);
  const Place from = PlaceOf(session, src, bytes);
  if (CUresult r = CheckPlace(to, dst_says)) return r;
  if (CUresult r = CheckPlace(from, src_says)) return r;
  // A device address that was never given to this process is the server's to judge; a call that waits anyway
  // also waits for that judgement.
  auto known = [&](Place place, uint64_t address) {
    return place != Place::kDevice || session.allocations.Holds(address, bytes);
  };

  if (to != Place::kDevice && from != Place::kDevice &&
      (to == Place::kPageable || from == Place::kPageable)) {
    if (CUresult r = AwaitStream(caller, order.stream)) return r;
    std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
    return CUDA_SUCCESS;
  }
  const uint64_t block = session.staging().block_bytes();
  auto size_of = [&](uint64_t piece) { return std::min(block, bytes - piece * block); };
  const uint64_t pieces = (bytes + block - 1) / block;
  if (from == Place::kPageable) {
    const CUresult r = StageIn(
        caller, pieces,
        [&](uint64_t piece, std::byte* to_block) {
          std::memcpy(to_block, reinterpret_cast<const std::byte*>(src) + piece * block, size_of(piece));
        },
        [&](uint64_t piece, uint64_t offset) {
          return PostCopy(caller, dst + piece * block, offset, size_of(piece), order.stream, kSourceStaged);
        });
    return r || !order.waits || known(to, dst) ? r : AwaitStream(caller, order.stream);
  }
  if (to == Place::kPageable) {
    return StageOut(
        caller, pieces,
        [&](uint64_t piece, uint64_t offset) {
          return PostCopy(caller, offset, src + piece * block, size_of(piece), order.stream, kTargetStaged);
        },
        [&](uint64_t piece, const std::byte* from_block) {
          std::memcpy(reinterpret_cast<std::byte*>(dst) + piece * block, from_block, size_of(piece));
        });
  }
  if (CUresult r = PostCopy(caller, dst, src, bytes, order.stream, 0)) return r;
  const bool on_device = to == Place::kDevice && from == Place::kDevice;
  const bool wait = order.waits && !(on_device && known(to, dst) && known(from, src));
  return wait ? AwaitStream(caller, order.stream) : CUDA_SUCCESS;
}

namespace {

CUresult Copy(uint64_t dst, Says dst_says, uint64_t src, Says src_says, size_t bytes, CUstream stream,
              bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUDA_MEMCPY3D line{};
    auto side = [](uint64_t address, Says says, CUmemorytype& type, auto& host, CUdeviceptr& device) {
      type = says == Says::kHost     ? CU_MEMORYTYPE_HOST
             : says == Says::kDevice ? CU_MEMORYTYPE_DEVICE
                                     : CU_MEMORYTYPE_UNIFIED;
      if (says == Says::kHost) {
        host = reinterpret_cast<void*>(address);
      } else {
        device = address;
      }
    };
    side(dst, dst_says, line.dstMemoryType, line.dstHost, line.dstDevice);
    side(src, src_says, line.srcMemoryType, line.srcHost, line.srcDevice);
    line.WidthInBytes = bytes;
    line.Height = line.Depth = 1;
    CUresult captured;
    if (CaptureCopy(caller, stream, line, waits, &captured)) return captured;
  }
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  return CopyBytes(caller, dst, dst_says, src, src_says, bytes, {h, waits});
}

uint64_t AddressOf(const void* p) { return reinterpret_cast<uint64_t>(p); }

CUresult CheckContexts(CUcontext a, CUcontext b) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->contexts.Find(a) && session->contexts.Find(b) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  return Copy(dst, Says::kNothing, src, Says::kNothing, n, nullptr, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream) {
  return Copy(dst, Says::kNothing, src, Says::kNothing, n, hStream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t n) {
  return Copy(dst, Says::kDevice, AddressOf(src), Says::kHost, n, nullptr, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t n, CUstream hStream) {
  return Copy(dst, Says::kDevice, AddressOf(src), Says::kHost, n, hStream, false);
}

CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t n) {
  return Copy(AddressOf(dst), Says::kHost, src, Says::kDevice, n, nullptr, true);
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t n, CUstream hStream) {
  return Copy(AddressOf(dst), Says::kHost, src, Says::kDevice, n, hStream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  return Copy(dst, Says::kDevice, src, Says::kDevice, n, nullptr, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream) {
  return Copy(dst, Says::kDevice, src, Says::kDevice, n, hStream, false);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                      size_t n) {
  if (CUresult r = CheckContexts(dstContext, srcContext)) return r;
  return Copy(dst, Says::kDevice, src, Says::kDevice, n, nullptr, true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                           size_t n, CUstream hStream) {
  if (CUresult r = CheckContexts(dstContext, srcContext)) return r;
  return Copy(dst, Says::kDevice, src, Says::kDevice, n, hStream, false);
}

}  // extern "C"
