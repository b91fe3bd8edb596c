// Arrays, textures and surfaces: what a kernel fetches from every kind of texture, held against a plain
// reference (texture_reference.h); copies to and from arrays; loads and stores of surfaces; the calls that
// make them.
#include "tests/conformance/texture_reference.h"

#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

constexpr unsigned kLayered = 1, kSurface = 2, kCubemap = 4, kGather = 8;
constexpr unsigned kAsInteger = 1, kNormalized = 2;

uint32_t BitsOf(float f) { return std::bit_cast<uint32_t>(f); }
float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }

/// A kernel that runs `instruction` for each of n threads: %c0 .. %c11 are its input words, %o0 .. %o3 what
/// it answers with, %h the handle.
std::string KernelOf(const std::string& instruction) {
  return ".version 7.0\n.target sm_75\n.address_size 64\n"
         ".visible .entry run(.param .u64 handle, .param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
         "  .reg .pred %p, %q; .reg .b16 %s<4>; .reg .b32 %i, %n, %b, %c<12>, %o<4>; .reg .b64 %h, %in, "
         "%out, "
         "%at, %w<4>;\n"
         "  ld.param.u64 %h, [handle]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, "
         "[n];\n"
         "  mov.u32 %i, %ctaid.x; mov.u32 %b, %ntid.x; mul.lo.u32 %i, %i, %b; mov.u32 %b, %tid.x; "
         "add.u32 %i, %i, %b;\n"
         "  setp.ge.u32 %p, %i, %n; @%p ret;\n"
         "  mul.wide.u32 %at, %i, 48; add.u64 %in, %in, %at; mul.wide.u32 %at, %i, 16; add.u64 %out, %out, "
         "%at;\n"
         "  ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%in]; ld.global.v4.b32 {%c4, %c5, %c6, %c7}, [%in+16];\n"
         "  ld.global.v4.b32 {%c8, %c9, %c10, %c11}, [%in+32];\n"
         "  mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;\n  " +
         instruction + "\n  st.global.v4.b32 [%out], {%o0, %o1, %o2, %o3};\n  ret;\n}\n";
}

using Words = std::array<uint32_t, 12>;
using Answer = std::array<uint32_t, 4>;

class Textures : public Body {
 protected:
  /// The instruction's answers for each input.
  std::vector<Answer> Run(const std::string& instruction, uint64_t handle, const std::vector<Words>& in) {
    CUfunction& function = functions_[instruction];
    if (!function) {
      CUmodule module = nullptr;
      MUST(Cu().cuModuleLoadData(&module, KernelOf(instruction).c_str()));
      MUST(Cu().cuModuleGetFunction(&function, module, "run"));
    }
    DeviceMemory from(in.size() * sizeof(Words)), to(in.size() * sizeof(Answer));
    Write(from.at, in);
    const auto n = static_cast<unsigned>(in.size());
    MUST(Launch(function, (n + 63) / 64, 64, nullptr, handle, from.at, to.at, n));
    MUST(Cu().cuCtxSynchronize());
    return Read<Answer>(to.at, in.size());
  }

  std::map<std::string, CUfunction> functions_;  // by instruction; they go with the context
};

/// An array that ends with the scope.
class ArrayMemory {
 public:
  explicit ArrayMemory(const CUDA_ARRAY3D_DESCRIPTOR& d) : descriptor(d) {
    MUST(Cu().cuArray3DCreate_v2(&handle, &d));
  }
  ~ArrayMemory() { EXPECT_EQ(Cu().cuArrayDestroy(handle), CUDA_SUCCESS); }
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  CUarray handle = nullptr;
};

struct Format {
  const char* name;
  CUarray_format format;
  unsigned bytes;
  bool is_float, is_signed;
};
constexpr Format kFormats[] = {{"u8", CU_AD_FORMAT_UNSIGNED_INT8, 1, false, false},
                               {"u16", CU_AD_FORMAT_UNSIGNED_INT16, 2, false, false},
                               {"u32", CU_AD_FORMAT_UNSIGNED_INT32, 4, false, false},
                               {"s8", CU_AD_FORMAT_SIGNED_INT8, 1, false, true},
                               {"s16", CU_AD_FORMAT_SIGNED_INT16, 2, false, true},
                               {"s32", CU_AD_FORMAT_SIGNED_INT32, 4, false, true},
                               {"f16", CU_AD_FORMAT_HALF, 2, true, true},
                               {"f32", CU_AD_FORMAT_FLOAT, 4, true, true}};
const Format& kFloats = kFormats[7];

/// A half that is finite, as a double.
double HalfOf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Texels of a box, dense, x fastest.
struct Texels {
  Texels(const Format& f, unsigned channels, size_t width, size_t height, size_t depth, uint32_t seed)
      : format(f), channels(channels), width(width), height(height), depth(depth) {
    std::mt19937 random(seed);
    const size_t count = width * height * depth * channels;
    bytes.resize(count * f.bytes);
    for (size_t i = 0; i < count; ++i) {
      uint32_t v = static_cast<uint32_t>(random());
      if (f.is_float && f.bytes == 4) v = BitsOf(static_cast<float>(static_cast<int32_t>(v) >> 16) / 64.0f);
      if (f.is_float && f.bytes == 2) v = (v & 0x83ff) | (v >> 16 & 15) << 10;
      memcpy(&bytes[i * f.bytes], &v, f.bytes);
    }
  }

  const Format& format;
  unsigned channels;
  size_t width, height, depth;
  std::vector<uint8_t> bytes;

  size_t row() const { return width * channels * format.bytes; }
  /// A channel's bits, sign-extended where it is signed and an integer.
  uint32_t Raw(size_t x, size_t y, size_t z, unsigned c) const {
    uint32_t v = 0;
    memcpy(&v, &bytes[(((z * height + y) * width + x) * channels + c) * format.bytes], format.bytes);
    if (format.is_signed && !format.is_float && format.bytes < 4) {
      const unsigned shift = 32 - 8 * format.bytes;
      v = static_cast<uint32_t>(static_cast<int32_t>(v << shift) >> shift);
    }
    return v;
  }
  /// What a fetch reads, as a number: the value itself, or with `fractions` the part of the largest.
  double Value(size_t x, size_t y, size_t z, unsigned c, bool fractions) const {
    const uint32_t raw = Raw(x, y, z, c);
    if (format.is_float)
      return format.bytes == 4 ? static_cast<double>(FloatOf(raw)) : HalfOf(static_cast<uint16_t>(raw));
    const double v =
        format.is_signed ? static_cast<double>(static_cast<int32_t>(raw)) : static_cast<double>(raw);
    if (!fractions) return v;
    const double most =
        format.bytes == 1 ? (format.is_signed ? 127 : 255) : (format.is_signed ? 32767 : 65535);
    return static_cast<double>(static_cast<float>(std::max(v / most, -1.0)));
  }
  Picture AsPicture(bool fractions, std::optional<size_t> layer = {}) const {
    Picture p;
    p.extent = {static_cast<int>(width), static_cast<int>(height), layer ? 1 : static_cast<int>(depth)};
    p.texel = [this, fractions, layer](int x, int y, int z) {
      std::array<double, 4> out = {};
      for (unsigned c = 0; c < channels; ++c)
        out[c] = Value(static_cast<size_t>(x), static_cast<size_t>(y), layer.value_or(static_cast<size_t>(z)),
                       c, fractions);
      return out;
    };
    return p;
  }
};

