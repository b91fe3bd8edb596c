// Copies and fills: every form, every kind of memory, sizes and offsets that divide nothing. The expected
// bytes are made by plain loops over host memory.
#include <cstring>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using Copies = Body;

enum class Kind { kDevice, kPageable, kPinned };
const char* Name(Kind kind) {
  return kind == Kind::kDevice ? "device" : kind == Kind::kPageable ? "pageable" : "pinned";
}

/// Memory of one kind whose bytes can be set and got without the form under test.
class Buffer {
 public:
  Buffer(Kind kind, const std::vector<uint8_t>& bytes) : kind_(kind), size_(bytes.size()) {
    if (kind == Kind::kDevice) MUST(Cu().cuMemAlloc_v2(&device_, size_));
    if (kind == Kind::kPinned) MUST(Cu().cuMemHostAlloc(&host_, size_, 0));
    if (kind == Kind::kPageable) {
      pageable_.resize(size_);
      host_ = pageable_.data();
    }
    if (kind == Kind::kDevice)
      Write(device_, bytes);
    else
      memcpy(host_, bytes.data(), size_);
  }
  ~Buffer() {
    if (kind_ == Kind::kDevice) (void)Cu().cuMemFree_v2(device_);
    if (kind_ == Kind::kPinned) (void)Cu().cuMemFreeHost(host_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  bool on_device() const { return kind_ == Kind::kDevice; }
  CUdeviceptr device() const { return device_; }
  void* host() const { return host_; }
  CUdeviceptr unified() const { return on_device() ? device_ : reinterpret_cast<CUdeviceptr>(host_); }
  std::vector<uint8_t> Bytes() const {
    if (on_device()) return Read<uint8_t>(device_, size_);
    const auto* first = static_cast<const uint8_t*>(host_);
    return {first, first + size_};
  }

 private:
  Kind kind_;
  size_t size_;
  CUdeviceptr device_ = 0;
  void* host_ = nullptr;
  std::vector<uint8_t> pageable_;
};

/// A way to copy n bytes, dst[to ...] = src[from ...]; waits until it is done.
struct Form {
  const char* name;
  std::function<bool(const Buffer& dst, const Buffer& src)> takes;
  std::function<CUresult(const Buffer& dst, size_t to, const Buffer& src, size_t from, size_t n, CUstream)>
      copy;
};

uint8_t* At(void* p, size_t offset) { return static_cast<uint8_t*>(p) + offset; }

CUDA_MEMCPY2D Row(const Buffer& dst, size_t to, const Buffer& src, size_t from, size_t n) {
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = src.on_device() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  c.dstMemoryType = dst.on_device() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  c.srcHost = src.host();
  c.srcDevice = src.device();
  c.dstHost = dst.host();
  c.dstDevice = dst.device();
  c.srcXInBytes = from;
  c.dstXInBytes = to;
  c.srcPitch = from + n;
  c.dstPitch = to + n;
  c.WidthInBytes = n;
  c.Height = 1;
  return c;
}

CUDA_MEMCPY3D Box(const Buffer& dst, size_t to, const Buffer& src, size_t from, size_t n) {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = src.on_device() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  c.dstMemoryType = dst.on_device() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  c.srcHost = src.host();
  c.srcDevice = src.device();
  c.dstHost = dst.host();
  c.dstDevice = dst.device();
  c.srcXInBytes = from;
  c.dstXInBytes = to;
  c.srcPitch = from + n;
  c.dstPitch = to + n;
  c.srcHeight = c.dstHeight = 1;
  c.WidthInBytes = n;
  c.Height = c.Depth = 1;
  return c;
}

CUresult Then(CUresult submitted, CUstream stream) {
  const CUresult done = Cu().cuStreamSynchronize(stream);
  return submitted != CUDA_SUCCESS ? submitted : done;
}

std::vector<Form> Forms(CUcontext context) {
  const auto any = [](const Buffer&, const Buffer&) { return true; };
  const auto up = [](const Buffer& d, const Buffer& s) { return d.on_device() && !s.on_device(); };
  const auto down = [](const Buffer& d, const Buffer& s) { return !d.on_device() && s.on_device(); };
  const auto across = [](const Buffer& d, const Buffer& s) { return d.on_device() && s.on_device(); };
  using B = const Buffer&;
  return {
      {"cuMemcpyHtoD", up,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         return Cu().cuMemcpyHtoD_v2(d.device() + to, At(s.host(), from), n);
       }},
      {"cuMemcpyHtoDAsync", up,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         return Then(Cu().cuMemcpyHtoDAsync_v2(d.device() + to, At(s.host(), from), n, st), st);
       }},
      {"cuMemcpyDtoH", down,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         return Cu().cuMemcpyDtoH_v2(At(d.host(), to), s.device() + from, n);
       }},
      {"cuMemcpyDtoHAsync", down,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         return Then(Cu().cuMemcpyDtoHAsync_v2(At(d.host(), to), s.device() + from, n, st), st);
       }},
      {"cuMemcpyDtoD", across,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         return Then(Cu().cuMemcpyDtoD_v2(d.device() + to, s.device() + from, n), nullptr);
       }},
      {"cuMemcpyDtoDAsync", across,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         return Then(Cu().cuMemcpyDtoDAsync_v2(d.device() + to, s.device() + from, n, st), st);
       }},
      {"cuMemcpyPeer", across,
       [context](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         return Then(Cu().cuMemcpyPeer(d.device() + to, context, s.device() + from, context, n), nullptr);
       }},
      {"cuMemcpyPeerAsync", across,
       [context](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         return Then(Cu().cuMemcpyPeerAsync(d.device() + to, context, s.device() + from, context, n, st), st);
       }},
      {"cuMemcpy", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         return Then(Cu().cuMemcpy(d.unified() + to, s.unified() + from, n), nullptr);
       }},
      {"cuMemcpyAsync", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         return Then(Cu().cuMemcpyAsync(d.unified() + to, s.unified() + from, n, st), st);
       }},
      {"cuMemcpy2D", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         const auto c = Row(d, to, s, from, n);
         return Then(Cu().cuMemcpy2D_v2(&c), nullptr);
       }},
      {"cuMemcpy2DUnaligned", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         const auto c = Row(d, to, s, from, n);
         return Then(Cu().cuMemcpy2DUnaligned_v2(&c), nullptr);
       }},
      {"cuMemcpy2DAsync", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         const auto c = Row(d, to, s, from, n);
         return Then(Cu().cuMemcpy2DAsync_v2(&c, st), st);
       }},
      {"cuMemcpy3D", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream) {
         const auto c = Box(d, to, s, from, n);
         return Then(Cu().cuMemcpy3D_v2(&c), nullptr);
       }},
      {"cuMemcpy3DAsync", any,
       [](B d, size_t to, B s, size_t from, size_t n, CUstream st) {
         const auto c = Box(d, to, s, from, n);
         return Then(Cu().cuMemcpy3DAsync_v2(&c, st), st);
       }},
  };
}

