#include "softcuda/transfer.h"

#include <memory>

#include "softcuda/array.h"
#include "softcuda/driver.h"
#include "softcuda/graph/recorder.h"

namespace cuplex::softcuda {
namespace {

constexpr size_t kMostStaged = size_t{16} << 20;

// Bytes from the first to the last of the box; 0 where they do not fit.
size_t SpanOf(BoxAt at, Box box) {
  size_t rows = 0, planes = 0, bytes = 0;
  if (__builtin_mul_overflow(box.height - 1, at.row_pitch, &rows) ||
      __builtin_mul_overflow(box.depth - 1, at.plane_pitch, &planes) ||
      __builtin_add_overflow(rows, planes, &bytes) || __builtin_add_overflow(bytes, box.width, &bytes)) {
    return 0;
  }
  return bytes;
}

// Whether an end is what it is said to be, and if so whether it is memory that only this process's own thread
// may touch.
bool Check(const MemoryMap& memory, TransferEnd end, Box box, bool write, bool* pageable) {
  size_t span = SpanOf(end.at, box);
  auto side = memory.SideOf(end.at.base, span, write);
  if (side == MemoryMap::Side::kNowhere) return false;
  *pageable = side == MemoryMap::Side::kHost && !memory.IsPinned(end.at.base, span);
  return end.kind != EndKind::kDevice || !*pageable;
}

// One end of a pitched copy: the memory type says which pointer counts.
struct PitchedEnd {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z;
  size_t pitch, height;
};

CUresult Read(Context& context, const PitchedEnd& end, Box box, TransferEnd* out) {
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      out->kind = EndKind::kHost;
      out->at.base = reinterpret_cast<uintptr_t>(end.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      out->kind = EndKind::kDevice;
      out->at.base = end.device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      out->kind = EndKind::kUnified;
      out->at.base = end.device;
      break;
    case CU_MEMORYTYPE_ARRAY: {
      Ref<Array> array = context.driver.arrays.Find(end.array);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      out->kind = EndKind::kDevice;
      return PlaceInArray(*array, end.x, end.y, end.z, box, &out->at);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  // A pitch may be left out where there is one row only; it is the row's length then.
  size_t row_end, rows, plane, skip;
  if (__builtin_add_overflow(end.x, box.width, &row_end) ||
      __builtin_add_overflow(end.y, box.height, &rows)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  size_t pitch = end.pitch ? end.pitch : row_end;
  size_t height = end.height ? end.height : rows;
  bool many_rows = rows > 1 || end.z || box.depth > 1;
  if (many_rows && pitch < row_end) return CUDA_ERROR_INVALID_VALUE;
  if ((box.depth > 1 || end.z) && height < rows) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(pitch, height, &plane)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(end.z, plane, &skip) ||
      __builtin_add_overflow(skip, end.y * pitch + end.x, &skip)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out->at.base += skip;
  out->at.row_pitch = pitch;
  out->at.plane_pitch = plane;
  return CUDA_SUCCESS;
}

// Pushes what `run` does, or does it here where nothing is before it and the caller would wait anyway. `run`
// says whether its memory was still there.
template <typename F>
CUresult PushOrRun(Submission& submission, bool here_if_settled, bool wait, F run) {
  Context& context = submission.context();
  if (here_if_settled && submission.Settled()) {
    submission.Release();
    bool there = run();
    if (wait) context.GiveText();
    return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t number = submission.Push([run = std::move(run), &context](Stream&) {
    if (!run()) context.Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    return Progress::kDone;
  });
  if (!wait) return CUDA_SUCCESS;
  Ref<Stream> stream = HandleTable<Stream>::Share(&submission.stream());
  submission.Release();
  stream->Wait(number);
  context.GiveText();
  return context.fault();
}

CUDA_MEMCPY3D Written(TransferEnd to, TransferEnd from, Box box) {
  CUDA_MEMCPY3D copy{};
  auto type = [](EndKind kind) {
    return kind == EndKind::kDevice ? CU_MEMORYTYPE_DEVICE
           : kind == EndKind::kHost ? CU_MEMORYTYPE_HOST
                                    : CU_MEMORYTYPE_UNIFIED;
  };
  copy.srcMemoryType = type(from.kind);
  copy.srcHost = reinterpret_cast<const void*>(from.at.base);
  copy.srcDevice = from.at.base;
  copy.srcPitch = from.at.row_pitch;
  copy.srcHeight = from.at.row_pitch ? from.at.plane_pitch / from.at.row_pitch : 0;
  copy.dstMemoryType = type(to.kind);
  copy.dstHost = reinterpret_cast<void*>(to.at.base);
  copy.dstDevice = to.at.base;
  copy.dstPitch = to.at.row_pitch;
  copy.dstHeight = to.at.row_pitch ? to.at.plane_pitch / to.at.row_pitch : 0;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return copy;
}

}  // namespace

CUresult ReadCopy(Context& context, const CUDA_MEMCPY3D& c, TransferEnd* to, TransferEnd* from, Box* box) {
  if (c.srcLOD || c.dstLOD || c.reserved0 || c.reserved1) return CUDA_ERROR_INVALID_VALUE;
  *box = {c.WidthInBytes, c.Height, c.Depth};
  const PitchedEnd target = {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes,
                             c.dstY,          c.dstZ,    c.dstPitch,  c.dstHeight};
  const PitchedEnd source = {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes,
                             c.srcY,          c.srcZ,    c.srcPitch,  c.srcHeight};
  if (CUresult wrong = Read(context, target, *box, to)) return wrong;
  return Read(context, source, *box, from);
}

CUresult CheckCopy(const MemoryMap& memory, TransferEnd to, TransferEnd from, Box box) {
  bool pageable;
  const bool good =
      box.empty() || (Check(memory, to, box, true, &pageable) && Check(memory, from, box, false, &pageable));
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckFill(const MemoryMap& memory, BoxAt to, Pattern pattern, Box box) {
  bool pageable;
  const bool good = box.empty() || (to.base % pattern.unit == 0 &&
                                    Check(memory, {EndKind::kDevice, to}, box, true, &pageable));
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Transfer(Context& current, CUstream handle, bool wait, TransferEnd to, TransferEnd from, Box box,
                  const CUDA_MEMCPY3D* as_given) {
  if (wait) {
    if (CUresult refused = current.driver.graphs.RefuseUnsafe()) return refused;
  }
  const MemoryMap& memory = current.driver.memory;
  bool pageable_to = false, pageable_from = false;
  if (!box.empty() &&
      (!Check(memory, to, box, true, &pageable_to) || !Check(memory, from, box, false, &pageable_from))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Submission submission(current, handle, wait ? Submission::Captured::kRefuse : Submission::Captured::kTake);
  if (submission.result) return submission.result;
  if (box.empty()) return CUDA_SUCCESS;
  if (submission.captured()) [[unlikely]] {
    CapturedStream stream(submission);
    return stream.Append(graph::CopyWork{as_given ? *as_given : Written(to, from, box)});
  }
  wait = wait || pageable_to;

  if (pageable_from && !wait && !submission.Settled()) {
    size_t bytes = 0;
    if (!__builtin_mul_overflow(box.width * box.height, box.depth, &bytes) && bytes <= kMostStaged) {
      std::unique_ptr<std::byte[]> staged(new std::byte[bytes]);
      BoxAt packed{reinterpret_cast<uintptr_t>(staged.get()), box.width, box.width * box.height};
      if (!memory.Copy(packed, from.at, box)) return CUDA_ERROR_INVALID_VALUE;
      return PushOrRun(submission, false, false, [&memory, to, packed, box, staged = std::move(staged)] {
        return memory.Copy(to.at, packed, box);
      });
    }
    wait = true;
  }
  return PushOrRun(submission, wait || pageable_from, wait,
                   [&memory, to, from, box] { return memory.Copy(to.at, from.at, box); });
}

CUresult FillBox(Context& current, CUstream handle, bool wait, BoxAt to, Pattern pattern, Box box) {
  if (wait) {
    if (CUresult refused = current.driver.graphs.RefuseUnsafe()) return refused;
  }
  const MemoryMap& memory = current.driver.memory;
  if (CUresult wrong = CheckFill(memory, to, pattern, box)) return wrong;
  Submission submission(current, handle, wait ? Submission::Captured::kRefuse : Submission::Captured::kTake);
  if (submission.result) return submission.result;
  if (box.empty()) return CUDA_SUCCESS;
  if (submission.captured()) [[unlikely]] {
    CapturedStream stream(submission);
    return stream.Append(graph::FillWork{
        {to.base, to.row_pitch, pattern.value, pattern.unit, box.width / pattern.unit, box.height}});
  }
  return PushOrRun(submission, wait, wait,
                   [&memory, to, pattern, box] { return memory.Fill(to, pattern, box); });
}

}  // namespace cuplex::softcuda