CUDA_ARRAY3D_DESCRIPTOR Describe(const Texels& t, size_t height, size_t depth, unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = t.width;
  d.Height = height;
  d.Depth = depth;
  d.Format = t.format.format;
  d.NumChannels = t.channels;
  d.Flags = flags;
  return d;
}

/// Copies all of a box into an array, or out of it.
CUDA_MEMCPY3D Whole(const Texels& t, CUarray array, uint8_t* host, bool in) {
  CUDA_MEMCPY3D c{};
  (in ? c.srcMemoryType : c.dstMemoryType) = CU_MEMORYTYPE_HOST;
  (in ? c.dstMemoryType : c.srcMemoryType) = CU_MEMORYTYPE_ARRAY;
  c.srcHost = in ? host : nullptr;
  c.dstHost = in ? nullptr : host;
  (in ? c.dstArray : c.srcArray) = array;
  (in ? c.srcPitch : c.dstPitch) = t.row();
  (in ? c.srcHeight : c.dstHeight) = t.height;
  c.WidthInBytes = t.row();
  c.Height = t.height;
  c.Depth = t.depth;
  return c;
}
void Fill(CUarray array, const Texels& t) {
  CUDA_MEMCPY3D c = Whole(t, array, const_cast<uint8_t*>(t.bytes.data()), true);
  MUST(Cu().cuMemcpy3D_v2(&c));
}
std::vector<uint8_t> Contents(CUarray array, const Texels& t) {
  std::vector<uint8_t> out(t.bytes.size());
  CUDA_MEMCPY3D c = Whole(t, array, out.data(), false);
  MUST(Cu().cuMemcpy3D_v2(&c));
  return out;
}

class TextureHandle {
 public:
  TextureHandle(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
    MUST(Cu().cuTexObjectCreate(&handle, &resource, &texture, view));
  }
  ~TextureHandle() { EXPECT_EQ(Cu().cuTexObjectDestroy(handle), CUDA_SUCCESS); }
  TextureHandle(const TextureHandle&) = delete;
  TextureHandle& operator=(const TextureHandle&) = delete;
  CUtexObject handle = 0;
};
CUDA_RESOURCE_DESC Resource(CUarray array) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = array;
  return r;
}
class SurfaceHandle {
 public:
  explicit SurfaceHandle(CUarray array) {
    const CUDA_RESOURCE_DESC r = Resource(array);
    MUST(Cu().cuSurfObjectCreate(&handle, &r));
  }
  ~SurfaceHandle() { EXPECT_EQ(Cu().cuSurfObjectDestroy(handle), CUDA_SUCCESS); }
  SurfaceHandle(const SurfaceHandle&) = delete;
  SurfaceHandle& operator=(const SurfaceHandle&) = delete;
  CUsurfObject handle = 0;
};

CUDA_TEXTURE_DESC Describe(const Rules& rules, bool integers) {
  CUDA_TEXTURE_DESC d{};
  for (int i = 0; i < 3; ++i) d.addressMode[i] = static_cast<CUaddress_mode>(rules.address[i]);
  d.filterMode = rules.linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
  d.flags = (rules.normalized ? kNormalized : 0) | (integers ? kAsInteger : 0);
  for (int i = 0; i < 4; ++i) d.borderColor[i] = static_cast<float>(rules.border[i]);
  return d;
}

/// Coordinates around and beyond an extent, in texels or in extents; not between the steps of a weight, so
/// that it does not matter how those are rounded.
std::vector<double> Coordinates(int n, bool normalized) {
  std::vector<double> out;
  for (double x : {-2.75, -1.0, -0.5, -0.25, 0.0, 0.125, 0.5, 0.8125, 1.0, 1.5, 2.0, 2.25}) out.push_back(x);
  for (double x : {-1.5, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 1.25, 2.5, 9.0})
    out.push_back(static_cast<double>(n) + x);
  out.push_back(n / 2 + 0.375);
  // Extents here are powers of two, so that dividing loses nothing.
  if (normalized)
    for (double& x : out) x /= n;
  return out;
}

/// All, or where there are several axes a fixed mixture.
std::vector<std::array<double, 3>> Points(const Picture& p, int axes, bool normalized) {
  std::vector<std::array<double, 3>> out;
  std::array<std::vector<double>, 3> on;
  for (int a = 0; a < axes; ++a)
    on[static_cast<size_t>(a)] = Coordinates(p.extent[static_cast<size_t>(a)], normalized);
  if (axes == 1) {
    for (double x : on[0]) out.push_back({x, 0, 0});
    return out;
  }
  for (size_t i = 0; i < on[0].size(); ++i)
    for (size_t j = 0; j < on[1].size(); ++j)
      out.push_back({on[0][i], on[1][j], axes == 3 ? on[2][(i * 7 + j * 3) % on[2].size()] : 0});
  return out;
}

Words AsWords(const std::array<double, 3>& at, std::optional<uint32_t> layer = {}) {
  Words w{};
  size_t i = 0;
  if (layer) w[i++] = *layer;
  for (double x : at) w[i++] = BitsOf(static_cast<float>(x));
  return w;
}

/// Device filtering may differ from exact arithmetic in the last bits; ours does not by more than a rounding.
void ExpectNear(float got, double expected, const std::string& what) {
  const double tolerance =
      Given().ours ? std::fabs(expected) * 6.1e-8 + 1e-30 : std::fabs(expected) * 0.01 + 0.5;
  EXPECT_NEAR(static_cast<double>(got), expected, tolerance) << what;
}

std::string Show(const std::array<double, 3>& at) { return testing::PrintToString(at); }

constexpr Address kAddresses[] = {Address::kWrap, Address::kClamp, Address::kMirror, Address::kBorder};

// ------------------------------------------------------------------------------------------------ fetches

TEST_F(Textures, EveryAddressModeAndFilterInTwoDimensions) {
  const Texels t(kFloats, 4, 16, 8, 1, 1);
  ArrayMemory array(Describe(t, 8, 0));
  Fill(array.handle, t);
  const Picture p = t.AsPicture(false);
  for (Address x : kAddresses)
    for (Address y : kAddresses)
      for (bool normalized : {false, true})
        for (bool linear : {false, true}) {
          Rules rules{2, {x, y, Address::kClamp}, normalized, linear, {1, -2, 3, 0.5}};
          TextureHandle texture(Resource(array.handle), Describe(rules, false));
          const auto points = Points(p, 2, normalized);
          std::vector<Words> in;
          for (const auto& at : points) in.push_back(AsWords(at));
          const auto out =
              Run("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];", texture.handle, in);
          for (size_t i = 0; i < in.size(); ++i) {
            const auto expected = Fetched(p, rules, points[i]);
            for (size_t c = 0; c < 4; ++c)
              ExpectNear(FloatOf(out[i][c]), expected[c],
                         Show(points[i]) + " address " + std::to_string(static_cast<int>(x)) + "," +
                             std::to_string(static_cast<int>(y)) + (normalized ? " normalized" : "") +
                             (linear ? " linear" : ""));
          }
          if (HasFailure()) return;
        }
}

