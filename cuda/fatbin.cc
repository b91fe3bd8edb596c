#include "cuda/fatbin.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include <lz4.h>
#include <zstd.h>

#include "base/span_reader.h"

namespace cuplex {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr size_t kLeastHeader = 16;
constexpr size_t kLeastEntryHeader = 64;
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t size;
};
static_assert(sizeof(FatbinHeader) == kLeastHeader);

struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t payload_size;
  uint32_t compressed_size, options_offset;
  uint16_t minor, major;
  uint32_t arch;
  uint32_t name_offset, name_size;
  uint64_t flags;
  uint64_t reserved;
  uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == kLeastEntryHeader);

// The parts of ELF64 that tell where a file ends.
struct ElfHeader {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_offset, section_offset;
  uint32_t flags;
  uint16_t header_size, program_size, program_count, section_size, section_count, names;
};
static_assert(sizeof(ElfHeader) == 64);

struct ElfSection {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry_size;
};
static_assert(sizeof(ElfSection) == 64);

Result<FatbinEntry> EntryOf(const EntryHeader& header, std::span<const std::byte> payload) {
  FatbinEntry entry;
  entry.kind = static_cast<FatbinKind>(header.kind);
  entry.arch = header.arch;
  entry.flags = header.flags;
  entry.payload = payload;
  entry.size = payload.size();
  if (header.flags & kFlagZstd) {
    entry.compression = Compression::kZstd;
  } else if (header.flags & kFlagLz4) {
    entry.compression = Compression::kLz4;
  } else {
    return entry;
  }
  if (header.compressed_size > payload.size()) {
    return Fail(Blame::kCaller, "a fatbin entry claims {} compressed bytes in a payload of {}",
                header.compressed_size, payload.size());
  }
  entry.payload = payload.first(header.compressed_size);
  entry.size = header.uncompressed_size;
  return entry;
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Past blanks and comments.
std::string_view FirstWords(std::string_view text) {
  for (;;) {
    size_t at = text.find_first_not_of(" \t\r\n\f\v");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at);
    size_t end;
    if (text.starts_with("//")) {
      end = text.find('\n');
    } else if (text.starts_with("/*")) {
      end = text.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      return text;
    }
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end);
  }
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The end of an ELF file: the furthest of its tables and sections.
Result<uint64_t> ElfBytes(const std::byte* image) {
  auto header = Load<ElfHeader>(image);
  constexpr unsigned char kClass64 = 2, kLittleEndian = 1;
  constexpr uint32_t kNoBits = 8;
  if (header.ident[4] != kClass64 || header.ident[5] != kLittleEndian) {
    return Fail(Blame::kCaller,
                "an ELF image of class {} and byte order {}, expected 64 bits and little-endian",
                header.ident[4], header.ident[5]);
  }
  uint64_t end = sizeof header;
  bool broken = false;
  auto extend = [&](uint64_t offset, uint64_t size) {
    uint64_t to;
    broken |= __builtin_add_overflow(offset, size, &to) || to > kMostImageBytes;
    if (!broken) end = std::max(end, to);
  };
  extend(header.program_offset, uint64_t{header.program_size} * header.program_count);
  extend(header.section_offset, uint64_t{header.section_size} * header.section_count);
  if (header.section_count && header.section_size != sizeof(ElfSection)) broken = true;
  for (unsigned n = 0; n < header.section_count && !broken; ++n) {
    auto section = Load<ElfSection>(image + header.section_offset + n * sizeof(ElfSection));
    if (section.type != kNoBits) extend(section.offset, section.size);
  }
  if (broken) {
    return Fail(Blame::kCaller, "an ELF image whose tables are broken or pass {} bytes", kMostImageBytes);
  }
  return end;
}

