// CodeCache: machine code on disk, by a digest of everything it is made from, so that a kernel is compiled
// once on a machine and not once in every process.
//
// A folder of one file an entry, named by the key in hexadecimal:
//
//     entry   = "cuplexc1" | u32 facts | u32 zero | u64 code bytes | digest of what follows | facts x u32 |
//     code `size`  = decimal bytes of all entries, an upper bound; changed under its lock (flock)
//
// What does not have that form, or not that digest, is no entry. Entries come into being by rename and are
// never changed, so any number of processes may use one folder at once. A folder that another user owns or
// may write to is not used, since what lies in it is run. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cuplex::softcuda {

using Digest = std::array<uint8_t, 32>;

std::string Hexadecimal(const Digest& digest);

/// Makes a digest of a sequence of things; each is framed by its length, so that no two sequences are the
/// same bytes.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void Add(std::string_view text);
  void Add(uint64_t number);
  void Add(const Digest& digest);
  Digest Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class CodeCache {
 public:
  /// Makes the folder where there is none, its parents included, for this user alone. `most_bytes`: what all
  /// entries together may take on disk.
  static Result<std::unique_ptr<CodeCache>> Open(std::string folder, uint64_t most_bytes);
  /// Where the cache lies by default: `override_` if given, else below $XDG_CACHE_HOME or $HOME; empty where
  /// none of them is an absolute path, and for "off".
  static std::string DefaultFolder(const char* override_, const char* xdg_cache_home, const char* home);

  struct Entry {
    std::vector<uint32_t> facts;  // numbers that its maker wants to know again
    std::vector<std::byte> code;
  };
  /// nullopt where there is no such entry, or none that is whole. One that is found counts as used now.
  std::optional<Entry> Find(const Digest& key);
  /// Keeps the entry, and lets the ones go that were not used for longest where there are too many. Does
  /// nothing where the disk does not play along.
  void Keep(const Digest& key, std::span<const uint32_t> facts, std::span<const std::byte> code);

  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  const std::string& folder() const { return folder_; }

 private:
  CodeCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  std::string PathOf(const Digest& key) const { return folder_ + "/" + Hexadecimal(key); }
  Status MakeRoom(uint64_t bytes, int counter);
  uint64_t Evict(uint64_t most) const;

  const std::string folder_;
  const uint64_t most_bytes_;
  std::atomic<uint64_t> hits_{0}, misses_{0};
};

}  // namespace cuplex::softcuda