TEST_F(Copies, EveryFormBetweenEveryKindOfMemory) {
  constexpr size_t kSize = 300'100;
  Stream stream;
  uint32_t seed = 0;
  for (Kind to_kind : {Kind::kDevice, Kind::kPageable, Kind::kPinned}) {
    for (Kind from_kind : {Kind::kDevice, Kind::kPageable, Kind::kPinned}) {
      for (const Form& form : Forms(context_)) {
        const auto source = Noise(kSize, ++seed);
        auto expected = Noise(kSize, ++seed);
        Buffer src(from_kind, source), dst(to_kind, expected);
        if (!form.takes(dst, src)) continue;
        SCOPED_TRACE(std::string(form.name) + " from " + Name(from_kind) + " to " + Name(to_kind));
        size_t n = 1;
        for (auto [to, from] :
             std::vector<std::pair<size_t, size_t>>{{0, 0}, {7, 13}, {1, 4095}, {4097, 2}, {77, 31}}) {
          ASSERT_EQ(form.copy(dst, to, src, from, n, stream), CUDA_SUCCESS) << n << " bytes";
          std::copy_n(source.begin() + static_cast<long>(from), n, expected.begin() + static_cast<long>(to));
          n = n * 23 + 2;  // 1, 25, 577, 13273, 305281 -> cut to what fits
          n = std::min(n, kSize - 4097);
        }
        const auto got = dst.Bytes();
        ASSERT_TRUE(got == expected) << "first difference at "
                                     << std::mismatch(got.begin(), got.end(), expected.begin()).first -
                                            got.begin();
      }
    }
  }
}

