#include "softcuda/jit/initial_bytes.h"

#include <bit>
#include <cstring>

#include "softcuda/jit/layout.h"

namespace cuplex::softcuda {
namespace {

using ptx::Initializer;
using ptx::Type;

class Filler {
 public:
  Filler(const ptx::Module& module, const ptx::Variable& variable, const std::vector<uintptr_t>& places)
      : module_(module), v_(variable), places_(places), bytes_(variable.SizeBytes()) {}

  Result<std::vector<std::byte>> Fill() {
    // What a reference is said to be like is for who binds it; at first it names nothing.
    const bool reference = v_.type == Type::kTexref || v_.type == Type::kSurfref;
    if (v_.initializer && !reference) TRY(Put(*v_.initializer, 0, bytes_.size(), 0));
    return std::move(bytes_);
  }

 private:
  /// Bytes of one element at brace depth `level`: level 0 is the whole variable.
  size_t SpanAt(size_t level) const {
    size_t element = ptx::BitsOf(v_.type) / 8;
    if (level > v_.dims.size()) return element;  // inside a vector
    size_t n = element * v_.vector;
    for (size_t i = level; i < v_.dims.size(); ++i) n *= v_.dims[i];
    return n;
  }

  Status Put(const Initializer& init, size_t at, size_t room, size_t level) {
    if (init.kind != Initializer::Kind::kList) return PutScalar(init, at, room);
    size_t step = SpanAt(level + 1);
    // A flat list may initialise what has several dimensions.
    bool flat = !init.parts.empty() && init.parts[0].kind != Initializer::Kind::kList;
    if (flat) step = ptx::BitsOf(v_.type) / 8;
    size_t end = at + room;
    for (const Initializer& part : init.parts) {
      size_t width = part.mask ? 1 : step;
      if (at + width > end) return TooMuch();
      TRY(Put(part, at, width, level + 1));
      at += width;
    }
    return {};
  }

  Status PutScalar(const Initializer& init, size_t at, size_t room) {
    uint64_t value = init.bits;
    size_t size = std::min(room, size_t{ptx::BitsOf(v_.type) / 8});
    switch (init.kind) {
      case Initializer::Kind::kFloat32:
        if (v_.type == Type::kF64) {
          value = std::bit_cast<uint64_t>(
              static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(init.bits))));
        }
        break;
      case Initializer::Kind::kFloat64:
        if (v_.type == Type::kF32) {
          value = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(init.bits)));
        }
        break;
      case Initializer::Kind::kInteger:
        if (v_.type == Type::kF32) {
          value = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(init.bits)));
        } else if (v_.type == Type::kF64) {
          value = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(init.bits)));
        }
        break;
      case Initializer::Kind::kAddress: {
        TRY(value, AddressOf(init));
        if (init.mask) {
          value = (value & init.mask) >> std::countr_zero(init.mask);
          size = 1;
        }
        break;
      }
      default:
        break;
    }
    if (at + size > bytes_.size()) return TooMuch();
    std::memcpy(bytes_.data() + at, &value, std::min<size_t>(size, 8));
    return {};
  }

  Result<uint64_t> AddressOf(const Initializer& init) {
    if (init.symbol == ptx::SymbolKind::kFunction) return ModuleLayout::FunctionToken(init.id);
    if (init.symbol == ptx::SymbolKind::kGlobalVariable) {
      const ptx::Variable& of = module_.variables[init.id];
      if (of.space == ptx::Space::kGlobal || of.space == ptx::Space::kConst)
        return places_[init.id] + init.bits;
      return Fail(Blame::kUnsupported,
                  "line {}: variable `{}` holds the address of `{}`, which has none before a launch",
                  v_.place.line, v_.name, of.name);
    }
    return Fail(Blame::kUnsupported, "line {}: variable `{}` holds the address of something that has none",
                v_.place.line, v_.name);
  }

  Error TooMuch() const {
    return Fail(Blame::kCaller, "line {}: variable `{}` has {} bytes and is initialised with more",
                v_.place.line, v_.name, bytes_.size());
  }

  const ptx::Module& module_;
  const ptx::Variable& v_;
  const std::vector<uintptr_t>& places_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<std::vector<std::byte>> BytesOf(const ptx::Module& module, uint32_t variable,
                                       const std::vector<uintptr_t>& places) {
  return Filler(module, module.variables[variable], places).Fill();
}

}  // namespace cuplex::softcuda
