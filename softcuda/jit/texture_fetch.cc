#include "softcuda/jit/texture_fetch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace cuplex::softcuda {
namespace {

using Kind = TexelFormat::Kind;

constexpr double kFar = 1099511627776.0;  // beyond every extent, and an integer in int64_t

float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

/// A coordinate as an integer that no arithmetic here overflows; NaN is 0.
double Bounded(double u) { return u != u ? 0 : std::clamp(u, -kFar, kFar); }

// ------------------------------------------------------------------------------------------------- texels

template <typename T>
T Load(uint64_t at) {
  T v;
  std::memcpy(&v, reinterpret_cast<const void*>(at), sizeof(T));
  return v;
}

float SrgbToLinear(float c) { return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f); }

/// Channel `i` at that address as 32 bits of result.
uint32_t Channel(const TextureHeader& t, uint64_t at, unsigned i) {
  const TexelFormat& f = t.format;
  at += uint64_t{i} * f.channel_bytes;
  switch (f.kind) {
    case Kind::kFloat:
      return f.channel_bytes == 4 ? Load<uint32_t>(at)
                                  : BitsOf(static_cast<float>(std::bit_cast<_Float16>(Load<uint16_t>(at))));
    case Kind::kUnsigned: {
      if (f.channel_bytes == 4) return Load<uint32_t>(at);
      const uint32_t v = f.channel_bytes == 1 ? Load<uint8_t>(at) : Load<uint16_t>(at);
      if (!t.as_float) return v;
      const float fraction = static_cast<float>(v) / (f.channel_bytes == 1 ? 255.0f : 65535.0f);
      return BitsOf(t.srgb && f.channel_bytes == 1 && i < 3 ? SrgbToLinear(fraction) : fraction);
    }
    case Kind::kSigned: {
      if (f.channel_bytes == 4) return Load<uint32_t>(at);
      const int32_t v = f.channel_bytes == 1 ? Load<int8_t>(at) : Load<int16_t>(at);
      if (!t.as_float) return static_cast<uint32_t>(v);
      return BitsOf(std::max(static_cast<float>(v) / (f.channel_bytes == 1 ? 127.0f : 32767.0f), -1.0f));
    }
  }
  return 0;
}

bool ReadsFloats(const TextureHeader& t) { return t.format.kind == Kind::kFloat || t.as_float; }

/// Channels that a format does not have read as 0, the fourth as 1.
Texel Missing(const TextureHeader& t) { return Texel{0, 0, 0, ReadsFloats(t) ? BitsOf(1.0f) : 1u}; }

Texel TexelAt(const TextureHeader& t, uint64_t at) {
  Texel out = Missing(t);
  for (unsigned i = 0; i < t.format.channels; ++i) out[i] = Channel(t, at, i);
  return out;
}

Texel Border(const TextureHeader& t) {
  if (t.buffer) return Texel{};
  Texel out;
  const auto& color = t.sampler.border;
  for (unsigned i = 0; i < 4; ++i) {
    if (ReadsFloats(t)) {
      out[i] = BitsOf(color[i]);
    } else {  // given as a float, read as the texture's integers
      const double v = color[i] != color[i] ? 0 : std::clamp<double>(color[i], -2147483648.0, 4294967295.0);
      out[i] = static_cast<uint32_t>(static_cast<int64_t>(v));
    }
  }
  return out;
}

// --------------------------------------------------------------------------------------------- addressing

/// The texel that index `i` means on an axis of `n`; -1 for the border.
int64_t Resolve(int64_t i, int64_t n, AddressMode mode, bool normalized) {
  if (i >= 0 && i < n) return i;
  // Wrapping and mirroring are for normalised coordinates alone; others are clamped instead.
  if (!normalized && mode != AddressMode::kBorder) mode = AddressMode::kClamp;
  switch (mode) {
    case AddressMode::kWrap:
      i %= n;
      return i < 0 ? i + n : i;
    case AddressMode::kMirror:
      i %= 2 * n;
      if (i < 0) i += 2 * n;
      return i < n ? i : 2 * n - 1 - i;
    case AddressMode::kBorder:
      return -1;
    case AddressMode::kClamp:
      break;
  }
  return std::clamp<int64_t>(i, 0, n - 1);
}