TEST_F(Textures, OneAndThreeDimensions) {
  for (int axes : {1, 3}) {
    const Texels t(kFloats, 2, 8, axes == 3 ? 4 : 1, axes == 3 ? 8 : 1, 2);
    ArrayMemory array(Describe(t, axes == 3 ? 4 : 0, axes == 3 ? 8 : 0));
    Fill(array.handle, t);
    const Picture p = t.AsPicture(false);
    for (Address mode : kAddresses)
      for (bool normalized : {false, true})
        for (bool linear : {false, true}) {
          Rules rules{axes, {mode, mode, mode}, normalized, linear, {}};
          TextureHandle texture(Resource(array.handle), Describe(rules, false));
          const auto points = Points(p, axes, normalized);
          std::vector<Words> in;
          for (const auto& at : points) in.push_back(AsWords(at));
          const auto out =
              Run(axes == 1 ? "tex.1d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0}];"
                            : "tex.3d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1, %c2, %c2}];",
                  texture.handle, in);
          for (size_t i = 0; i < in.size(); ++i) {
            const auto expected = Fetched(p, rules, points[i]);
            for (size_t c = 0; c < 2; ++c) ExpectNear(FloatOf(out[i][c]), expected[c], Show(points[i]));
          }
          if (HasFailure()) return;
        }
  }
}

TEST_F(Textures, EveryFormatAndReadMode) {
  for (const Format& format : kFormats)
    for (unsigned channels : {1u, 2u, 4u})
      for (bool fractions : {false, true}) {
        if (fractions && (format.is_float || format.bytes == 4)) continue;
        SCOPED_TRACE(std::string(format.name) + " x " + std::to_string(channels) +
                     (fractions ? " as fractions" : ""));
        const Texels t(format, channels, 8, 4, 1, 3);
        ArrayMemory array(Describe(t, 4, 0));
        Fill(array.handle, t);
        const bool floats = format.is_float || fractions;
        Rules rules;
        TextureHandle texture(Resource(array.handle), Describe(rules, !fractions));
        std::vector<Words> in;
        for (uint32_t y = 0; y < 4; ++y)
          for (uint32_t x = 0; x < 8; ++x) in.push_back({x, y});
        const std::string type = floats ? "f32" : format.is_signed ? "s32" : "u32";
        const auto out =
            Run("tex.2d.v4." + type + ".s32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];", texture.handle, in);
        for (size_t i = 0; i < in.size(); ++i)
          for (unsigned c = 0; c < channels; ++c) {
            if (floats) {
              ExpectNear(FloatOf(out[i][c]), t.Value(in[i][0], in[i][1], 0, c, fractions), std::to_string(i));
            } else {
              EXPECT_EQ(out[i][c], t.Raw(in[i][0], in[i][1], 0, c)) << i;
            }
          }
        if (HasFailure()) return;
      }
}

TEST_F(Textures, FractionsAreFiltered) {
  const Texels t(kFormats[0], 4, 8, 8, 1, 4);
  ArrayMemory array(Describe(t, 8, 0));
  Fill(array.handle, t);
  const Picture p = t.AsPicture(true);
  Rules rules{2, {Address::kWrap, Address::kMirror, Address::kClamp}, true, true, {}};
  TextureHandle texture(Resource(array.handle), Describe(rules, false));
  const auto points = Points(p, 2, true);
  std::vector<Words> in;
  for (const auto& at : points) in.push_back(AsWords(at));
  const auto out = Run("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];", texture.handle, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const auto expected = Fetched(p, rules, points[i]);
    for (size_t c = 0; c < 4; ++c)
      EXPECT_NEAR(static_cast<double>(FloatOf(out[i][c])), expected[c], Given().ours ? 1.2e-7 : 0.01)
          << Show(points[i]);
  }
}

TEST_F(Textures, HalvesAsResults) {
  const Texels t(kFormats[6], 4, 4, 4, 1, 5);
  ArrayMemory array(Describe(t, 4, 0));
  Fill(array.handle, t);
  TextureHandle texture(Resource(array.handle), Describe(Rules{}, false));
  std::vector<Words> in;
  for (uint32_t i = 0; i < 16; ++i) in.push_back({i % 4, i / 4});
  const auto out = Run("tex.2d.v2.f16x2.s32 {%o0, %o1}, [%h, {%c0, %c1}];", texture.handle, in);
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i][0], t.Raw(i % 4, i / 4, 0, 0) | t.Raw(i % 4, i / 4, 0, 1) << 16);
    EXPECT_EQ(out[i][1], t.Raw(i % 4, i / 4, 0, 2) | t.Raw(i % 4, i / 4, 0, 3) << 16);
  }
}

TEST_F(Textures, LayersAreChosenAndNotFiltered) {
  for (int axes : {1, 2}) {
    const size_t height = axes == 2 ? 4 : 1;
    const Texels t(kFloats, 1, 8, height, 5, 6);
    ArrayMemory array(Describe(t, axes == 2 ? 4 : 0, 5, kLayered));
    Fill(array.handle, t);
    EXPECT_EQ(Contents(array.handle, t), t.bytes);
    Rules rules{axes, {Address::kClamp, Address::kClamp, Address::kClamp}, false, true, {}};
    TextureHandle texture(Resource(array.handle), Describe(rules, false));
    for (uint32_t layer : {0u, 3u, 4u, 9u}) {  // the last is not there: the nearest is
      const Picture p = t.AsPicture(false, std::min(layer, 4u));
      const auto points = Points(p, axes, false);
      std::vector<Words> in;
      for (const auto& at : points) in.push_back(AsWords(at, layer));
      const auto out = Run(axes == 1 ? "tex.a1d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];"
                                     : "tex.a2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1, %c2, %c2}];",
                           texture.handle, in);
      for (size_t i = 0; i < in.size(); ++i)
        ExpectNear(FloatOf(out[i][0]), Fetched(p, rules, points[i])[0], Show(points[i]));
    }
  }
}

TEST_F(Textures, CubesAreLookedUpByDirection) {
  // The table of the programming guide: major axis, face, m, s, t.
  const auto face_of = [](const std::array<double, 3>& d, double* u, double* v) {
    const double x = d[0], y = d[1], z = d[2];
    double m, s, t;
    size_t face;
    if (std::fabs(x) > std::fabs(y) && std::fabs(x) > std::fabs(z)) {
      face = x >= 0 ? 0 : 1;
      m = x >= 0 ? x : -x;
      s = x >= 0 ? -z : z;
      t = -y;
    } else if (std::fabs(y) > std::fabs(z)) {
      face = y >= 0 ? 2 : 3;
      m = y >= 0 ? y : -y;
      s = x;
      t = y >= 0 ? z : -z;
    } else {
      face = z >= 0 ? 4 : 5;
      m = z >= 0 ? z : -z;
      s = z >= 0 ? x : -x;
      t = -y;
    }
    *u = (s / m + 1) / 2;
    *v = (t / m + 1) / 2;
    return face;
  };
  for (bool layered : {false, true}) {
    const size_t cubes = layered ? 3 : 1;
    const Texels t(kFloats, 1, 8, 8, 6 * cubes, 7);
    ArrayMemory array(Describe(t, 8, 6 * cubes, kCubemap | (layered ? kLayered : 0)));
    Fill(array.handle, t);
    Rules rules{2, {Address::kClamp, Address::kClamp, Address::kClamp}, true, false, {}};
    TextureHandle texture(Resource(array.handle), Describe(rules, false));
    std::vector<std::array<double, 3>> points;
    for (double a : {-0.71875, -0.28125, 0.15625, 0.84375})
      for (double b : {-0.90625, 0.03125, 0.53125})
        for (double m : {2.0, -2.0})
          for (int axis = 0; axis < 3; ++axis) {
            std::array<double, 3> d = {2 * a, 2 * b, 2 * a};
            d[static_cast<size_t>(axis)] = m;
            d[static_cast<size_t>((axis + 1) % 3)] = 2 * a;
            d[static_cast<size_t>((axis + 2) % 3)] = 2 * b;
            points.push_back(d);
          }
    const uint32_t cube = layered ? 2 : 0;
    std::vector<Words> in;
    for (const auto& at : points) in.push_back(AsWords(at, layered ? std::optional(cube) : std::nullopt));
    const auto out = Run(layered ? "tex.acube.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1, %c2, %c3}];"
                                 : "tex.cube.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1, %c2, %c2}];",
                         texture.handle, in);
    for (size_t i = 0; i < in.size(); ++i) {
      double u, v;
      const size_t face = face_of(points[i], &u, &v);
      const Picture p = t.AsPicture(false, cube * 6 + face);
      ExpectNear(FloatOf(out[i][0]), Fetched(p, rules, {u, v, 0})[0], Show(points[i]));
    }
  }
}

