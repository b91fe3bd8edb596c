#include "softcuda/primary_context.h"

#include <utility>

#include "base/log.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {
namespace {

// What a primary context's users have left; the device's lock is not held.
void Bury(Ref<Context> context) {
  if (context && HandleTable<Context>::Retire(context.get())) context->Die();
}

CUresult Refused(const Error& error) {
  Log().error("{}", error.sentence);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

CUresult MakeContext(Device& device, unsigned multiprocessors, unsigned flags, bool primary,
                     unsigned api_version, Ref<Context>* made) {
  Driver& driver = *RunningDriver();
  if (auto started = device.Start(*driver.window); !started.ok()) return Refused(started.error());
  Partition* part = nullptr;
  if (multiprocessors) {
    auto taken = device.TakePart(multiprocessors);
    if (!taken.ok()) return Refused(taken.error());
    part = *taken;
  }
  *made = driver.contexts.Make(nullptr, driver, device, part, flags, primary, api_version, driver.NextId());
  if (*made) return CUDA_SUCCESS;
  if (part) device.GivePart(part);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult RetainPrimary(Device& device, Ref<Context>* primary) {
  std::lock_guard guard(device.lock);
  if (!device.primary) {
    if (CUresult failed = MakeContext(device, 0, device.primary_flags, true, 3020, &device.primary))
      return failed;
  }
  ++device.primary_users;
  *primary = device.primary;
  return CUDA_SUCCESS;
}

CUresult ReleasePrimary(Device& device) {
  Ref<Context> last;
  {
    std::lock_guard guard(device.lock);
    if (!device.primary_users) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.primary_users == 0) std::swap(last, device.primary);
  }
  Bury(std::move(last));
  return CUDA_SUCCESS;
}

void ResetPrimary(Device& device) {
  Ref<Context> last;
  {
    std::lock_guard guard(device.lock);
    std::swap(last, device.primary);
    device.primary_users = 0;
  }
  Bury(std::move(last));
}

}  // namespace cuplex::softcuda
