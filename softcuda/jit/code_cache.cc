#include "softcuda/jit/code_cache.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <llvm/Support/BLAKE3.h>

#include "base/unique_fd.h"

namespace cuplex::softcuda {
namespace {

constexpr std::array<char, 8> kMagic = {'c', 'u', 'p', 'l', 'e', 'x', 'c', '1'};
constexpr uint32_t kMostFacts = 1024;
// What a process that died left half written is nobody's after this long.
constexpr time_t kStaleSeconds = 3600;
constexpr char kTemporary[] = "new.";

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t facts = 0;
  uint32_t zero = 0;
  uint64_t code_bytes = 0;
  Digest digest = {};
};
static_assert(sizeof(Header) == 56);

Digest DigestOf(std::span<const uint32_t> facts, std::span<const std::byte> code) {
  llvm::BLAKE3 h;
  auto add = [&](const void* p, size_t n) { h.update({static_cast<const uint8_t*>(p), n}); };
  add(facts.data(), facts.size_bytes());
  add(code.data(), code.size_bytes());
  return h.final<32>();
}

bool WriteAll(int fd, const void* data, size_t n) {
  auto* p = static_cast<const char*>(data);
  while (n) {
    ssize_t wrote = write(fd, p, n);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    p += wrote;
    n -= static_cast<size_t>(wrote);
  }
  return true;
}

bool ReadAll(int fd, void* data, size_t n) {
  auto* p = static_cast<char*>(data);
  while (n) {
    ssize_t got = read(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    p += got;
    n -= static_cast<size_t>(got);
  }
  return true;
}

/// What a file costs the disk.
uint64_t OnDisk(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

Status MakeFolders(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return FailErrno(errno, fmt::format("softcuda: no folder {} for compiled kernels", part));
    }
  }
  return {};
}

}  // namespace

std::string Hexadecimal(const Digest& digest) {
  std::string out;
  for (uint8_t b : digest) fmt::format_to(std::back_inserter(out), "{:02x}", b);
  return out;
}

// --------------------------------------------------------------------------------------------- Digester