/// The texels of one axis that a fetch weighs: `first` by 1 - weight, `second` by weight.
struct Axis {
  int64_t first = 0, second = 0;  // as Resolve gives them
  int64_t index = 0;              // before that, of the first
  double weight = 0;
};

Axis PointOn(double u, int offset, int64_t n, AddressMode mode, bool normalized) {
  Axis axis;
  axis.index = static_cast<int64_t>(std::floor(Bounded(u))) + offset;
  axis.first = axis.second = Resolve(axis.index, n, mode, normalized);
  return axis;
}

Axis LinearOn(double u, int offset, int64_t n, AddressMode mode, bool normalized) {
  Axis axis;
  // In steps of 1/256 of a texel, rounded to the nearest.
  const auto fixed = static_cast<int64_t>(std::floor((Bounded(u) - 0.5) * 256 + 0.5));
  axis.index = (fixed >> 8) + offset;
  axis.first = Resolve(axis.index, n, mode, normalized);
  axis.second = Resolve(axis.index + 1, n, mode, normalized);
  axis.weight = static_cast<double>(fixed & 255) / 256;
  return axis;
}

/// Coordinates made ready: what a level's extent still has to be applied to.
struct Location {
  std::array<double, 3> u = {};
  unsigned axes = 1;
  bool normalized = false;
  bool filtered = false;
  int64_t plane = 0;  // layer and face
  std::array<int, 3> offset = {};
};

/// The faces of a cube: which coordinate is the major one, and what the other two are on it.
void OnCube(const std::array<double, 3>& c, int64_t* face, std::array<double, 3>* u) {
  const double x = c[0], y = c[1], z = c[2], ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  double m, s, t;
  if (ax >= ay && ax >= az) {
    *face = x >= 0 ? 0 : 1;
    m = ax;
    s = x >= 0 ? -z : z;
    t = -y;
  } else if (ay >= az) {
    *face = y >= 0 ? 2 : 3;
    m = ay;
    s = x;
    t = y >= 0 ? z : -z;
  } else {
    *face = z >= 0 ? 4 : 5;
    m = az;
    s = z >= 0 ? x : -x;
    t = -y;
  }
  (*u)[0] = m > 0 ? (s / m + 1) / 2 : 0.5;
  (*u)[1] = m > 0 ? (t / m + 1) / 2 : 0.5;
  (*u)[2] = 0;
}

/// And back: a point on a face, or beside it in its plane, as a direction.
std::array<double, 3> Direction(int64_t face, double u, double v) {
  const double s = 2 * u - 1, t = 2 * v - 1;
  switch (face) {
    case 0:
      return {1, -t, -s};
    case 1:
      return {-1, -t, s};
    case 2:
      return {s, 1, t};
    case 3:
      return {s, -1, -t};
    case 4:
      return {s, -t, 1};
    default:
      return {-s, -t, -1};
  }
}

Location Locate(const TextureHeader& t, const TexturePlace& place) {
  Location out;
  const TextureMode mode = place.mode;
  std::array<double, 3> c;
  for (unsigned i = 0; i < 3; ++i) {
    c[i] = mode.integers() ? static_cast<double>(static_cast<int32_t>(place.at[i]))
                           : static_cast<double>(FloatOf(place.at[i]));
    out.offset[i] = mode.offset(i);
  }
  // Integers name texels; nothing is between them.
  out.normalized = t.sampler.normalized && !mode.integers();
  out.filtered = t.sampler.linear && !mode.integers() && ReadsFloats(t);
  const int64_t layers = t.layers, layer = place.layer;
  switch (mode.geometry()) {
    case TextureGeometry::kLayered1D:
      out.plane = std::min(layer, layers - 1);
      [[fallthrough]];
    case TextureGeometry::k1D:
      out.axes = 1;
      break;
    case TextureGeometry::kLayered2D:
      out.plane = std::min(layer, layers - 1);
      [[fallthrough]];
    case TextureGeometry::k2D:
      out.axes = 2;
      break;
    case TextureGeometry::k3D:
      out.axes = 3;
      break;
    case TextureGeometry::kCube:
    case TextureGeometry::kLayeredCube: {
      int64_t face;
      for (double& each : c) each = Bounded(each);
      std::array<double, 3> on;
      OnCube(c, &face, &on);
      c = on;
      const int64_t cubes = std::max<int64_t>(layers / 6, 1);
      const int64_t cube = mode.geometry() == TextureGeometry::kCube ? 0 : std::min(layer, cubes - 1);
      out.plane = std::min(cube * 6 + face, layers - 1);
      out.axes = 2;
      out.normalized = true;
      break;
    }
  }
  out.u = c;
  return out;
}

