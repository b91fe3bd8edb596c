#include "client/graph/shadow.h"

#include "client/host_memory.h"
#include "client/process.h"

namespace cuplex::client {

CUresult Shadows::Take(const Caller& caller, uint64_t bytes, std::shared_ptr<Shadow>* out) {
  {
    std::lock_guard lock(mutex_);
    auto& mine = free_[caller.number];
    auto at = mine.lower_bound(bytes);
    // One that is much larger is for somebody else.
    if (at != mine.end() && at->first / 2 <= bytes) {
      *out = std::make_shared<Shadow>(this, caller.number, at->second, at->first);
      mine.erase(at);
      return CUDA_SUCCESS;
    }
  }
  uint64_t address;
  if (CUresult r = AllocateHostMemory(caller, bytes, Allocation::kPinned, 0, &address)) return r;
  *out = std::make_shared<Shadow>(this, caller.number, address, bytes);
  return CUDA_SUCCESS;
}

void Shadows::Give(uint32_t context, uint64_t bytes, uint64_t address) {
  std::lock_guard lock(mutex_);
  if (auto mine = free_.find(context); mine != free_.end()) mine->second.emplace(bytes, address);
}

void Shadows::ForgetContext(uint32_t context) {
  std::lock_guard lock(mutex_);
  free_.erase(context);
}

}  // namespace cuplex::client
