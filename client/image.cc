#include "client/image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "client/session.h"
#include "cuda/fatbin.h"

namespace cuplex::client {
namespace {

constexpr uint32_t kPieceBytes = 64 * 1024;

}  // namespace

Result<Image> ImageFrom(std::span<const std::byte> bytes) {
  if (bytes.size() > kMostImageBytes)
    return Fail(Blame::kCaller, "a module image has {} bytes, at most {} were expected.", bytes.size(),
                kMostImageBytes);
  if (KindOfImage(bytes) == ImageKind::kUnknown)
    return Fail(Blame::kCaller, "{} bytes are no module image: PTX, a fatbin or a cubin was expected.",
                bytes.size());
  return ImageOf(bytes);
}

Image ImageOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {bytes, hash.low64, hash.high64};
}

Result<Image> ImageFrom(const void* address) {
  TRY(std::span<const std::byte> bytes, ImageAt(address));
  return ImageFrom(bytes);
}

CUresult Upload(Session& session, uint32_t context, const Image& image) {
  Submission& submission = session.submission();
  wire::wireImageOfferReply reply;
  const wire::wireImageOfferArgs offer(image.hash_low, image.hash_high, image.bytes.size());
  if (CUresult r = submission.Ask(Op::wireImageOffer, context, offer, &reply)) return r;
  if (reply.known()) return CUDA_SUCCESS;
  for (uint64_t at = 0; at < image.bytes.size(); at += kPieceBytes) {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(kPieceBytes, image.bytes.size() - at));
    const wire::wireImageWriteArgs args(image.hash_low, image.hash_high, at, n);
    const CUresult r = submission.Post(Op::wireImageWrite, context, args, n,
                                       [&](std::byte* to) { std::memcpy(to, image.bytes.data() + at, n); });
    if (r) return r;
  }
  return CUDA_SUCCESS;
}

CUresult ReadImageFile(const char* path, std::string* out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  out->assign(std::istreambuf_iterator<char>(file), {});
  return file.bad() ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace cuplex::client