struct Digester::State {
  mutable llvm::BLAKE3 hash;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::~Digester() = default;

void Digester::Add(std::string_view text) {
  Add(text.size());
  state_->hash.update({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}
void Digester::Add(uint64_t number) {
  std::array<uint8_t, 8> bytes;
  std::memcpy(bytes.data(), &number, sizeof(number));
  state_->hash.update(bytes);
}
void Digester::Add(const Digest& digest) { state_->hash.update(digest); }
Digest Digester::Finish() const { return state_->hash.final<32>(); }

// -------------------------------------------------------------------------------------------- CodeCache

std::string CodeCache::DefaultFolder(const char* override_, const char* xdg_cache_home, const char* home) {
  if (override_ && *override_) return std::strcmp(override_, "off") == 0 ? std::string() : override_;
  if (xdg_cache_home && *xdg_cache_home == '/') return std::string(xdg_cache_home) + "/cuplex/softcuda";
  if (home && *home == '/') return std::string(home) + "/.cache/cuplex/softcuda";
  return {};
}

Result<std::unique_ptr<CodeCache>> CodeCache::Open(std::string folder, uint64_t most_bytes) {
  if (!folder.starts_with('/')) {
    return Fail(Blame::kCaller, "softcuda: \"{}\" for compiled kernels is no absolute path", folder);
  }
  TRY(MakeFolders(folder));
  struct stat found;
  if (stat(folder.c_str(), &found) != 0) {
    return FailErrno(errno, fmt::format("softcuda: {} for compiled kernels", folder));
  }
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || found.st_mode & (S_IWGRP | S_IWOTH)) {
    return Fail(
        Blame::kRefused,
        "softcuda: {} is not used for compiled kernels, since it is no folder that this user (uid {}) "
        "owns and alone may write to",
        folder, geteuid());
  }
  return std::unique_ptr<CodeCache>(new CodeCache(std::move(folder), most_bytes));
}

std::optional<CodeCache::Entry> CodeCache::Find(const Digest& key) {
  auto entry = [&]() -> std::optional<Entry> {
    UniqueFd fd(open(PathOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return std::nullopt;
    Header header;
    struct stat found;
    if (fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid() ||
        !ReadAll(fd.get(), &header, sizeof(header))) {
      return std::nullopt;
    }
    auto bytes = static_cast<uint64_t>(found.st_size);
    if (header.magic != kMagic || header.facts > kMostFacts || header.code_bytes > bytes ||
        bytes != sizeof(header) + header.facts * sizeof(uint32_t) + header.code_bytes) {
      return std::nullopt;
    }
    Entry read;
    read.facts.resize(header.facts);
    read.code.resize(header.code_bytes);
    if (!ReadAll(fd.get(), read.facts.data(), header.facts * sizeof(uint32_t)) ||
        !ReadAll(fd.get(), read.code.data(), read.code.size()) ||
        DigestOf(read.facts, read.code) != header.digest) {
      return std::nullopt;
    }
    futimens(fd.get(), nullptr);  // used now
    return read;
  }();
  (entry ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  return entry;
}

/// Removes entries, the ones unused for longest first, until what is left takes at most `most` bytes on disk.
/// How many it takes then.
uint64_t CodeCache::Evict(uint64_t most) const {
  struct File {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  std::vector<File> files;
  uint64_t total = 0;
  DIR* folder = opendir(folder_.c_str());
  if (!folder) return 0;
  time_t now = std::time(nullptr);
  while (dirent* d = readdir(folder)) {
    std::string name = d->d_name;
    struct stat found;
    if (fstatat(dirfd(folder), d->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode))
      continue;
    if (name.starts_with(kTemporary)) {
      if (now - found.st_mtim.tv_sec > kStaleSeconds) unlinkat(dirfd(folder), d->d_name, 0);
      continue;
    }
    if (name.size() != 64) continue;
    uint64_t bytes = OnDisk(static_cast<uint64_t>(found.st_size));
    total += bytes;
    files.push_back({found.st_mtim, bytes, std::move(name)});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const File& f : files) {
    if (total <= most) break;
    if (unlinkat(dirfd(folder), f.name.c_str(), 0) == 0 || errno == ENOENT) total -= f.bytes;
  }
  closedir(folder);
  return total;
}

/// Adds to the counted bytes, after making room where they would be too many. The caller holds the lock.
Status CodeCache::MakeRoom(uint64_t bytes, int counter) {
  std::array<char, 32> text = {};
  ssize_t n = pread(counter, text.data(), text.size() - 1, 0);
  uint64_t total = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + std::max<ssize_t>(n, 0), total);
  bool known = n > 0 && error == std::errc() && *end == '\n';
  // Room for more than one, so that a full cache is not walked for each.
  if (!known || total + bytes > most_bytes_) {
    total = Evict(most_bytes_ - (known ? std::max(bytes, most_bytes_ / 4) : bytes));
  }
  std::string now = fmt::format("{}\n", total + bytes);
  if (ftruncate(counter, 0) != 0 ||
      pwrite(counter, now.data(), now.size(), 0) != static_cast<ssize_t>(now.size())) {
    return FailErrno(errno, "softcuda: the size of the cache cannot be written");
  }
  return {};
}

void CodeCache::Keep(const Digest& key, std::span<const uint32_t> facts, std::span<const std::byte> code) {
  Header header;
  header.facts = static_cast<uint32_t>(facts.size());
  header.code_bytes = code.size();
  header.digest = DigestOf(facts, code);
  uint64_t bytes = OnDisk(sizeof(header) + facts.size_bytes() + code.size());
  if (facts.size() > kMostFacts || bytes > most_bytes_) return;
  std::string temporary = folder_ + "/" + kTemporary + "XXXXXX";
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return;
  bool whole = WriteAll(fd.get(), &header, sizeof(header)) &&
               WriteAll(fd.get(), facts.data(), facts.size_bytes()) &&
               WriteAll(fd.get(), code.data(), code.size());
  if (whole) {
    // Counted first: a process that dies in between leaves the bound too narrow until the next walk, not too
    // wide.
    UniqueFd counter(open((folder_ + "/size").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (counter && flock(counter.get(), LOCK_EX) == 0 && MakeRoom(bytes, counter.get()).ok() &&
        rename(temporary.c_str(), PathOf(key).c_str()) == 0) {
      return;
    }
  }
  unlink(temporary.c_str());
}

}  // namespace cuplex::softcuda
