#include "softcuda/jit/runtime.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "softcuda/jit/bulk.h"
#include "softcuda/jit/device_heap.h"
#include "softcuda/jit/device_text.h"
#include "softcuda/jit/matrix_warp.h"
#include "softcuda/jit/reach.h"
#include "softcuda/jit/running.h"
#include "softcuda/jit/small_float.h"

namespace cuplex::softcuda {
namespace {

// ------------------------------------------------------------------------------------------------- faults

/// An access that the check at its head did not find inside the window: comes back if it may go ahead all the
/// same. `span`: what the check answers for, low 32 bits its start relative to the access, high 32 bits its
/// length. `shape`: bits 0-7 bytes of the access, 8-15 the alignment checked, 32-63 the access relative to
/// the base checked.
void OutsideWindow(BlockContext*, Lane* lane, uint64_t address, uint64_t span, uint64_t shape) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  uint64_t bytes = shape & 0xff, alignment = shape >> 8 & 0xff;
  uint64_t base = address - static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(shape >> 32)));
  uint64_t low = address + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(span)));
  if (address % bytes) RaiseFault(r, Fault::Kind::kMisalignedAddress, address, "");
  if (base % alignment) RaiseFault(r, Fault::Kind::kMisalignedAddress, base, "");
  if (!MayTouch(r, low, span >> 32)) RaiseFault(r, Fault::Kind::kIllegalAddress, address, "");
}

/// Once a turn of a loop, where signals do not get through.
void Poll(Lane* lane) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  if (r.aborted && r.aborted->load()) RaiseFault(r, Fault::Kind::kAborted, 0, "");
}

[[noreturn]] void Trap(BlockContext*, Lane* lane) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  RaiseFault(r, Fault::Kind::kTrap, 0, "");
}

[[noreturn]] void BadCallee(BlockContext*, Lane* lane, uint64_t callee) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  RaiseFault(r, Fault::Kind::kLaunchFailure, callee, "a call through a pointer to no function of that type");
}

// ---------------------------------------------------------------------------------------------- text memory

/// Copies a string out of kernel memory, at most to the buffer's end.
void CopyString(Running& r, uint64_t address, std::span<char> to) {
  size_t n = 0;
  for (; n + 1 < to.size(); ++n) {
    if (!MayTouch(r, address + n, 1)) RaiseFault(r, Fault::Kind::kIllegalAddress, address + n, "a string");
    char c = *reinterpret_cast<const volatile char*>(address + n);
    if (!c) break;
    to[n] = c;
  }
  to[n] = 0;
}

/// Outside of code alone.
void Say(Running& r, TextStream stream, std::string_view text) {
  if (r.text) return r.text->Put(stream, text);
  std::fwrite(text.data(), 1, text.size(), stream == TextStream::kOutput ? stdout : stderr);
}

[[noreturn]] void AssertFailed(BlockContext* block, Lane* lane, uint64_t message, uint64_t file,
                               uint32_t line, uint64_t function, uint64_t) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  std::array<char, 200> m, f, in;
  CopyString(r, message, m);
  CopyString(r, file, f);
  CopyString(r, function, in);
  std::array<char, sizeof(r.detail)> text;
  {
    OutsideCode outside(r);
    const auto tid = ThreadOf(*block, *lane);
    std::array<char, 1024> said;
    int n = std::snprintf(
        said.data(), said.size(),
        "%.199s:%u: %.199s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%.199s` failed.\n", f.data(),
        line, in.data(), block->ctaid[0], block->ctaid[1], block->ctaid[2], tid[0], tid[1], tid[2], m.data());
    Say(r, TextStream::kError, {said.data(), static_cast<size_t>(std::max(n, 0))});
    std::snprintf(text.data(), text.size(), "%.150s:%u: %.100s: assertion `%.150s` failed", f.data(), line,
                  in.data(), m.data());
  }
  RaiseFault(r, Fault::Kind::kAssert, 0, text.data());
}

/// Reads the arguments that a kernel packed for vprintf: each at its natural alignment.
class Arguments {
 public:
  Arguments(Running& r, uint64_t at) : r_(r), at_(at) {}

  template <typename T>
  T Next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    if (!MayTouch(r_, at_, sizeof(T)))
      RaiseFault(r_, Fault::Kind::kIllegalAddress, at_, "an argument of printf");
    T v = *reinterpret_cast<const volatile T*>(at_);
    at_ += sizeof(T);
    return v;
  }

 private:
  Running& r_;
  uint64_t at_;
};

/// Text of bounded length that is put together piece by piece.
struct Line {
  std::array<char, 16384> text;
  size_t used = 0;

  void Put(char c) {
    if (used + 1 < text.size()) text[used++] = c;
  }
  template <typename... A>
  void Format(const char* spec, A... args) {
    int n = std::snprintf(text.data() + used, text.size() - used, spec, args...);
    if (n > 0) used = std::min(text.size() - 1, used + static_cast<size_t>(n));
  }
};

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
#pragma clang diagnostic ignored "-Wformat-security"

