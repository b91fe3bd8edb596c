#include "cuda/fatbin.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuplex {
namespace {

using testing::HasSubstr;

std::vector<std::byte> File(const std::string& name) {
  std::ifstream in(std::string(CUPLEX_CUDA_TESTDATA "/") + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Every fatbin of testdata holds saxpy.cu as PTX for 7.5 and 9.0 and as machine code for 7.5.
class RealFatbin : public testing::TestWithParam<std::pair<const char*, Compression>> {};

TEST_P(RealFatbin, HasItsEntries) {
  auto fatbin = File(GetParam().first);
  auto entries = FatbinEntries(fatbin);
  ASSERT_TRUE(entries.ok()) << entries.error().sentence;
  int ptx75 = 0, ptx90 = 0, code75 = 0;
  for (const FatbinEntry& entry : *entries) {
    bool ptx = entry.kind == FatbinKind::kPtx;
    ptx75 += ptx && entry.arch == 75;
    ptx90 += ptx && entry.arch == 90;
    code75 += entry.kind == FatbinKind::kMachineCode && entry.arch == 75;
    if (ptx) EXPECT_EQ(entry.compression, GetParam().second);
  }
  EXPECT_EQ(entries->size(), 3u);
  EXPECT_EQ(ptx75, 1);
  EXPECT_EQ(ptx90, 1);
  EXPECT_EQ(code75, 1);
}

TEST_P(RealFatbin, GivesThePtxForADevice) {
  auto fatbin = File(GetParam().first);
  struct {
    uint32_t device;
    const char* target;
  } rows[] = {{121, ".target sm_90"},
              {90, ".target sm_90"},
              {89, ".target sm_75"},
              {75, ".target sm_75"},
              {50, ".target sm_75"}};
  for (auto& row : rows) {
    auto ptx = PtxOfFatbin(fatbin, row.device);
    ASSERT_TRUE(ptx.ok()) << ptx.error().sentence;
    EXPECT_THAT(*ptx, HasSubstr(row.target)) << row.device;
    EXPECT_THAT(*ptx, HasSubstr(".entry saxpy"));
    EXPECT_NE(ptx->back(), '\0');
    EXPECT_EQ(KindOfImage(Bytes(*ptx)), ImageKind::kPtx);
  }
}

TEST_P(RealFatbin, MachineCodeDecompressesToElf) {
  auto fatbin = File(GetParam().first);
  auto entries = FatbinEntries(fatbin);
  ASSERT_TRUE(entries.ok());
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind != FatbinKind::kMachineCode) continue;
    auto elf = DecompressEntry(entry);
    ASSERT_TRUE(elf.ok()) << elf.error().sentence;
    EXPECT_EQ(KindOfImage(Bytes(*elf)), ImageKind::kCubin);
  }
}

TEST_P(RealFatbin, IsFoundByItsAddressAlone) {
  auto fatbin = File(GetParam().first);
  auto image = ImageAt(fatbin.data());
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->size(), fatbin.size());
  FatbinWrapper wrapper{FatbinWrapper::kMagic, 1, fatbin.data(), nullptr};
  auto wrapped = ImageAt(&wrapper);
  ASSERT_TRUE(wrapped.ok());
  EXPECT_EQ(wrapped->data(), fatbin.data());
  EXPECT_EQ(KindOfImage(*image), ImageKind::kFatbin);
}

// No prefix and no flipped byte may read past the end (the sanitizers watch) or make anything huge.
TEST_P(RealFatbin, EveryPrefixIsRefusedAndNoBitFlipCrashes) {
  auto fatbin = File(GetParam().first);
  for (size_t n = 0; n < fatbin.size(); ++n) {
    std::vector<std::byte> cut(fatbin.begin(), fatbin.begin() + static_cast<long>(n));
    EXPECT_FALSE(FatbinEntries(cut).ok()) << n;
  }
  for (size_t at = 0; at < fatbin.size(); ++at) {
    auto bent = fatbin;
    bent[at] ^= std::byte{0xff};
    auto entries = FatbinEntries(bent);
    if (!entries.ok()) continue;
    for (const FatbinEntry& entry : *entries) {
      auto bytes = DecompressEntry(entry);
      if (bytes.ok()) EXPECT_LE(bytes->size(), kMostImageBytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RealFatbin,
                         testing::Values(std::pair("saxpy_zstd.fatbin", Compression::kZstd),
                                         std::pair("saxpy_lz4.fatbin", Compression::kLz4),
                                         std::pair("saxpy_plain.fatbin", Compression::kNone)));

TEST(Fatbin, SaysWhereThereIsOnlyMachineCode) {
  auto ptx = PtxOfFatbin(File("saxpy_code.fatbin"), 121);
  ASSERT_FALSE(ptx.ok());
  EXPECT_EQ(ptx.error().blame, Blame::kUnsupported);
  EXPECT_THAT(ptx.error().sentence, HasSubstr("only machine code (sm_75)"));
}

TEST(Fatbin, BoundsWhatDecompressionMakes) {
  auto fatbin = File("saxpy_lz4.fatbin");
  auto entries = FatbinEntries(fatbin);
  ASSERT_TRUE(entries.ok());
  FatbinEntry entry = *BestPtx(*entries, 90);
  for (uint64_t size :
       {uint64_t{0}, entry.size - 1, entry.size + 1, kMostImageBytes, kMostImageBytes + 1, UINT64_MAX}) {
    entry.size = size;
    EXPECT_FALSE(DecompressEntry(entry).ok()) << size;
  }
}

TEST(Image, KnowsACubinAndItsExtent) {
  auto cubin = File("saxpy.cubin");
  EXPECT_EQ(KindOfImage(cubin), ImageKind::kCubin);
  auto image = ImageAt(cubin.data());
  ASSERT_TRUE(image.ok()) << image.error().sentence;
  EXPECT_EQ(image->size(), cubin.size());
}

TEST(Image, KnowsPtxByItsFirstDirective) {
  EXPECT_EQ(KindOfImage(Bytes("\n//\n// made\n/* x */ .version 9.0\n")), ImageKind::kPtx);
  EXPECT_EQ(KindOfImage(Bytes("")), ImageKind::kUnknown);
  EXPECT_EQ(KindOfImage(Bytes("// .version 9.0")), ImageKind::kUnknown);
  EXPECT_EQ(KindOfImage(Bytes("/* .version 9.0")), ImageKind::kUnknown);
  EXPECT_EQ(KindOfImage(Bytes("int main() {}")), ImageKind::kUnknown);
  auto image = ImageAt(".version 9.0\n.target sm_90\n");
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->size(), strlen(".version 9.0\n.target sm_90\n"));
  EXPECT_FALSE(ImageAt("what").ok());
  EXPECT_FALSE(ImageAt("").ok());
  EXPECT_FALSE(ImageAt(nullptr).ok());
}

}  // namespace
}  // namespace cuplex
