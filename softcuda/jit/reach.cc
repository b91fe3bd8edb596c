#include "softcuda/jit/reach.h"

#include "softcuda/jit/running.h"

namespace cuplex::softcuda {

bool MayTouch(Running& r, uint64_t address, size_t bytes) {
  if (r.window->all().Contains(address, bytes)) return true;
  OutsideCode outside(r);  // the table has a lock
  return r.window->InHostRange(address, bytes);
}

std::byte* Reach(Running& running, bool shared, uint64_t address, uint64_t bytes, uint64_t alignment) {
  const BlockContext& block = *running.block;
  if (shared) {
    uint64_t limit = block.shared_bytes;
    if (address > limit || bytes > limit - address) {
      RaiseFault(running, Fault::Kind::kIllegalAddress, block.shared + address,
                 "outside of the shared memory there is");
    }
    address += block.shared;
  }
  if (address % alignment) RaiseFault(running, Fault::Kind::kMisalignedAddress, address, "");
  if (!running.window->all().Contains(address, bytes)) {
    bool registered = false;
    {
      OutsideCode outside(running);  // the table has a lock
      registered = running.window->InHostRange(address, bytes);
    }
    if (!registered) RaiseFault(running, Fault::Kind::kIllegalAddress, address, "");
  }
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace cuplex::softcuda