TEST_F(Textures, LinearMemory) {
  const Texels t(kFormats[3], 2, 100, 1, 1, 8);
  DeviceMemory memory(t.bytes.size());
  Write(memory.at, t.bytes);
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  r.res.linear.devPtr = memory.at;
  r.res.linear.format = t.format.format;
  r.res.linear.numChannels = 2;
  r.res.linear.sizeInBytes = t.bytes.size();
  TextureHandle texture(r, Describe(Rules{}, true));
  std::vector<Words> in;
  for (int x : {0, 1, 50, 99, 100, 101, -1, 1 << 20}) in.push_back({static_cast<uint32_t>(x)});
  const auto out = Run("tex.1d.v4.s32.s32 {%o0, %o1, %o2, %o3}, [%h, {%c0}];", texture.handle, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const bool inside = in[i][0] < 100;
    for (unsigned c = 0; c < 2; ++c) EXPECT_EQ(out[i][c], inside ? t.Raw(in[i][0], 0, 0, c) : 0u) << in[i][0];
  }
  // What a kernel, or a copy, writes there is what later kernels fetch.
  const Texels other(kFormats[3], 2, 100, 1, 1, 9);
  Write(memory.at, other.bytes);
  EXPECT_EQ(Run("tex.1d.v4.s32.s32 {%o0, %o1, %o2, %o3}, [%h, {%c0}];", texture.handle, {{7}})[0][1],
            other.Raw(7, 0, 0, 1));
}

TEST_F(Textures, PitchedMemory) {
  const Texels t(kFloats, 1, 16, 8, 1, 10);
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  MUST(Cu().cuMemAllocPitch_v2(&memory, &pitch, t.row(), t.height, 4));
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = t.bytes.data();
  c.srcPitch = t.row();
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = memory;
  c.dstPitch = pitch;
  c.WidthInBytes = t.row();
  c.Height = t.height;
  MUST(Cu().cuMemcpy2D_v2(&c));
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_PITCH2D;
  r.res.pitch2D.devPtr = memory;
  r.res.pitch2D.format = t.format.format;
  r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = t.width;
  r.res.pitch2D.height = t.height;
  r.res.pitch2D.pitchInBytes = pitch;
  {
    Rules rules{2, {Address::kBorder, Address::kClamp, Address::kClamp}, false, true, {}};
    TextureHandle texture(r, Describe(rules, false));
    const Picture p = t.AsPicture(false);
    const auto points = Points(p, 2, false);
    std::vector<Words> in;
    for (const auto& at : points) in.push_back(AsWords(at));
    const auto out = Run("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];", texture.handle, in);
    for (size_t i = 0; i < in.size(); ++i)
      ExpectNear(FloatOf(out[i][0]), Fetched(p, rules, points[i])[0], Show(points[i]));
  }
  MUST(Cu().cuMemFree_v2(memory));
}

TEST_F(Textures, LevelsOfMipmaps) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = d.Height = 16;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  CUmipmappedArray mipmapped = nullptr;
  MUST(Cu().cuMipmappedArrayCreate(&mipmapped, &d, 5));
  std::vector<Texels> levels;
  for (unsigned i = 0; i < 5; ++i) {
    levels.emplace_back(kFloats, 1, 16u >> i, 16u >> i, 1, 20 + i);
    CUarray level = nullptr;
    MUST(Cu().cuMipmappedArrayGetLevel(&level, mipmapped, i));
    CUDA_ARRAY3D_DESCRIPTOR said{};
    MUST(Cu().cuArray3DGetDescriptor_v2(&said, level));
    EXPECT_EQ(said.Width, 16u >> i);
    EXPECT_EQ(said.Height, 16u >> i);
    Fill(level, levels.back());
  }
  for (unsigned i = 0; i < 5; ++i) {
    CUarray level = nullptr;
    MUST(Cu().cuMipmappedArrayGetLevel(&level, mipmapped, i));
    EXPECT_EQ(Contents(level, levels[i]), levels[i].bytes);
  }
  CUarray none = nullptr;
  EXPECT_EQ(Cu().cuMipmappedArrayGetLevel(&none, mipmapped, 5), CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  r.res.mipmap.hMipmappedArray = mipmapped;
  for (bool between : {false, true}) {
    Rules rules{2, {Address::kWrap, Address::kClamp, Address::kClamp}, true, true, {}};
    CUDA_TEXTURE_DESC texture_desc = Describe(rules, false);
    texture_desc.mipmapFilterMode = between ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    texture_desc.maxMipmapLevelClamp = 3.5f;
    texture_desc.minMipmapLevelClamp = 0.25f;
    TextureHandle texture(r, texture_desc);
    const auto at_level = [&](double level, const std::array<double, 3>& at) {
      level = std::clamp(level, 0.25, 3.5);
      const auto one = [&](unsigned n) { return Fetched(levels[n].AsPicture(false), rules, at)[0]; };
      if (!between) return one(static_cast<unsigned>(std::floor(level + 0.5)));
      const auto n = static_cast<unsigned>(level);
      const double w = level - n;
      return w == 0 ? one(n) : (1 - w) * one(n) + w * one(n + 1);
    };
    std::vector<Words> in;
    std::vector<std::array<double, 3>> points;
    std::vector<double> asked;
    for (double level : {-1.0, 0.0, 0.25, 0.75, 1.0, 1.375, 2.0, 2.75, 3.0, 3.25, 7.0})
      for (double x : {0.0625, 0.5, 0.90625}) {
        points.push_back({x, 1 - x / 2, 0});
        asked.push_back(level);
        in.push_back(AsWords(points.back()));
        in.back()[4] = BitsOf(static_cast<float>(level));
      }
    auto out =
        Run("tex.level.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}], %c4;", texture.handle, in);
    for (size_t i = 0; i < in.size(); ++i) {
      const double expected = at_level(asked[i], points[i]);
      EXPECT_NEAR(static_cast<double>(FloatOf(out[i][0])), expected,
                  Given().ours ? std::fabs(expected) * 3e-7 + 1e-5 : 2.0)
          << asked[i] << " at " << Show(points[i]);
    }
    // A gradient of 2^n texels is level n, whichever axis it is along.
    for (size_t i = 0; i < in.size(); ++i) {
      const double level = std::clamp(asked[i], 0.25, 3.5), step = std::exp2(level) / 16;
      const bool along_x = i % 2;
      in[i][4] = in[i][7] = BitsOf(0);
      in[i][5] = in[i][6] = BitsOf(0);
      in[i][along_x ? 4 : 7] = BitsOf(static_cast<float>(step));
    }
    out = Run("tex.grad.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}], {%c4, %c5}, {%c6, %c7};",
              texture.handle, in);
    for (size_t i = 0; i < in.size(); ++i) {
      const double bounded = std::clamp(asked[i], 0.25, 3.5);
      if (!between && std::fabs(bounded - std::floor(bounded) - 0.5) < 0.01) continue;
      const double expected = at_level(asked[i], points[i]);
      EXPECT_NEAR(static_cast<double>(FloatOf(out[i][0])), expected,
                  Given().ours ? 0.01 + 0.01 * std::fabs(expected) : 4.0)
          << asked[i] << " at " << Show(points[i]);
    }
  }
  MUST(Cu().cuMipmappedArrayDestroy(mipmapped));
}

