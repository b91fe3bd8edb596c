#include "bench/softcuda/sha256/sha256.h"

#include "bench/softcuda/sha256/sha256_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace sha256 {
namespace {

constexpr std::uint32_t kRounds[64] = {CUPLEX_BENCH_SHA256_ROUNDS};

std::uint32_t Rotate(std::uint32_t x, int by) { return x >> by | x << (32 - by); }

void Compress(std::uint32_t* state, const std::uint32_t* block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = block[i];
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t s0 = Rotate(w[i - 15], 7) ^ Rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t s1 = Rotate(w[i - 2], 17) ^ Rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  std::uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t s1 = Rotate(e, 6) ^ Rotate(e, 11) ^ Rotate(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const std::uint32_t s0 = Rotate(a, 2) ^ Rotate(a, 13) ^ Rotate(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

void Hash(const std::uint32_t* messages, std::uint32_t* digests, int count) {
  constexpr std::uint32_t kPadding[16] = {0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, kWords * 32};
  for (int i = 0; i < count; ++i) {
    std::uint32_t state[8] = {CUPLEX_BENCH_SHA256_START};
    std::uint32_t w[16];
    for (int k = 0; k < 16; ++k) w[k] = __builtin_bswap32(messages[i * kWords + k]);
    Compress(state, w);
    Compress(state, kPadding);
    for (int k = 0; k < 8; ++k) digests[i * kDigest + k] = __builtin_bswap32(state[k]);
  }
}

class Sha256 : public Case {
 public:
  explicit Sha256(const Module& module)
      : kernel_(module.GetKernel("sha256")),
        device_messages_(module.device(), messages_),
        digests_(module.device(), kMessages * kDigest) {}
  void Launch() override {
    kernel_.Launch({kMessages / kThreads}, {kThreads}, device_messages_.at(), digests_.at(), kMessages);
  }
  void Native() override { Hash(messages_.data(), expected_.data(), kMessages); }
  std::optional<std::string> Compare() override { return Unequal(digests_.Read(), expected_); }

 private:
  Kernel kernel_;
  std::vector<std::uint32_t> messages_ = Words(kMessages * kWords, 1);
  std::vector<std::uint32_t> expected_ = std::vector<std::uint32_t>(kMessages * kDigest);
  Array<std::uint32_t> device_messages_;
  Array<std::uint32_t> digests_;
};

}  // namespace
}  // namespace sha256

extern const Subject kSha256;
const Subject kSha256 = {"sha256", sha256::kPtx, true, Make<sha256::Sha256>};

}  // namespace cuplex::bench