bool Begins(const std::byte* image, std::string_view with) {
  for (char c : with) {
    if (*image++ != static_cast<std::byte>(c)) return false;  // reads nothing after the first difference
  }
  return true;
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

Result<std::vector<FatbinEntry>> FatbinEntries(std::span<const std::byte> fatbin) {
  SpanReader head(fatbin);
  auto header = head.Read<FatbinHeader>();
  if (!header || header->magic != kFatbinMagic) {
    return Fail(Blame::kCaller, "{} bytes that do not begin as a fatbin", fatbin.size());
  }
  if (header->header_size < kLeastHeader || header->header_size > fatbin.size() ||
      header->size > fatbin.size() - header->header_size) {
    return Fail(Blame::kCaller, "a fatbin of {} bytes whose header claims {} + {}", fatbin.size(),
                header->header_size, header->size);
  }
  SpanReader reader(fatbin.subspan(header->header_size, header->size));
  std::vector<FatbinEntry> entries;
  while (reader.left() > 0) {
    size_t left = reader.left();
    auto entry = reader.Read<EntryHeader>();
    if (!entry || entry->header_size < kLeastEntryHeader ||
        !reader.Bytes(entry->header_size - kLeastEntryHeader)) {
      return Fail(Blame::kCaller, "a fatbin entry whose header does not fit the {} bytes left", left);
    }
    auto payload = reader.Bytes(entry->payload_size);
    if (!payload) {
      return Fail(Blame::kCaller, "a fatbin entry of {} bytes where {} are left", entry->payload_size,
                  reader.left());
    }
    TRY(FatbinEntry made, EntryOf(*entry, *payload));
    entries.push_back(made);
  }
  return entries;
}

Result<std::string> DecompressEntry(const FatbinEntry& entry) {
  if (entry.size > kMostImageBytes) {
    return Fail(Blame::kCaller, "a fatbin entry of {} bytes when decompressed, at most {} are allowed",
                entry.size, kMostImageBytes);
  }
  std::string out;
  switch (entry.compression) {
    case Compression::kNone:
      out = TextOf(entry.payload);
      break;
    case Compression::kLz4: {
      constexpr uint64_t kBestRatio = 256;  // no LZ4 block expands further
      bool plausible =
          entry.payload.size() <= kMostImageBytes && entry.size / kBestRatio <= entry.payload.size();
      if (plausible) out.resize(entry.size);
      int got = plausible ? LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()),
                                                out.data(), static_cast<int>(entry.payload.size()),
                                                static_cast<int>(out.size()))
                          : -1;
      if (got < 0 || static_cast<uint64_t>(got) != entry.size) {
        return Fail(Blame::kCaller, "a fatbin entry whose {} bytes are not LZ4 data for {} bytes",
                    entry.payload.size(), entry.size);
      }
      break;
    }
    case Compression::kZstd: {
      // The frame knows its size: compare before any memory is taken on its word.
      bool plausible = ZSTD_getFrameContentSize(entry.payload.data(), entry.payload.size()) == entry.size;
      if (plausible) out.resize(entry.size);
      size_t got =
          plausible ? ZSTD_decompress(out.data(), out.size(), entry.payload.data(), entry.payload.size()) : 0;
      if (!plausible || ZSTD_isError(got) || got != entry.size) {
        return Fail(Blame::kCaller, "a fatbin entry whose {} bytes are not zstd data for {} bytes",
                    entry.payload.size(), entry.size);
      }
      break;
    }
  }
  if (entry.kind == FatbinKind::kPtx) {
    while (!out.empty() && out.back() == '\0') out.pop_back();
  }
  return out;
}

const FatbinEntry* BestPtx(std::span<const FatbinEntry> entries, uint32_t arch) {
  const FatbinEntry* below = nullptr;
  const FatbinEntry* above = nullptr;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != FatbinKind::kPtx) continue;
    if (entry.arch <= arch) {
      if (!below || entry.arch > below->arch) below = &entry;
    } else {
      if (!above || entry.arch < above->arch) above = &entry;
    }
  }
  return below ? below : above;
}

Result<std::string> PtxOfFatbin(std::span<const std::byte> fatbin, uint32_t arch) {
  TRY(auto entries, FatbinEntries(fatbin));
  if (const FatbinEntry* ptx = BestPtx(entries, arch)) return DecompressEntry(*ptx);
  constexpr size_t kMostNamed = 8;
  std::string archs;
  for (const FatbinEntry& entry : std::span(entries).first(std::min(entries.size(), kMostNamed))) {
    archs += fmt::format("{}sm_{}", archs.empty() ? "" : ", ", entry.arch);
  }
  if (entries.empty()) return Fail(Blame::kCaller, "a fatbin with no entries, expected one with PTX");
  return Fail(Blame::kUnsupported, "a fatbin with only machine code ({}), expected one with PTX", archs);
}

ImageKind KindOfImage(std::span<const std::byte> image) {
  std::string_view text = TextOf(image);
  if (text.starts_with(BytesOf(kFatbinMagic))) return ImageKind::kFatbin;
  if (text.starts_with(kElfMagic)) return ImageKind::kCubin;
  if (FirstWords(text).starts_with(".version")) return ImageKind::kPtx;
  return ImageKind::kUnknown;
}

Result<std::span<const std::byte>> ImageAt(const void* image) {
  if (!image) return Fail(Blame::kCaller, "a null pointer, expected a module image");
  auto* bytes = static_cast<const std::byte*>(image);
  if (Begins(bytes, BytesOf(FatbinWrapper::kMagic))) {
    bytes = static_cast<const std::byte*>(Load<FatbinWrapper>(bytes).data);
    if (!bytes || !Begins(bytes, BytesOf(kFatbinMagic))) {
      return Fail(Blame::kCaller, "a fatbin wrapper that does not point to a fatbin");
    }
  }
  if (Begins(bytes, BytesOf(kFatbinMagic))) {
    auto header = Load<FatbinHeader>(bytes);
    if (header.header_size < kLeastHeader || header.size > kMostImageBytes) {
      return Fail(Blame::kCaller, "a fatbin whose header claims {} + {} bytes, at most {} are allowed",
                  header.header_size, header.size, kMostImageBytes);
    }
    return std::span(bytes, header.header_size + header.size);
  }
  if (Begins(bytes, kElfMagic)) {
    TRY(uint64_t size, ElfBytes(bytes));
    return std::span(bytes, size);
  }
  std::span text(bytes, strnlen(reinterpret_cast<const char*>(bytes), kMostImageBytes));
  if (KindOfImage(text) != ImageKind::kPtx) {
    return Fail(Blame::kCaller,
                "an image that begins neither as a fatbin nor as ELF, and is not PTX that ends in NUL");
  }
  return text;
}

}  // namespace cuplex