TEST_F(Textures, GatherTakesOneComponentOfFourTexels) {
  const Texels t(kFloats, 4, 8, 8, 1, 11);
  ArrayMemory array(Describe(t, 8, 0, kGather));
  Fill(array.handle, t);
  TextureHandle texture(Resource(array.handle), Describe(Rules{}, false));
  const char* kComponents[] = {"r", "g", "b", "a"};
  for (unsigned c = 0; c < 4; ++c) {
    std::vector<Words> in;
    for (float x : {0.75f, 3.0f, 6.25f}) in.push_back({BitsOf(x), BitsOf(x / 2 + 1)});
    const auto out =
        Run(std::string("tld4.") + kComponents[c] + ".2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];",
            texture.handle, in);
    for (size_t i = 0; i < in.size(); ++i) {
      const auto x = static_cast<size_t>(FloatOf(in[i][0]) - 0.5f),
                 y = static_cast<size_t>(FloatOf(in[i][1]) - 0.5f);
      const Answer expected = {t.Raw(x, y + 1, 0, c), t.Raw(x + 1, y + 1, 0, c), t.Raw(x + 1, y, 0, c),
                               t.Raw(x, y, 0, c)};
      EXPECT_EQ(out[i], expected) << i;
    }
  }
}

TEST_F(Textures, Queries) {
  const Texels t(kFormats[0], 4, 24, 10, 1, 12);
  ArrayMemory array(Describe(t, 10, 0, kSurface));
  TextureHandle texture(Resource(array.handle), Describe(Rules{}, true));
  SurfaceHandle surface(array.handle);
  auto out = Run("txq.width.b32 %o0, [%h]; txq.height.b32 %o1, [%h];", texture.handle, {{}});
  EXPECT_EQ(out[0][0], 24u);
  EXPECT_EQ(out[0][1], 10u);
  out = Run("suq.width.b32 %o0, [%h]; suq.height.b32 %o1, [%h];", surface.handle, {{}});
  EXPECT_EQ(out[0][0], 24u);
  EXPECT_EQ(out[0][1], 10u);
}

// ----------------------------------------------------------------------------------------------- surfaces

TEST_F(Textures, SurfacesAreLoadedAndStored) {
  struct Shape {
    const char* geometry;
    const char* at;
    size_t height, depth;
    unsigned flags;
  };
  const Shape kShapes[] = {{"1d", "{%c0}", 0, 0, 0},
                           {"2d", "{%c0, %c1}", 6, 0, 0},
                           {"3d", "{%c0, %c1, %c2, %c2}", 6, 4, 0},
                           {"a1d", "{%c2, %c0}", 0, 4, kLayered},
                           {"a2d", "{%c2, %c0, %c1, %c1}", 6, 4, kLayered}};
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.geometry);
    const Texels t(kFormats[2], 4, 8, std::max<size_t>(shape.height, 1), std::max<size_t>(shape.depth, 1),
                   13);
    ArrayMemory array(Describe(t, shape.height, shape.depth, shape.flags | kSurface));
    SurfaceHandle surface(array.handle);
    const std::string at = std::string(" [%h, ") + shape.at + "]";
    // Every texel stored by a thread of its own, found by a copy; then another way round.
    std::vector<Words> in;
    for (uint32_t z = 0; z < t.depth; ++z)
      for (uint32_t y = 0; y < t.height; ++y)
        for (uint32_t x = 0; x < t.width; ++x)
          in.push_back(
              {x * 16, y, z, 0, t.Raw(x, y, z, 0), t.Raw(x, y, z, 1), t.Raw(x, y, z, 2), t.Raw(x, y, z, 3)});
    Run(std::string("sust.b.") + shape.geometry + ".v4.b32.trap" + at + ", {%c4, %c5, %c6, %c7};",
        surface.handle, in);
    EXPECT_EQ(Contents(array.handle, t), t.bytes);
    const auto out =
        Run(std::string("suld.b.") + shape.geometry + ".v4.b32.trap {%o0, %o1, %o2, %o3}," + at + ";",
            surface.handle, in);
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_EQ(out[i], (Answer{in[i][4], in[i][5], in[i][6], in[i][7]}));
  }
}

TEST_F(Textures, SurfaceAccessesOfEveryWidth) {
  const Texels t(kFormats[2], 4, 8, 2, 1, 14);
  ArrayMemory array(Describe(t, 2, 0, kSurface));
  SurfaceHandle surface(array.handle);
  struct Access {
    const char *type, *to, *from, *before, *after;
    unsigned bytes;
  };
  const Access kAll[] = {
      {"b8", "%s0", "%s0", "cvt.u16.u32 %s0, %c4;", "cvt.u32.u16 %o0, %s0; and.b32 %o0, %o0, 255;", 1},
      {"b16", "%s0", "%s0", "cvt.u16.u32 %s0, %c4;", "cvt.u32.u16 %o0, %s0;", 2},
      {"b32", "%o0", "%c4", "", "", 4},
      {"b64", "%w0", "%w0", "mov.b64 %w0, {%c4, %c5};", "mov.b64 {%o0, %o1}, %w0;", 8},
      {"v2.b32", "{%o0, %o1}", "{%c4, %c5}", "", "", 8},
      {"v2.b64", "{%w0, %w1}", "{%w0, %w1}", "mov.b64 %w0, {%c4, %c5}; mov.b64 %w1, {%c6, %c7};",
       "mov.b64 {%o0, %o1}, %w0; mov.b64 {%o2, %o3}, %w1;", 16},
      {"v4.b16", "{%s0, %s1, %s2, %s3}", "{%s0, %s1, %s2, %s3}",
       "mov.b32 {%s0, %s1}, %c4; mov.b32 {%s2, %s3}, %c5;",
       "mov.b32 %o0, {%s0, %s1}; mov.b32 %o1, {%s2, %s3};", 8}};
  for (const Access& a : kAll) {
    SCOPED_TRACE(a.type);
    Fill(array.handle, t);
    const uint32_t x = 3 * a.bytes;
    const Words in = {x, 1, 0, 0, 0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff01};
    Run(std::string(a.before) + " sust.b.2d." + a.type + ".trap [%h, {%c0, %c1}], " + a.from + ";",
        surface.handle, {in});
    auto expected = t.bytes;
    memcpy(&expected[t.row() + x], &in[4], a.bytes);
    EXPECT_EQ(Contents(array.handle, t), expected);
    const auto out =
        Run(std::string("suld.b.2d.") + a.type + ".trap " + a.to + ", [%h, {%c0, %c1}]; " + a.after,
            surface.handle, {in});
    EXPECT_EQ(memcmp(out[0].data(), &in[4], a.bytes), 0);
  }
}