uint64_t AddressOf(const TextureHeader& t, const TextureLevel& level, int64_t x, int64_t y, int64_t plane) {
  return level.base + static_cast<uint64_t>(plane) * level.plane_pitch +
         static_cast<uint64_t>(y) * level.row_pitch + static_cast<uint64_t>(x) * t.format.bytes();
}

/// A texel of a cube's face; one beside the face lies on the face that is there, where faces are joined.
Texel CubeTexel(const TextureHeader& t, const TextureLevel& level, int64_t plane, int64_t i, int64_t j,
                bool joined) {
  const int64_t n = level.width;
  const bool outside = i < 0 || j < 0 || i >= n || j >= n;
  if (outside && joined) {
    int64_t face;
    std::array<double, 3> on;
    const double side = static_cast<double>(n);
    OnCube(Direction(plane % 6, (static_cast<double>(i) + 0.5) / side, (static_cast<double>(j) + 0.5) / side),
           &face, &on);
    plane = plane - plane % 6 + face;
    i = static_cast<int64_t>(on[0] * side);
    j = static_cast<int64_t>(on[1] * side);
  }
  i = std::clamp<int64_t>(i, 0, n - 1);
  j = std::clamp<int64_t>(j, 0, level.height - 1);
  return TexelAt(t, AddressOf(t, level, i, j, std::min<int64_t>(plane, t.layers - 1)));
}

/// The texels around a location on one level, ready to be read.
struct Footprint {
  std::array<Axis, 3> axis;
};

Footprint FootprintOf(const TextureHeader& t, const TextureLevel& level, const Location& where, bool linear) {
  Footprint out;
  const uint32_t extents[3] = {level.width, level.height, level.depth};
  for (unsigned i = 0; i < where.axes; ++i) {
    const int64_t n = extents[i];
    const double u = where.normalized ? where.u[i] * static_cast<double>(n) : where.u[i];
    // Linear memory ends where it ends.
    const AddressMode mode = t.buffer ? AddressMode::kBorder : t.sampler.address[i];
    out.axis[i] = linear ? LinearOn(u, where.offset[i], n, mode, where.normalized)
                         : PointOn(u, where.offset[i], n, mode, where.normalized);
  }
  return out;
}

/// The texel at one corner of a footprint: bit n of `corner` takes the second texel of axis n.
Texel Corner(const TextureHeader& t, const TextureLevel& level, const Location& where, const Footprint& f,
             unsigned corner) {
  auto at = [&](unsigned i) { return corner >> i & 1 ? f.axis[i].second : f.axis[i].first; };
  if (t.cubemap && where.axes == 2)
    return CubeTexel(t, level, where.plane, f.axis[0].index + (corner & 1),
                     f.axis[1].index + (corner >> 1 & 1), t.seamless && where.filtered);
  const int64_t x = at(0), y = at(1), z = at(2);
  if (x < 0 || y < 0 || z < 0) return Border(t);
  return TexelAt(t, AddressOf(t, level, x, y, where.axes == 3 ? z : where.plane));
}

