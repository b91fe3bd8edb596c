#include "protocol/segment.h"

#include <bit>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/slot.h"
#include "protocol/staging.h"

namespace cuplex {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t Up(uint64_t n) { return (n + kPage - 1) & ~(kPage - 1); }

}  // namespace

SegmentGeometry SegmentGeometry::Laid() const {
  SegmentGeometry g = *this;
  g.slot_offset = Up(sizeof(SegmentHeader));
  g.block_offset = Up(g.slot_offset + static_cast<uint64_t>(slot_count) * slot_bytes);
  g.staging_offset = Up(g.block_offset + block_count * sizeof(StagingBlock));
  g.ring_offset = Up(g.staging_offset + static_cast<uint64_t>(block_count) * block_bytes);
  return g;
}

bool SegmentGeometry::Valid() const {
  if (!std::has_single_bit(ring_bytes) || ring_bytes < 64 * 1024 || ring_bytes > (64u << 20)) return false;
  if (slot_count == 0 || slot_count > 64 || slot_bytes < 64 + sizeof(SlotHeader) || slot_bytes > (1u << 20) ||
      slot_bytes % 64 != 0)
    return false;
  if (block_count == 0 || block_count > 4096 || block_bytes < kPage || block_bytes > (16u << 20) ||
      block_bytes % kPage)
    return false;
  const SegmentGeometry g = Laid();
  return slot_offset == g.slot_offset && block_offset == g.block_offset &&
         staging_offset == g.staging_offset && ring_offset == g.ring_offset;
}

Result<UniqueFd> MakeSealedMemory(const char* name, uint64_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return FailErrno(errno, fmt::format("cannot make shared memory \"{}\"", name));
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return FailErrno(errno, fmt::format("cannot make shared memory \"{}\" {} bytes long", name, bytes));
  // A peer that could shrink it would turn our next access into SIGBUS.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return FailErrno(errno, fmt::format("cannot seal shared memory \"{}\"", name));
  return fd;
}

Result<Segment> Segment::Create(const SegmentGeometry& sizes) {
  const SegmentGeometry g = sizes.Laid();
  TRY(UniqueFd fd, MakeSealedMemory("cuplex-segment", g.total_bytes()));
  return Map(std::move(fd), g);
}

Result<Segment> Segment::Map(UniqueFd fd, const SegmentGeometry& geometry) {
  if (!geometry.Valid())
    return Fail(Blame::kCaller, "the segment's geometry is not one that can be laid out.");
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return FailErrno(errno, "cannot look at the segment's descriptor");
  const uint64_t total = geometry.total_bytes();
  if (static_cast<uint64_t>(st.st_size) != total)
    return Fail(Blame::kCaller, "the segment has {} bytes, {} were expected.", st.st_size, total);

  void* at = mmap(nullptr, total + geometry.ring_bytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return FailErrno(errno, "cannot reserve addresses for the segment");
  Segment s;
  s.geometry_ = geometry;
  s.base_ = static_cast<std::byte*>(at);
  constexpr int kProt = PROT_READ | PROT_WRITE;
  if (mmap(at, total, kProt, MAP_SHARED | MAP_FIXED, fd.get(), 0) == MAP_FAILED ||
      mmap(s.base_ + total, geometry.ring_bytes, kProt, MAP_SHARED | MAP_FIXED, fd.get(),
           static_cast<off_t>(geometry.ring_offset)) == MAP_FAILED)
    return FailErrno(errno, "cannot map the segment");
  s.fd_ = std::move(fd);
  return s;
}

Segment::Segment(Segment&& o) noexcept
    : fd_(std::move(o.fd_)), geometry_(o.geometry_), base_(std::exchange(o.base_, nullptr)) {}

Segment& Segment::operator=(Segment&& o) noexcept {
  std::swap(fd_, o.fd_);
  std::swap(geometry_, o.geometry_);
  std::swap(base_, o.base_);
  return *this;
}

Segment::~Segment() {
  if (base_) munmap(base_, geometry_.total_bytes() + geometry_.ring_bytes);
}

}  // namespace cuplex
