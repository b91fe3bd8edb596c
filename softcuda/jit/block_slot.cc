#include "softcuda/jit/block_slot.h"

#include <cerrno>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace cuplex::softcuda {
namespace {

constexpr size_t kPage = 4096;

Status Map(uintptr_t at, size_t bytes) {
  if (mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) != 0) {
    return FailErrno(errno, fmt::format("softcuda: no memory for {} bytes of a block", bytes));
  }
  return {};
}

}  // namespace

void BlockSlot::Free::operator()(std::byte* p) const { std::free(p); }

BlockSlot::~BlockSlot() { window_.GiveAperture(piece_); }

Status BlockSlot::Fit(uint32_t records, uint32_t record_bytes, uint32_t threads, uint32_t local_bytes) {
  size_t local = (size_t{threads} * local_bytes + kPage - 1) / kPage * kPage;
  if (!piece_.size || local > piece_.size - kLocalAt) {
    window_.GiveAperture(std::exchange(piece_, {}));
    local_mapped_ = 0;
    TRY(piece_, window_.TakeAperture(kLocalAt + local + kPage));
    TRY(Map(params(), kParamWindow));
    TRY(Map(shared(), kSharedWindow));
  }
  if (local > local_mapped_) {
    TRY(Map(this->local(), local));
    local_mapped_ = local;
  }
  size_t bytes = size_t{records} * record_bytes;
  if (bytes > lanes_size_) {
    lanes_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    if (!lanes_) {
      lanes_size_ = 0;
      return Fail(Blame::kExhausted, "softcuda: no memory for {} bytes of thread records", bytes);
    }
    lanes_size_ = bytes;
  }
  return {};
}

}  // namespace cuplex::softcuda