TEST_F(Textures, SurfacesEndWhereTheyEnd) {
  const Texels t(kFormats[2], 1, 8, 4, 1, 15);
  ArrayMemory array(Describe(t, 4, 0, kSurface));
  SurfaceHandle surface(array.handle);
  Fill(array.handle, t);
  std::vector<Words> in;
  for (int x : {-4, 0, 28, 32, 1000})
    for (int y : {-1, 0, 3, 4}) in.push_back({static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0, 0, 7});
  auto zero = Run("suld.b.2d.b32.zero %o0, [%h, {%c0, %c1}];", surface.handle, in);
  auto clamp = Run("suld.b.2d.b32.clamp %o0, [%h, {%c0, %c1}];", surface.handle, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const int x = static_cast<int>(in[i][0]) / 4, y = static_cast<int>(in[i][1]);
    const bool inside = x >= 0 && x < 8 && y >= 0 && y < 4;
    EXPECT_EQ(zero[i][0], inside ? t.Raw(static_cast<size_t>(x), static_cast<size_t>(y), 0, 0) : 0u) << i;
    EXPECT_EQ(clamp[i][0],
              t.Raw(static_cast<size_t>(std::clamp(x, 0, 7)), static_cast<size_t>(std::clamp(y, 0, 3)), 0, 0))
        << i;
  }
  // Stores outside go nowhere with .zero.
  std::vector<Words> outside;
  for (const Words& w : in)
    if (static_cast<int>(w[0]) < 0 || w[0] >= 32 || w[1] >= 4) outside.push_back(w);
  Run("sust.b.2d.b32.zero [%h, {%c0, %c1}], %c4;", surface.handle, outside);
  EXPECT_EQ(Contents(array.handle, t), t.bytes);
}

TEST_F(Textures, FetchesBesideTheirCoordinates) {
  const Texels t(kFloats, 1, 16, 8, 1, 40);
  ArrayMemory array(Describe(t, 8, 0));
  Fill(array.handle, t);
  TextureHandle texture(Resource(array.handle), Describe(Rules{}, false));
  std::vector<Words> in;
  for (float y : {0.5f, 3.5f, 7.5f})
    for (float x : {0.5f, 9.5f, 15.5f}) in.push_back({BitsOf(x), BitsOf(y)});
  const auto out =
      Run("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}], {1, -2};", texture.handle, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const auto x = static_cast<int>(FloatOf(in[i][0])) + 1, y = static_cast<int>(FloatOf(in[i][1])) - 2;
    EXPECT_EQ(out[i][0],
              t.Raw(static_cast<size_t>(std::min(x, 15)), static_cast<size_t>(std::max(y, 0)), 0, 0))
        << i;
  }
}

TEST_F(Textures, SurfacesAreCombinedInPlace) {
  const Texels t(kFormats[2], 1, 8, 2, 1, 41);
  ArrayMemory array(Describe(t, 2, 0, kSurface));
  SurfaceHandle surface(array.handle);
  const auto combine = [&](const char* op, uint32_t start, const std::vector<uint32_t>& values) {
    Texels begin = t;
    for (size_t i = 0; i < begin.bytes.size(); i += 4) memcpy(&begin.bytes[i], &start, 4);
    Fill(array.handle, begin);
    std::vector<Words> in;
    for (uint32_t v : values) in.push_back({12, 1, 0, 0, v});
    Run(std::string("sured.b.") + op + ".trap [%h, {%c0, %c1}], %c4;", surface.handle, in);
    const auto bytes = Contents(array.handle, t);
    uint32_t result, beside;
    memcpy(&result, &bytes[t.row() + 12], 4);
    memcpy(&beside, &bytes[t.row() + 16], 4);
    EXPECT_EQ(beside, start) << op;
    return result;
  };
  std::vector<uint32_t> values;
  uint32_t sum = 7, all = 7;
  for (uint32_t i = 1; i <= 100; ++i) {
    values.push_back(i * 2654435761u);
    sum += values.back();
    all |= values.back();
  }
  EXPECT_EQ(combine("add.2d.u32", 7, values), sum);
  EXPECT_EQ(combine("or.2d.b32", 7, values), all);
  EXPECT_EQ(combine("min.2d.u32", 7000000, values),
            std::min(7000000u, *std::min_element(values.begin(), values.end())));
  const auto less = [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b); };
  EXPECT_EQ(combine("max.2d.s32", 7, values), *std::max_element(values.begin(), values.end(), less));
}

TEST_F(Textures, FormattedStoresConvertToTheSurface) {
  const Words in = {3, 1, 0, 0, 1, 0xffffffff, 100, 7};
  {
    const Texels t(kFormats[3], 4, 8, 2, 1, 42);
    ArrayMemory array(Describe(t, 2, 0, kSurface));
    SurfaceHandle surface(array.handle);
    Fill(array.handle, t);
    Run("sust.p.2d.v4.b32.trap [%h, {%c0, %c1}], {%c4, %c5, %c6, %c7};", surface.handle, {in});
    auto expected = t.bytes;
    const uint8_t texel[] = {1, 0xff, 100, 7};
    memcpy(&expected[t.row() + 12], texel, 4);
    EXPECT_EQ(Contents(array.handle, t), expected);
  }
  const Texels t(kFormats[6], 2, 8, 2, 1, 43);
  ArrayMemory array(Describe(t, 2, 0, kSurface));
  SurfaceHandle surface(array.handle);
  Fill(array.handle, t);
  Words halves = in;
  halves[4] = BitsOf(-1.5f);
  halves[5] = BitsOf(0.25f);
  Run("sust.p.2d.v2.b32.trap [%h, {%c0, %c1}], {%c4, %c5};", surface.handle, {halves});
  auto expected = t.bytes;
  const uint16_t texel[] = {0xbe00, 0x3400};
  memcpy(&expected[t.row() + 12], texel, 4);
  EXPECT_EQ(Contents(array.handle, t), expected);
}

