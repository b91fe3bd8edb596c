// Fatbins and other module images: what a program hands to cuModuleLoadData. Any thread; no state.
//
//   fatbin = header entry*                        little-endian
//   header = u32 0xba55ed50, u16 version, u16 bytes of this header (>= 16), u64 bytes of all entries
//   entry  = u16 kind, u16 version, u32 bytes of this header (>= 64), u64 bytes of payload,
//            u32 bytes of compressed data (0: the payload is not compressed) at 16, u16 minor, u16 major at
//            24, u32 compute capability (75, 90, 121) at 28, u64 flags at 40, u64 bytes when decompressed at
//            56, payload
//
// Images come from clients: every length is checked against the bytes that are there, and nothing larger than
// kMostImageBytes is made. Only ImageAt() trusts its argument, as it must.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace cuplex {

inline constexpr uint64_t kMostImageBytes = 256ull << 20;

enum class FatbinKind : uint16_t { kPtx = 1, kMachineCode = 2 };  // others occur and are kept as numbers

enum class Compression : uint8_t { kNone, kLz4, kZstd };

struct FatbinEntry {
  FatbinKind kind = FatbinKind::kPtx;
  uint32_t arch = 0;  // ten times the compute capability: 75, 90, 121
  uint64_t flags = 0;
  Compression compression = Compression::kNone;
  std::span<const std::byte> payload;  // as stored, padding after compressed data cut off; views the fatbin
  uint64_t size = 0;                   // bytes when decompressed
};

/// All entries, in order; bytes after the fatbin are ignored. Fails with Blame::kCaller.
Result<std::vector<FatbinEntry>> FatbinEntries(std::span<const std::byte> fatbin);

/// The entry's bytes, decompressed; trailing NUL bytes of PTX are cut off.
Result<std::string> DecompressEntry(const FatbinEntry& entry);

/// The PTX for a device: of the highest compute capability not above `arch`, else the lowest there is; null
/// without PTX.
const FatbinEntry* BestPtx(std::span<const FatbinEntry> entries, uint32_t arch);

/// BestPtx of a fatbin, decompressed. Blame::kUnsupported, with the architectures, where there is only
/// machine code.
Result<std::string> PtxOfFatbin(std::span<const std::byte> fatbin, uint32_t arch);

enum class ImageKind : uint8_t { kUnknown, kPtx, kFatbin, kCubin };

/// Judged by how the bytes begin; PTX is text whose first directive is .version.
ImageKind KindOfImage(std::span<const std::byte> image);

/// What __cudaRegisterFatBinary gets: a pointer to a fatbin in this process.
struct FatbinWrapper {
  static constexpr uint32_t kMagic = 0x466243b1;
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* filename_or_fatbins;
};

/// The extent of an image known by its address alone: a fatbin, an ELF cubin, PTX that ends in NUL, or a
/// FatbinWrapper (then the fatbin it points to). Reads the memory of this process there; fails with
/// Blame::kCaller where it is none of these. PTX comes without its NUL.
Result<std::span<const std::byte>> ImageAt(const void* image);

}  // namespace cuplex
