// Fuzz target: no bytes may make the fatbin reader read outside them or take more memory than it says.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "cuda/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cuplex;
  auto bytes = std::as_bytes(std::span(data, size));
  (void)KindOfImage(bytes);
  (void)PtxOfFatbin(bytes, 121).ok();
  auto entries = FatbinEntries(bytes);
  if (!entries.ok()) return 0;
  uint64_t stored = 0;
  for (const FatbinEntry& entry : *entries) {
    stored += entry.payload.size();
    auto out = DecompressEntry(entry);
    if (out.ok() && out->size() > kMostImageBytes) std::abort();
  }
  if (stored > size) std::abort();  // entries never overlap
  return 0;
}