TEST_F(Textures, ATrapOutsideOfASurfaceFailsTheContext) {
  const Texels t(kFormats[2], 1, 8, 4, 1, 16);
  CUarray array = nullptr;
  const auto d = Describe(t, 4, 0, kSurface);
  MUST(Cu().cuArray3DCreate_v2(&array, &d));
  const CUDA_RESOURCE_DESC r = Resource(array);
  CUsurfObject surface = 0;
  MUST(Cu().cuSurfObjectCreate(&surface, &r));
  EXPECT_ANY_THROW(Run("suld.b.2d.b32.trap %o0, [%h, {%c0, %c1}];", surface, {{32, 0}}));
  EXPECT_NE(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

// ------------------------------------------------------------------------------------------------- handles

TEST_F(Textures, AHandleThatNamesNothingFailsItsContextAlone) {
  ONLY_OURS();
  for (uint64_t handle : {uint64_t{0}, uint64_t{1}, uint64_t{0x123456789abcdef0}, ~uint64_t{0}}) {
    CUcontext other = nullptr;
    MUST(Cu().cuCtxCreate_v2(&other, 0, 0));
    functions_.clear();
    EXPECT_ANY_THROW(Run("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%c0, %c1}];", handle, {{}}));
    EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    MUST(Cu().cuCtxDestroy_v2(other));
    EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
  }
}

TEST_F(Textures, WhatWasAskedForIsToldBack) {
  const Texels t(kFormats[1], 2, 12, 6, 1, 17);
  ArrayMemory array(Describe(t, 6, 0));
  CUDA_ARRAY_DESCRIPTOR said{};
  MUST(Cu().cuArrayGetDescriptor_v2(&said, array.handle));
  EXPECT_EQ(said.Width, 12u);
  EXPECT_EQ(said.Height, 6u);
  EXPECT_EQ(said.Format, CU_AD_FORMAT_UNSIGNED_INT16);
  EXPECT_EQ(said.NumChannels, 2u);
  Rules rules{2, {Address::kMirror, Address::kWrap, Address::kClamp}, true, false, {1, 2, 3, 4}};
  TextureHandle texture(Resource(array.handle), Describe(rules, true));
  CUDA_RESOURCE_DESC r{};
  MUST(Cu().cuTexObjectGetResourceDesc(&r, texture.handle));
  EXPECT_EQ(r.resType, CU_RESOURCE_TYPE_ARRAY);
  EXPECT_EQ(r.res.array.hArray, array.handle);
  CUDA_TEXTURE_DESC d{};
  MUST(Cu().cuTexObjectGetTextureDesc(&d, texture.handle));
  EXPECT_EQ(d.addressMode[0], CU_TR_ADDRESS_MODE_MIRROR);
  EXPECT_EQ(d.addressMode[1], CU_TR_ADDRESS_MODE_WRAP);
  EXPECT_EQ(d.flags, kNormalized | kAsInteger);
  EXPECT_EQ(d.borderColor[3], 4.0f);
}

TEST_F(Textures, WhatMakesNoArrayOrTextureIsRefused) {
  CUarray array = nullptr;
  const auto with = [](size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                       unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR a{};
    a.Width = w;
    a.Height = h;
    a.Depth = d;
    a.Format = format;
    a.NumChannels = channels;
    a.Flags = flags;
    return a;
  };
  const CUDA_ARRAY3D_DESCRIPTOR kWrong[] = {
      with(0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0),        with(4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0),
      with(4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0),        with(4, 4, 0, static_cast<CUarray_format>(5), 1, 0),
      with(8, 4, 6, CU_AD_FORMAT_FLOAT, 1, kCubemap), with(8, 8, 5, CU_AD_FORMAT_FLOAT, 1, kCubemap),
      with(1 << 20, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0),  with(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, kLayered),
      with(4, 4, 20000, CU_AD_FORMAT_FLOAT, 1, 0)};
  for (const auto& d : kWrong) EXPECT_EQ(Cu().cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuArray3DCreate_v2(&array, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(Cu().cuArrayDestroy(nullptr), CUDA_SUCCESS);
  const Texels t(kFormats[2], 1, 8, 4, 1, 18);
  ArrayMemory good(Describe(t, 4, 0));
  CUtexObject texture = 0;
  const CUDA_RESOURCE_DESC r = Resource(good.handle);
  CUDA_TEXTURE_DESC d{};
  EXPECT_EQ(Cu().cuTexObjectCreate(&texture, nullptr, &d, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuTexObjectCreate(&texture, &r, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuTexObjectDestroy(12345), CUDA_ERROR_INVALID_VALUE);
  // An array that was not made for surfaces is none.
  CUsurfObject surface = 0;
  EXPECT_EQ(Cu().cuSurfObjectCreate(&surface, &r), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Textures, ArraysTakeMemoryAndGiveItBack) {
  ONLY_OURS();
  const uint64_t before = FreeBytes();
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = d.Height = 2048;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 4;  // 64 MiB
  std::vector<CUarray> arrays;
  CUresult last = CUDA_SUCCESS;
  for (int i = 0; i < 64 && last == CUDA_SUCCESS; ++i) {
    CUarray array = nullptr;
    last = Cu().cuArray3DCreate_v2(&array, &d);
    if (last == CUDA_SUCCESS) arrays.push_back(array);
  }
  EXPECT_EQ(last, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arrays.size(), before >> 26);
  EXPECT_LE(FreeBytes(), before - arrays.size() * (uint64_t{64} << 20));
  for (CUarray array : arrays) EXPECT_EQ(Cu().cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
}

// --------------------------------------------------------------------------------------------- references

/// Kernels that name a texture and a surface by variables of their module.
constexpr const char* kReferences = R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .texref picture;
.visible .global .surfref canvas;
.visible .global .align 4 .u32 number = 5;
// out[i] = tex1D(picture, at), for one thread a texel
.visible .entry fetch(.param .u64 out, .param .f32 step)
{
  .reg .b32 %i; .reg .f32 %x, %s, %f<4>; .reg .b64 %out, %at;
  ld.param.u64 %out, [out]; ld.param.f32 %s, [step];
  mov.u32 %i, %tid.x; cvt.rn.f32.u32 %x, %i; mul.f32 %x, %x, %s;
  tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [picture, {%x}];
  mul.wide.u32 %at, %i, 4; add.u64 %out, %out, %at; st.global.f32 [%out], %f0;
  ret;
}
// the same, the variable's address in a register
.visible .entry fetch_through_address(.param .u64 out)
{
  .reg .b32 %i; .reg .f32 %f<4>; .reg .b64 %out, %at, %t;
  ld.param.u64 %out, [out]; mov.u32 %i, %tid.x; mov.u64 %t, picture;
  tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%i}];
  mul.wide.u32 %at, %i, 4; add.u64 %out, %out, %at; st.global.f32 [%out], %f0;
  ret;
}
.visible .entry paint(.param .u32 value)
{
  .reg .b32 %i, %v;
  ld.param.u32 %v, [value]; mov.u32 %i, %tid.x; add.u32 %v, %v, %i; shl.b32 %i, %i, 2;
  sust.b.1d.b32.trap [canvas, {%i}], %v;
  ret;
}
)";

TEST_F(Textures, ReferencesNameWhatTheyAreBoundTo) {
  ONLY_OURS();
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kReferences));
  CUfunction fetch = nullptr, through_address = nullptr;
  MUST(Cu().cuModuleGetFunction(&fetch, module, "fetch"));
  MUST(Cu().cuModuleGetFunction(&through_address, module, "fetch_through_address"));
  CUtexref picture = nullptr, again = nullptr, none = nullptr;
  MUST(Cu().cuModuleGetTexRef(&picture, module, "picture"));
  MUST(Cu().cuModuleGetTexRef(&again, module, "picture"));
  EXPECT_EQ(picture, again);
  EXPECT_EQ(Cu().cuModuleGetTexRef(&none, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(Cu().cuModuleGetTexRef(&none, module, "number"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(Cu().cuModuleGetTexRef(&none, module, "canvas"), CUDA_ERROR_NOT_FOUND);

  const Texels t(kFloats, 1, 16, 1, 1, 30), other(kFloats, 1, 16, 1, 1, 31);
  ArrayMemory array(Describe(t, 0, 0)), second(Describe(other, 0, 0));
  Fill(array.handle, t);
  Fill(second.handle, other);
  DeviceMemory out(64);
  MUST(Cu().cuTexRefSetArray(picture, array.handle, 1));
  MUST(Launch(fetch, 1, 16, nullptr, out.at, 1.0f));
  const auto fetched = Read<float>(out.at, 16);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(fetched[i], static_cast<float>(t.Value(i, 0, 0, 0, false))) << i;
  // Bound anew while nothing runs, kernels read the other; and as what is said of it.
  MUST(Cu().cuTexRefSetArray(picture, second.handle, 1));
  MUST(Cu().cuTexRefSetFilterMode(picture, CU_TR_FILTER_MODE_LINEAR));
  MUST(Cu().cuTexRefSetAddressMode(picture, 0, CU_TR_ADDRESS_MODE_WRAP));
  MUST(Cu().cuTexRefSetFlags(picture, kNormalized));
  MUST(Launch(fetch, 1, 16, nullptr, out.at, 0.09375f));
  const auto filtered = Read<float>(out.at, 16);
  Rules rules{1, {Address::kWrap, Address::kClamp, Address::kClamp}, true, true, {}};
  for (size_t i = 0; i < 16; ++i)
    ExpectNear(filtered[i],
               Fetched(other.AsPicture(false), rules, {0.09375 * static_cast<double>(i), 0, 0})[0],
               std::to_string(i));
  CUarray bound = nullptr;
  MUST(Cu().cuTexRefGetArray(&bound, picture));
  EXPECT_EQ(bound, second.handle);
  CUfilter_mode filter{};
  MUST(Cu().cuTexRefGetFilterMode(&filter, picture));
  EXPECT_EQ(filter, CU_TR_FILTER_MODE_LINEAR);
  CUaddress_mode mode{};
  MUST(Cu().cuTexRefGetAddressMode(&mode, picture, 0));
  EXPECT_EQ(mode, CU_TR_ADDRESS_MODE_WRAP);
  unsigned flags = 0;
  MUST(Cu().cuTexRefGetFlags(&flags, picture));
  EXPECT_EQ(flags, kNormalized);

  // Linear memory, and the reference by its address.
  DeviceMemory memory(64);
  Write(memory.at, t.bytes);
  MUST(Cu().cuTexRefSetFormat(picture, CU_AD_FORMAT_FLOAT, 1));
  size_t offset = 1;
  MUST(Cu().cuTexRefSetAddress_v2(&offset, picture, memory.at, 64));
  EXPECT_EQ(offset, 0u);
  MUST(Launch(through_address, 1, 16, nullptr, out.at));
  EXPECT_EQ(Read<uint8_t>(out.at, 64), t.bytes);
  CUdeviceptr address = 0;
  MUST(Cu().cuTexRefGetAddress_v2(&address, picture));
  EXPECT_EQ(address, memory.at);
  MUST(Cu().cuModuleUnload(module));
  EXPECT_EQ(Cu().cuTexRefSetFilterMode(picture, CU_TR_FILTER_MODE_POINT), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Textures, SurfaceReferences) {
  ONLY_OURS();
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kReferences));
  CUfunction paint = nullptr;
  MUST(Cu().cuModuleGetFunction(&paint, module, "paint"));
  CUsurfref canvas = nullptr;
  MUST(Cu().cuModuleGetSurfRef(&canvas, module, "canvas"));
  const Texels t(kFormats[2], 1, 8, 1, 1, 32);
  ArrayMemory array(Describe(t, 0, 0, kSurface)), plain(Describe(t, 0, 0));
  EXPECT_EQ(Cu().cuSurfRefSetArray(canvas, plain.handle, 0), CUDA_ERROR_INVALID_VALUE);
  MUST(Cu().cuSurfRefSetArray(canvas, array.handle, 0));
  MUST(Launch(paint, 1, 8, nullptr, 100u));
  MUST(Cu().cuCtxSynchronize());
  const auto bytes = Contents(array.handle, t);
  for (uint32_t i = 0; i < 8; ++i) {
    uint32_t v;
    memcpy(&v, &bytes[i * 4], 4);
    EXPECT_EQ(v, 100 + i);
  }
  CUarray bound = nullptr;
  MUST(Cu().cuSurfRefGetArray(&bound, canvas));
  EXPECT_EQ(bound, array.handle);
  MUST(Cu().cuModuleUnload(module));
}

TEST_F(Textures, AReferenceThatIsBoundToNothingFailsItsContext) {
  ONLY_OURS();
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kReferences));
  CUfunction fetch = nullptr;
  MUST(Cu().cuModuleGetFunction(&fetch, module, "fetch"));
  DeviceMemory out(64);
  MUST(Launch(fetch, 1, 1, nullptr, out.at, 1.0f));
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// -------------------------------------------------------------------------------------------------- copies

TEST_F(Textures, CopiesBetweenArraysAndEverythingElse) {
  const Texels t(kFormats[0], 4, 40, 12, 1, 19);
  ArrayMemory a(Describe(t, 12, 0)), b(Describe(t, 12, 0));
  Fill(a.handle, t);
  DeviceMemory memory(t.bytes.size());
  // A part of one to a part of the other.
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  c.srcArray = a.handle;
  c.srcXInBytes = 8;
  c.srcY = 3;
  c.dstArray = b.handle;
  c.dstXInBytes = 20;
  c.dstY = 1;
  c.WidthInBytes = 100;
  c.Height = 7;
  std::vector<uint8_t> expected(t.bytes.size());
  const Texels zero_like = t;
  {
    Texels zeros = t;
    std::fill(zeros.bytes.begin(), zeros.bytes.end(), 0);
    Fill(b.handle, zeros);
  }
  MUST(Cu().cuMemcpy2D_v2(&c));
  for (size_t y = 0; y < 7; ++y) memcpy(&expected[(y + 1) * 160 + 20], &t.bytes[(y + 3) * 160 + 8], 100);
  EXPECT_EQ(Contents(b.handle, t), expected);
  // Out to device memory, whole; in again, on a stream.
  Stream stream;
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = a.handle;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = memory.at;
  out.dstPitch = 160;
  out.WidthInBytes = 160;
  out.Height = 12;
  MUST(Cu().cuMemcpy2DAsync_v2(&out, stream));
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  in.srcDevice = memory.at;
  in.srcPitch = 160;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = b.handle;
  in.WidthInBytes = 160;
  in.Height = 12;
  MUST(Cu().cuMemcpy2DAsync_v2(&in, stream));
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(Read<uint8_t>(memory.at, t.bytes.size()), t.bytes);
  EXPECT_EQ(Contents(b.handle, t), t.bytes);
  // Beyond the array's end nothing is copied.
  in.dstXInBytes = 4;
  EXPECT_EQ(Cu().cuMemcpy2D_v2(&in), CUDA_ERROR_INVALID_VALUE);
  in.dstXInBytes = 0;
  in.dstY = 1;
  EXPECT_EQ(Cu().cuMemcpy2D_v2(&in), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Textures, CopiesOfRuns) {
  const Texels t(kFormats[2], 1, 64, 1, 1, 20);
  ArrayMemory a(Describe(t, 0, 0)), b(Describe(t, 0, 0));
  DeviceMemory memory(256);
  MUST(Cu().cuMemcpyHtoA_v2(a.handle, 0, t.bytes.data(), 256));
  std::vector<uint8_t> back(256);
  MUST(Cu().cuMemcpyAtoH_v2(back.data(), a.handle, 0, 256));
  EXPECT_EQ(back, t.bytes);
  MUST(Cu().cuMemcpyAtoA_v2(b.handle, 64, a.handle, 128, 128));
  MUST(Cu().cuMemcpyAtoD_v2(memory.at, b.handle, 64, 128));
  const auto part = Read<uint8_t>(memory.at, 128);
  EXPECT_EQ(part, std::vector<uint8_t>(t.bytes.begin() + 128, t.bytes.end()));
  MUST(Cu().cuMemcpyDtoA_v2(a.handle, 0, memory.at, 128));
  Stream stream;
  MUST(Cu().cuMemcpyAtoHAsync_v2(back.data(), a.handle, 0, 128, stream));
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), back.begin()));
  EXPECT_EQ(Cu().cuMemcpyAtoH_v2(back.data(), a.handle, 4, 256), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace cuplex::conformance