Texel Sample(const TextureHeader& t, const Location& where, unsigned n) {
  const TextureLevel& level = t.level[std::min(n, t.levels - 1)];
  if (!where.filtered) return Corner(t, level, where, FootprintOf(t, level, where, false), 0);
  const Footprint f = FootprintOf(t, level, where, true);
  double sum[4] = {};
  for (unsigned corner = 0; corner < 1u << where.axes; ++corner) {
    double weight = 1;
    for (unsigned i = 0; i < where.axes; ++i)
      weight *= corner >> i & 1 ? f.axis[i].weight : 1 - f.axis[i].weight;
    // A texel without weight is not read, so that infinities beside the footprint do no harm.
    if (weight == 0) continue;
    const Texel texel = Corner(t, level, where, f, corner);
    for (unsigned i = 0; i < 4; ++i) sum[i] += weight * static_cast<double>(FloatOf(texel[i]));
  }
  Texel out;
  for (unsigned i = 0; i < 4; ++i) out[i] = BitsOf(static_cast<float>(sum[i]));
  return out;
}

/// `level` before bias and bounds.
Texel SampleBetween(const TextureHeader& t, const Location& where, double level) {
  const Sampler& s = t.sampler;
  level = Bounded(level) + static_cast<double>(s.level_bias);
  const double last = static_cast<double>(t.levels - 1);
  level = std::max(std::min(Bounded(level), static_cast<double>(s.most_level)),
                   static_cast<double>(s.least_level));
  level = std::clamp(Bounded(level), 0.0, last);
  if (!s.linear_levels || !ReadsFloats(t)) return Sample(t, where, static_cast<unsigned>(level + 0.5));
  const auto fixed = static_cast<unsigned>(level * 256 + 0.5);
  const unsigned first = fixed >> 8;
  const double weight = static_cast<double>(fixed & 255) / 256;
  const Texel a = Sample(t, where, first);
  if (weight == 0) return a;
  const Texel b = Sample(t, where, first + 1);
  Texel out;
  for (unsigned i = 0; i < 4; ++i)
    out[i] = BitsOf(static_cast<float>((1 - weight) * static_cast<double>(FloatOf(a[i])) +
                                       weight * static_cast<double>(FloatOf(b[i]))));
  return out;
}

}  // namespace

Texel Fetch(const TextureHeader& t, const TexturePlace& place) { return Sample(t, Locate(t, place), 0); }

Texel FetchLevel(const TextureHeader& t, const TexturePlace& place, float level) {
  return SampleBetween(t, Locate(t, place), static_cast<double>(level));
}

Texel FetchGradient(const TextureHeader& t, const TexturePlace& place, const std::array<float, 3>& dx,
                    const std::array<float, 3>& dy) {
  const Location where = Locate(t, place);
  const TextureLevel& first = t.level[0];
  const double extents[3] = {static_cast<double>(first.width), static_cast<double>(first.height),
                             static_cast<double>(first.depth)};
  double longest = 0;
  for (const auto* step : {&dx, &dy}) {
    double square = 0;
    for (unsigned i = 0; i < where.axes; ++i) {
      const double texels = static_cast<double>((*step)[i]) * (where.normalized ? extents[i] : 1);
      square += texels * texels;
    }
    longest = std::max(longest, square);
  }
  return SampleBetween(t, where, longest > 0 ? std::log2(longest) / 2 : 0);
}

Texel Gather(const TextureHeader& t, const TexturePlace& place) {
  const Location where = Locate(t, place);
  const TextureLevel& level = t.level[0];
  const Footprint f = FootprintOf(t, level, where, true);
  const unsigned component = place.mode.component();
  Texel out;
  constexpr unsigned kCorners[4] = {2, 3, 1, 0};
  for (unsigned i = 0; i < 4; ++i) out[i] = Corner(t, level, where, f, kCorners[i])[component];
  return out;
}