/// One conversion: `spec` is its flags, width and precision, already resolved, with `%` in front.
void FormatOne(Running& r, Line& line, Arguments& args, const char* flags, int longs, char kind) {
  std::array<char, 64> spec;
  auto with = [&](const char* suffix) {
    std::snprintf(spec.data(), spec.size(), "%s%s%c", flags, suffix, kind);
    return spec.data();
  };
  switch (kind) {
    case 'd':
    case 'i':
      if (longs > 0) {
        line.Format(with("ll"), static_cast<long long>(args.Next<int64_t>()));
      } else {
        int v = args.Next<int32_t>();
        line.Format(with(""), longs == -2   ? static_cast<signed char>(v)
                              : longs == -1 ? static_cast<short>(v)
                                            : v);
      }
      break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (longs > 0) {
        line.Format(with("ll"), static_cast<unsigned long long>(args.Next<uint64_t>()));
      } else {
        unsigned v = args.Next<uint32_t>();
        line.Format(with(""), longs == -2 ? v & 0xff : longs == -1 ? v & 0xffff : v);
      }
      break;
    case 'c':
      line.Format(with(""), args.Next<int32_t>());
      break;
    case 'p':
      line.Format(with(""), reinterpret_cast<void*>(args.Next<uint64_t>()));
      break;
    case 's': {
      std::array<char, 4096> text;
      uint64_t at = args.Next<uint64_t>();
      if (at) CopyString(r, at, text);
      line.Format(with(""), at ? text.data() : "(null)");
      break;
    }
    default:
      line.Format(with(""), args.Next<double>());
      break;
  }
}

#pragma clang diagnostic pop

int32_t Printf(BlockContext*, Lane* lane, uint64_t format, uint64_t arguments) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  if (!format) return -1;
  std::array<char, 4096> text;
  CopyString(r, format, text);
  Arguments args(r, arguments);
  Line line;
  int32_t count = 0;
  for (const char* p = text.data(); *p; ++p) {
    if (*p != '%') {
      line.Put(*p);
      continue;
    }
    if (p[1] == '%') {
      line.Put('%');
      ++p;
      continue;
    }
    std::array<char, 40> flags;
    size_t n = 0;
    flags[n++] = '%';
    int longs = 0;
    for (++p; *p && std::strchr("-+ #0123456789.*hlLjzt", *p); ++p) {
      if (*p == 'h') {
        --longs;
      } else if (std::strchr("lLjzt", *p)) {
        ++longs;
      } else if (*p == '*') {
        // Bounded, since snprintf would spend the time a hostile width asks for.
        int width = std::clamp(args.Next<int32_t>(), -1024, 1024);
        n += static_cast<size_t>(std::max(0, std::snprintf(&flags[n], flags.size() - n, "%d", width)));
      } else if (n + 8 < flags.size()) {
        flags[n++] = *p;
      }
      if (n + 8 >= flags.size()) n = flags.size() - 9;
    }
    flags[n] = 0;
    if (!*p) break;
    if (std::strchr("diuxXocpseEfFgGaA", *p)) {
      FormatOne(r, line, args, flags.data(), longs, *p);
      ++count;
    } else {
      line.Put(*p);
    }
  }
  {
    OutsideCode outside(r);
    Say(r, TextStream::kOutput, {line.text.data(), line.used});
  }
  return count;
}

// ------------------------------------------------------------------------------------------------- the heap

uint64_t Malloc(BlockContext*, Lane* lane, uint64_t bytes) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  if (!r.heap) return 0;
  uint64_t at = 0;
  {
    OutsideCode outside(r);
    at = r.heap->Allocate(bytes);
  }
  return at;
}

void Free(BlockContext*, Lane* lane, uint64_t address) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  bool freed = false;
  {
    OutsideCode outside(r);
    freed = !address || (r.heap && r.heap->Free(address));
  }
  if (!freed)
    RaiseFault(r, Fault::Kind::kIllegalAddress, address,
               "free of what malloc did not give, or was freed before");
}

uint64_t Globaltimer() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

template <typename F>
void* Of(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

std::span<const RuntimeSymbol> RuntimeSymbols() {
  static const std::vector<RuntimeSymbol> symbols = [] {
    std::vector<RuntimeSymbol> all = {
        {"cuplex_outside_window", Of(&OutsideWindow)},
        {"cuplex_poll", Of(&Poll)},
        {"cuplex_trap", Of(&Trap)},
        {"cuplex_bad_callee", Of(&BadCallee)},
        {"cuplex_assert_failed", Of(&AssertFailed)},
        {"cuplex_vprintf", Of(&Printf)},
        {"cuplex_malloc", Of(&Malloc)},
        {"cuplex_free", Of(&Free)},
        {"cuplex_globaltimer", Of(&Globaltimer)},
        {"cuplex_small_float", Of(&EncodeSmallFloat)},
        {"cuplex_from_small_float", Of(&DecodeSmallFloat)},
        {"cuplex_bulk_copy", Of(&BulkCopy)},
        {"cuplex_bulk_zero", Of(&BulkZero)},
        {"cuplex_copy_part", Of(&CopyPart)},
        {"memcpy", Of<void*(void*, const void*, size_t)>(&std::memcpy)},
        {"memmove", Of<void*(void*, const void*, size_t)>(&std::memmove)},
        {"memset", Of<void*(void*, int, size_t)>(&std::memset)},
    };
    for (auto more : {MathSymbols(), TextureSymbols(), WarpSymbols(), MatrixSymbols()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return symbols;
}

}  // namespace cuplex::softcuda
