#include "softcuda/transfer.h"

#include <memory>

#include "softcuda/driver.h"

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

}  // namespace

CUresult Transfer(Context& current, CUstream handle, bool wait, TransferEnd to, TransferEnd from, Box box) {
  const MemoryMap& memory = current.driver.memory;
  bool pageable_to = false, pageable_from = false;
  if (!box.empty() &&
      (!Check(memory, to, box, true, &pageable_to) || !Check(memory, from, box, false, &pageable_from))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Submission submission(current, handle);
  if (submission.result) return submission.result;
  if (box.empty()) return CUDA_SUCCESS;
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
  const MemoryMap& memory = current.driver.memory;
  bool pageable;
  if (!box.empty() &&
      (to.base % pattern.unit || !Check(memory, {EndKind::kDevice, to}, box, true, &pageable))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Submission submission(current, handle);
  if (submission.result) return submission.result;
  if (box.empty()) return CUDA_SUCCESS;
  return PushOrRun(submission, wait, wait,
                   [&memory, to, pattern, box] { return memory.Fill(to, pattern, box); });
}

}  // namespace cuplex::softcuda
