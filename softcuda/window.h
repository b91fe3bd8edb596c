// AddressWindow: the one range of addresses that kernels may touch, reserved without memory behind it.
//
//     [guard | device range | host range | aperture | guard | fault zone]
//
// The driver maps memory into the device range and the host range at addresses that it chooses; kernels run
// on this process's threads, so whatever is mapped there is theirs and what is not faults. The aperture holds
// the shared, local and parameter memory of running blocks; `jit/` takes pieces of it. Any thread. The object
// owns the reservation; it must outlive everything compiled or run against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/result.h"

namespace cuplex::softcuda {

/// A half-open range of addresses, in bytes.
struct Window {
  uintptr_t base = 0;
  size_t size = 0;

  uintptr_t end() const { return base + size; }
  bool Contains(uintptr_t address, size_t bytes = 1) const {
    return address - base < size && bytes <= size - (address - base);
  }
};

/// Sizes must be multiples of 2 MiB, and so must the base; zero means the default of this build.
struct WindowLayout {
  uintptr_t base = 0;
  size_t device_bytes = 0;
  size_t host_bytes = 0;
  size_t aperture_bytes = 0;
};

class AddressWindow {
 public:
  /// Unmapped addresses on both sides, so that a base inside the window plus an offset smaller than this
  /// either stays inside or faults.
  static constexpr size_t kGuardBytes = size_t{16} << 20;
  /// 4 GiB for each of the shared, local and parameter state spaces, in that order, for offsets out of
  /// bounds; and the same again, kMisalignedZones further, for misaligned ones.
  static constexpr size_t kZoneBytes = size_t{4} << 30;
  static constexpr size_t kMisalignedZones = 3 * kZoneBytes;
  static constexpr size_t kZones = 6;

  /// Reserves the layout's base, or, where something lies there already, another one above it.
  static Result<std::unique_ptr<AddressWindow>> Reserve(WindowLayout layout = {});
  ~AddressWindow();
  AddressWindow(const AddressWindow&) = delete;
  AddressWindow& operator=(const AddressWindow&) = delete;

  const Window& all() const { return all_; }
  const Window& device() const { return device_; }
  const Window& host() const { return host_; }
  const Window& aperture() const { return aperture_; }
  /// Outside of all().
  Window fault_zone() const { return {all_.end() + kGuardBytes, kZones * kZoneBytes}; }

  /// A piece of the aperture, unmapped; `bytes` is rounded up to 2 MiB. Give takes back exactly what Take
  /// gave and unmaps it.
  Result<Window> TakeAperture(size_t bytes);
  void GiveAperture(Window piece);

  /// Memory outside the window that kernels may touch all the same (cuMemHostRegister), until forgotten.
  /// `begin` names the range again when it is forgotten.
  Status RegisterHostRange(uintptr_t begin, uintptr_t end);
  void ForgetHostRange(uintptr_t begin);
  bool InHostRange(uintptr_t address, size_t bytes) const;

 private:
  AddressWindow() = default;

  /// Everything reserved: from the first guard to one behind the fault zone.
  static size_t ReservedBytes(size_t bytes) { return bytes + 3 * kGuardBytes + kZones * kZoneBytes; }

  Window all_, device_, host_, aperture_;
  std::mutex aperture_lock_;
  uintptr_t aperture_next_ = 0;
  std::multimap<size_t, uintptr_t> aperture_given_;  // size -> base, ready to be taken again
  mutable std::shared_mutex host_ranges_lock_;
  std::map<uintptr_t, uintptr_t> host_ranges_;  // begin -> end
};

}  // namespace cuplex::softcuda