TEST_F(Copies, LongerThanAnyBufferBetween) {
  const auto bytes = Noise((18 << 20) + 12'345, 5);
  DeviceMemory device(bytes.size());
  Stream stream;
  for (Kind kind : {Kind::kPageable, Kind::kPinned}) {
    for (bool async : {false, true}) {
      SCOPED_TRACE(std::string(Name(kind)) + (async ? ", async" : ""));
      Buffer source(kind, bytes), target(kind, std::vector<uint8_t>(bytes.size()));
      MUST(Cu().cuMemsetD8_v2(device.at, 0, bytes.size()));
      MUST(Cu().cuCtxSynchronize());
      if (async) {
        MUST(Cu().cuMemcpyHtoDAsync_v2(device.at, source.host(), bytes.size(), stream));
        MUST(Cu().cuMemcpyDtoHAsync_v2(target.host(), device.at, bytes.size(), stream));
        MUST(Cu().cuStreamSynchronize(stream));
      } else {
        MUST(Cu().cuMemcpyHtoD_v2(device.at, source.host(), bytes.size()));
        MUST(Cu().cuMemcpyDtoH_v2(target.host(), device.at, bytes.size()));
      }
      ASSERT_EQ(memcmp(target.host(), bytes.data(), bytes.size()), 0);
    }
  }
}

/// A pageable source may be written to as soon as the asynchronous copy has returned.
TEST_F(Copies, APageableSourceIsReadBeforeTheCallReturns) {
  ONLY_OURS();
  DeviceMemory device(1 << 20);
  Stream stream;
  Gate gate(stream);
  auto bytes = Noise(1 << 16, 6);
  const auto expected = bytes;
  ASSERT_EQ(Cu().cuMemcpyHtoDAsync_v2(device.at, bytes.data(), bytes.size(), stream), CUDA_SUCCESS);
  std::fill(bytes.begin(), bytes.end(), 0);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(Read<uint8_t>(device.at, expected.size()), expected);
}

struct Shape {
  size_t pitch, height;  // of the whole memory, in bytes and rows
  size_t x, y, z;        // where the box begins
  size_t bytes(size_t depth) const { return pitch * height * depth; }
  size_t at(size_t row, size_t slice) const { return ((z + slice) * height + y + row) * pitch + x; }
};

TEST_F(Copies, BoxesWithinBoxes) {
  constexpr size_t kWidth = 101, kHeight = 9, kDepth = 4;
  const Shape from{131, 13, 5, 2, 1}, to{160, 11, 17, 1, 2};
  Stream stream;
  uint32_t seed = 100;
  for (Kind to_kind : {Kind::kDevice, Kind::kPageable, Kind::kPinned}) {
    for (Kind from_kind : {Kind::kDevice, Kind::kPageable, Kind::kPinned}) {
      for (int form = 0; form < 5; ++form) {
        const bool box = form < 2;
        const size_t depth = box ? kDepth : 1;
        SCOPED_TRACE(std::string(box ? "3D" : "2D") + " form " + std::to_string(form) + " from " +
                     Name(from_kind) + " to " + Name(to_kind));
        Shape f = from, t = to;
        if (!box) f.z = t.z = 0;
        const auto source = Noise(f.bytes(depth + f.z), ++seed);
        auto expected = Noise(t.bytes(depth + t.z), ++seed);
        Buffer src(from_kind, source), dst(to_kind, expected);
        for (size_t slice = 0; slice < depth; ++slice)
          for (size_t row = 0; row < kHeight; ++row)
            for (size_t i = 0; i < kWidth; ++i) expected[t.at(row, slice) + i] = source[f.at(row, slice) + i];
        if (box) {
          CUDA_MEMCPY3D c = Box(dst, t.x, src, f.x, kWidth);
          c.srcPitch = f.pitch;
          c.dstPitch = t.pitch;
          c.srcHeight = f.height;
          c.dstHeight = t.height;
          c.srcY = f.y;
          c.srcZ = f.z;
          c.dstY = t.y;
          c.dstZ = t.z;
          c.Height = kHeight;
          c.Depth = depth;
          MUST(form == 0 ? Cu().cuMemcpy3D_v2(&c) : Cu().cuMemcpy3DAsync_v2(&c, stream));
        } else {
          CUDA_MEMCPY2D c = Row(dst, t.x, src, f.x, kWidth);
          c.srcPitch = f.pitch;
          c.dstPitch = t.pitch;
          c.srcY = f.y;
          c.dstY = t.y;
          c.Height = kHeight;
          MUST(form == 2   ? Cu().cuMemcpy2D_v2(&c)
               : form == 3 ? Cu().cuMemcpy2DUnaligned_v2(&c)
                           : Cu().cuMemcpy2DAsync_v2(&c, stream));
        }
        MUST(Cu().cuCtxSynchronize());
        ASSERT_EQ(dst.Bytes(), expected);
      }
    }
  }
}

TEST_F(Copies, WhatCannotBeIsRefused) {
  DeviceMemory device(1 << 20);
  std::vector<uint8_t> host(2 << 20);
  EXPECT_EQ(Cu().cuMemcpyHtoD_v2(device.at, host.data(), 0), CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuMemcpyHtoD_v2(device.at + (1 << 20) - 10, host.data(), 1 << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuMemcpyDtoH_v2(host.data(), 0xdead0000, 100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuMemsetD16_v2(device.at + 1, 1, 10), CUDA_ERROR_INVALID_VALUE) << "not aligned";
  EXPECT_EQ(Cu().cuMemsetD32_v2(device.at + 2, 1, 10), CUDA_ERROR_INVALID_VALUE) << "not aligned";
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host.data();
  c.srcPitch = 50;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = device.at;
  c.dstPitch = 100;
  c.WidthInBytes = 60;
  c.Height = 3;
  EXPECT_EQ(Cu().cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE) << "a row is longer than its pitch";
  c.srcMemoryType = static_cast<CUmemorytype>(77);
  c.srcPitch = 100;
  EXPECT_EQ(Cu().cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
  // All of this is no fault of the context.
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Copies, FillsOfEveryWidth) {
  constexpr size_t kSize = 5000;
  DeviceMemory device(kSize);
  Stream stream;
  for (bool async : {false, true}) {
    auto expected = Noise(kSize, 200);
    Write(device.at, expected);
    const auto fill = [&](size_t at, auto value, size_t n) {
      for (size_t i = 0; i < n; ++i) memcpy(&expected[at + i * sizeof(value)], &value, sizeof(value));
    };
    const CUdeviceptr d = device.at;
    MUST(async ? Cu().cuMemsetD8Async(d + 3, 0xab, 77, stream) : Cu().cuMemsetD8_v2(d + 3, 0xab, 77));
    fill(3, uint8_t{0xab}, 77);
    MUST(async ? Cu().cuMemsetD16Async(d + 102, 0x1234, 55, stream)
               : Cu().cuMemsetD16_v2(d + 102, 0x1234, 55));
    fill(102, uint16_t{0x1234}, 55);
    MUST(async ? Cu().cuMemsetD32Async(d + 404, 0xdeadbeef, 33, stream)
               : Cu().cuMemsetD32_v2(d + 404, 0xdeadbeef, 33));
    fill(404, uint32_t{0xdeadbeef}, 33);
    MUST(async ? Cu().cuMemsetD2D8Async(d + 1001, 64, 0x11, 9, 5, stream)
               : Cu().cuMemsetD2D8_v2(d + 1001, 64, 0x11, 9, 5));
    for (size_t row = 0; row < 5; ++row) fill(1001 + row * 64, uint8_t{0x11}, 9);
    MUST(async ? Cu().cuMemsetD2D16Async(d + 2002, 66, 0x2222, 7, 6, stream)
               : Cu().cuMemsetD2D16_v2(d + 2002, 66, 0x2222, 7, 6));
    for (size_t row = 0; row < 6; ++row) fill(2002 + row * 66, uint16_t{0x2222}, 7);
    MUST(async ? Cu().cuMemsetD2D32Async(d + 3000, 100, 0x33334444, 5, 7, stream)
               : Cu().cuMemsetD2D32_v2(d + 3000, 100, 0x33334444, 5, 7));
    for (size_t row = 0; row < 7; ++row) fill(3000 + row * 100, uint32_t{0x33334444}, 5);
    MUST(Cu().cuStreamSynchronize(stream));
    EXPECT_EQ(Read<uint8_t>(d, kSize), expected) << (async ? "async" : "");
  }
}

}  // namespace
}  // namespace cuplex::conformance
