#include "softcuda/window.h"

#include <sys/mman.h>
#include <cerrno>

namespace cuplex::softcuda {
namespace {

constexpr size_t kUnit = size_t{2} << 20;
constexpr size_t kTiB = size_t{1} << 40;
constexpr uintptr_t kDefaultBase = CUPLEX_DEFAULT_WINDOW_BASE;
// ThreadSanitizer leaves programs little room, so the ranges shrink with the base they start from.
constexpr bool kSmall = kDefaultBase < 2 * kTiB;
constexpr size_t kDefaultDevice = kSmall ? kTiB / 2 : 8 * kTiB;
constexpr size_t kDefaultHost = kSmall ? kTiB / 8 : kTiB;
constexpr size_t kDefaultAperture = kSmall ? kTiB / 4 : 4 * kTiB;

void* ReserveAt(uintptr_t at, size_t bytes) {
  return mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

}  // namespace

Result<std::unique_ptr<AddressWindow>> AddressWindow::Reserve(WindowLayout layout) {
  if (!layout.base) layout.base = kDefaultBase;
  if (!layout.device_bytes) layout.device_bytes = kDefaultDevice;
  if (!layout.host_bytes) layout.host_bytes = kDefaultHost;
  if (!layout.aperture_bytes) layout.aperture_bytes = kDefaultAperture;
  for (size_t n : {size_t{layout.base}, layout.device_bytes, layout.host_bytes, layout.aperture_bytes}) {
    if (n % kUnit) return Fail(Blame::kCaller, "window: {:#x} is not a multiple of 2 MiB", n);
  }
  size_t bytes = layout.device_bytes + layout.host_bytes + layout.aperture_bytes;
  void* got = MAP_FAILED;
  uintptr_t base = layout.base;
  for (int tries = 0; tries < 8 && got == MAP_FAILED; ++tries) {
    base = layout.base + tries * ((ReservedBytes(bytes) + kTiB / 16 - 1) / (kTiB / 16) * (kTiB / 16));
    got = ReserveAt(base - kGuardBytes, ReservedBytes(bytes));
    if (got != MAP_FAILED && got != reinterpret_cast<void*>(base - kGuardBytes)) {  // a kernel before 4.17
      munmap(got, ReservedBytes(bytes));
      got = MAP_FAILED;
    }
  }
  if (got == MAP_FAILED) {
    return FailErrno(errno, fmt::format("window: no room for {} GiB of addresses at or above {:#x}",
                                        bytes >> 30, layout.base));
  }
  // A core file of a reservation this size helps nobody.
  madvise(got, ReservedBytes(bytes), MADV_DONTDUMP);
  auto window = std::unique_ptr<AddressWindow>(new AddressWindow);
  window->all_ = {base, bytes};
  window->device_ = {base, layout.device_bytes};
  window->host_ = {window->device_.end(), layout.host_bytes};
  window->aperture_ = {window->host_.end(), layout.aperture_bytes};
  window->aperture_next_ = window->aperture_.base;
  return window;
}

AddressWindow::~AddressWindow() {
  munmap(reinterpret_cast<void*>(all_.base - kGuardBytes), ReservedBytes(all_.size));
}

Result<Window> AddressWindow::TakeAperture(size_t bytes) {
  bytes = (bytes + kUnit - 1) / kUnit * kUnit;
  std::lock_guard lock(aperture_lock_);
  if (auto it = aperture_given_.find(bytes); it != aperture_given_.end()) {
    Window piece{it->second, bytes};
    aperture_given_.erase(it);
    return piece;
  }
  if (bytes > aperture_.end() - aperture_next_) {
    return Fail(Blame::kExhausted, "window: {} bytes of block memory asked for, {} left in the aperture",
                bytes, aperture_.end() - aperture_next_);
  }
  Window piece{aperture_next_, bytes};
  aperture_next_ += bytes;
  return piece;
}

void AddressWindow::GiveAperture(Window piece) {
  if (!piece.size) return;
  mmap(reinterpret_cast<void*>(piece.base), piece.size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  std::lock_guard lock(aperture_lock_);
  aperture_given_.emplace(piece.size, piece.base);
}

Status AddressWindow::RegisterHostRange(uintptr_t begin, uintptr_t end) {
  if (begin >= end) return Fail(Blame::kCaller, "host range {:#x}..{:#x} is empty", begin, end);
  std::lock_guard lock(host_ranges_lock_);
  auto after = host_ranges_.lower_bound(begin);
  if ((after != host_ranges_.end() && after->first < end) ||
      (after != host_ranges_.begin() && std::prev(after)->second > begin)) {
    return Fail(Blame::kCaller, "host range {:#x}..{:#x} overlaps one that is registered", begin, end);
  }
  host_ranges_.emplace(begin, end);
  return {};
}

void AddressWindow::ForgetHostRange(uintptr_t begin) {
  std::lock_guard lock(host_ranges_lock_);
  host_ranges_.erase(begin);
}

bool AddressWindow::InHostRange(uintptr_t address, size_t bytes) const {
  std::shared_lock lock(host_ranges_lock_);
  auto after = host_ranges_.upper_bound(address);
  if (after == host_ranges_.begin()) return false;
  uintptr_t end = std::prev(after)->second;
  return address < end && bytes <= end - address;
}

}  // namespace cuplex::softcuda
