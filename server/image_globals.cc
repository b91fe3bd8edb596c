#include "server/image_globals.h"

#include <cstring>

#include <elf.h>

#include "base/span_reader.h"
#include "cuda/fatbin.h"
#include "ptx/parser.h"

namespace cuplex::server {
namespace {

constexpr uint64_t RoundUp(uint64_t bytes) { return (bytes + 511) / 512 * 512; }

Result<uint64_t> OfPtx(std::string_view text) {
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  TRY(ptx::Module module, ptx::Parse(text));
  uint64_t sum = 0;
  for (const ptx::Variable& variable : module.variables)
    if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst)
      sum += RoundUp(variable.SizeBytes());
  return sum;
}

/// Sections of a cubin that lie in device memory as variables: .nv.global*, .nv.constant3.
Result<uint64_t> OfCubin(std::span<const std::byte> image) {
  SpanReader head(image);
  auto elf = head.Read<Elf64_Ehdr>();
  const auto malformed = [] { return Fail(Blame::kCaller, "the module's image is no complete ELF file."); };
  if (!elf || elf->e_shentsize != sizeof(Elf64_Shdr) || elf->e_shoff > image.size()) return malformed();
  auto section = [&](uint32_t index) -> std::optional<Elf64_Shdr> {
    const uint64_t at = elf->e_shoff + uint64_t{index} * sizeof(Elf64_Shdr);
    if (at > image.size()) return std::nullopt;
    return SpanReader(image.subspan(at)).Read<Elf64_Shdr>();
  };
  auto names = section(elf->e_shstrndx);
  if (!names || names->sh_offset > image.size() || names->sh_size > image.size() - names->sh_offset)
    return malformed();
  const std::string_view text(reinterpret_cast<const char*>(image.data()) + names->sh_offset, names->sh_size);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < elf->e_shnum; ++i) {
    auto each = section(i);
    if (!each || each->sh_name > text.size() || each->sh_size >> 48) return malformed();
    const std::string_view name = text.substr(each->sh_name, text.find('\0', each->sh_name) - each->sh_name);
    if (name.starts_with(".nv.global") || name == ".nv.constant3") sum += RoundUp(each->sh_size);
  }
  return sum;
}

}  // namespace

Result<uint64_t> GlobalBytes(std::string_view image, uint32_t arch) {
  const auto bytes = std::as_bytes(std::span(image));
  switch (KindOfImage(bytes)) {
    case ImageKind::kPtx:
      return OfPtx(image);
    case ImageKind::kCubin:
      return OfCubin(bytes);
    case ImageKind::kFatbin: {
      auto text = PtxOfFatbin(bytes, arch);
      if (text.ok()) return OfPtx(*text);
      TRY(std::vector<FatbinEntry> entries, FatbinEntries(bytes));
      uint64_t most = 0;  // the driver takes one of them
      for (const FatbinEntry& entry : entries) {
        if (entry.kind != FatbinKind::kMachineCode) continue;
        TRY(std::string code, DecompressEntry(entry));
        TRY(uint64_t sum, OfCubin(std::as_bytes(std::span(code))));
        most = std::max(most, sum);
      }
      return most;
    }
    case ImageKind::kUnknown:
      break;
  }
  return Fail(Blame::kCaller, "the module's image is neither PTX nor a fatbin nor a cubin.");
}

}  // namespace cuplex::server