uint32_t Query(const TextureHeader& t, TextureQuery query, uint32_t n) {
  const TextureLevel& level = t.level[std::min(n, t.levels - 1)];
  switch (query) {
    case TextureQuery::kWidth:
      return level.width;
    case TextureQuery::kHeight:
      return level.height;
    case TextureQuery::kDepth:
      return level.depth;
    case TextureQuery::kChannelDataType:
      return t.array_format;
    case TextureQuery::kChannelOrder:
      return t.format.channels;
    case TextureQuery::kNormalizedCoords:
      return t.sampler.normalized;
    case TextureQuery::kArraySize:
      return t.cubemap ? std::max(t.layers / 6, 1u) : t.layers;
    case TextureQuery::kLevels:
      return t.levels;
    case TextureQuery::kSamples:
      return 1;
    case TextureQuery::kFilterMode:
      return t.sampler.linear;
    case TextureQuery::kAddressMode0:
    case TextureQuery::kAddressMode1:
    case TextureQuery::kAddressMode2:
      return static_cast<uint32_t>(t.sampler.address[static_cast<unsigned>(query) -
                                                     static_cast<unsigned>(TextureQuery::kAddressMode0)]);
    case TextureQuery::kMemoryLayout:
      return 0;
  }
  return 0;
}

// ----------------------------------------------------------------------------------------------- surfaces

uint64_t SurfaceAddress(const TextureHeader& s, SurfaceMode mode, uint32_t layer,
                        const std::array<int32_t, 3>& at) {
  const TextureLevel& level = s.level[0];
  const TextureGeometry g = mode.geometry();
  const bool clamps = mode.bounds() == SurfaceBounds::kClamp;
  // Index `i` among `n`, or -1.
  auto within = [&](int64_t i, int64_t n) -> int64_t {
    if (i >= 0 && i < n) return i;
    return clamps ? std::clamp<int64_t>(i, 0, n - 1) : -1;
  };
  const int64_t row = int64_t{level.width} * s.format.bytes(), bytes = mode.bytes();
  if (bytes > row) return 0;
  // Accesses start at multiples of their own size.
  int64_t x = int64_t{at[0]} * (mode.texels() ? s.format.bytes() : 1);
  if (x >= 0 && !mode.texels()) x = x / bytes * bytes;
  if (x < 0 || x > row - bytes) {
    if (!clamps) return 0;
    x = x < 0 ? 0 : (row - bytes) / bytes * bytes;
  }
  int64_t y = 0, plane = 0;
  if (g == TextureGeometry::k2D || g == TextureGeometry::k3D || g == TextureGeometry::kLayered2D)
    y = within(at[1], level.height);
  if (g == TextureGeometry::k3D) plane = within(at[2], level.depth);
  if (g == TextureGeometry::kLayered1D || g == TextureGeometry::kLayered2D)
    plane = within(static_cast<int64_t>(layer), s.layers);
  if (y < 0 || plane < 0) return 0;
  return level.base + static_cast<uint64_t>(plane) * level.plane_pitch +
         static_cast<uint64_t>(y) * level.row_pitch + static_cast<uint64_t>(x);
}

unsigned EncodeTexel(const TextureHeader& s, Texel values, std::byte* out) {
  const TexelFormat& f = s.format;
  for (unsigned i = 0; i < f.channels; ++i) {
    uint32_t bits = values[i];
    if (f.normalized) {
      const double most = f.kind == Kind::kUnsigned ? (f.channel_bytes == 1 ? 255 : 65535)
                                                    : (f.channel_bytes == 1 ? 127 : 32767);
      const double v = static_cast<double>(FloatOf(bits));
      const double bounded = v != v ? 0 : std::clamp(v, f.kind == Kind::kUnsigned ? 0.0 : -1.0, 1.0);
      bits = static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(bounded * most)));
    } else if (f.kind == Kind::kFloat) {
      if (f.channel_bytes == 2) bits = std::bit_cast<uint16_t>(static_cast<_Float16>(FloatOf(bits)));
    } else if (f.kind == Kind::kUnsigned && f.channel_bytes < 4) {
      bits = std::min<uint32_t>(bits, f.channel_bytes == 1 ? 255 : 65535);
    } else if (f.kind == Kind::kSigned && f.channel_bytes < 4) {
      const int32_t most = f.channel_bytes == 1 ? 127 : 32767;
      bits = static_cast<uint32_t>(std::clamp(static_cast<int32_t>(bits), -most - 1, most));
    }
    std::memcpy(out + i * f.channel_bytes, &bits, f.channel_bytes);
  }
  return f.bytes();
}

}  // namespace cuplex::softcuda
