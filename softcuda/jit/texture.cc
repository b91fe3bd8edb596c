// tex tld4 txq suld sust sured suq: textures and surfaces. Each instruction is a call of the runtime
// (runtime_texture.cc), which finds out what the handle names.
//
// A texture or surface is named by a 64-bit register with a handle in it, or with the address of a reference
// variable, or by the variable itself. A variable of type .texref or .surfref is 8 bytes of memory that hold
// the handle of what it is bound to.
#include <optional>
#include <span>

#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/texture_fetch.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

std::optional<TextureGeometry> GeometryOf(const Instruction& in) {
  constexpr std::pair<Mod, TextureGeometry> kAll[] = {{Mod::kD1, TextureGeometry::k1D},
                                                      {Mod::kD2, TextureGeometry::k2D},
                                                      {Mod::kD3, TextureGeometry::k3D},
                                                      {Mod::kA1d, TextureGeometry::kLayered1D},
                                                      {Mod::kA2d, TextureGeometry::kLayered2D},
                                                      {Mod::kCube, TextureGeometry::kCube},
                                                      {Mod::kAcube, TextureGeometry::kLayeredCube}};
  for (auto [mod, geometry] : kAll)
    if (in.Has(mod)) return geometry;
  return std::nullopt;
}

bool Layered(TextureGeometry g) {
  return g == TextureGeometry::kLayered1D || g == TextureGeometry::kLayered2D ||
         g == TextureGeometry::kLayeredCube;
}

size_t AxesOf(TextureGeometry g) {
  switch (g) {
    case TextureGeometry::k1D:
    case TextureGeometry::kLayered1D:
      return 1;
    case TextureGeometry::k2D:
    case TextureGeometry::kLayered2D:
      return 2;
    default:
      return 3;
  }
}

/// The scalars of a vector operand; a scalar is a vector of one.
std::span<const Operand> PartsOf(const Operand& op) {
  if (op.kind == OperandKind::kVector) return op.parts;
  return {&op, 1};
}

/// The handle that `[name, ...]` names.
Result<Value*> HandleOf(Emitter& e, const Instruction& in, const Operand& name) {
  if (name.kind != OperandKind::kAddress || name.base == ptx::BaseKind::kNone)
    return e.Refuse(in, "needs a register or a variable that names a texture or surface");
  if (name.base == ptx::BaseKind::kRegister) {
    Operand reg = Operand::Register(name.id);
    TRY(Value * handle, e.Read(in, reg, Type::kB64));
    return name.bits ? e.ir.CreateAdd(handle, e.I64(name.bits)) : handle;
  }
  TRY(Value * at, e.SymbolValue(in, name));
  auto* load = e.ir.CreateAlignedLoad(e.Int(64), e.ir.CreateIntToPtr(at, e.ir.getPtrTy()), llvm::Align(8));
  e.MarkProgramAccess(load);
  return load;
}

/// `[name, coordinates]` taken apart; in independent mode a sampler stands between.
struct Named {
  const Operand* name = nullptr;
  const Operand* sampler = nullptr;
  const Operand* coordinates = nullptr;
};
Result<Named> TakeApart(Emitter& e, const Instruction& in, const Operand& op) {
  if (op.kind != OperandKind::kTexture || op.parts.size() < 2 || op.parts.size() > 3)
    return e.Refuse(in, "needs a texture or surface and its coordinates in brackets");
  Named out;
  out.name = &op.parts.front();
  out.coordinates = &op.parts.back();
  if (op.parts.size() == 3) out.sampler = &op.parts[1];
  return out;
}

/// What every call begins with: the record, the handle, the mode, the layer, three coordinates.
struct Call {
  std::vector<Value*> args;
};
Result<Call> Begin(Emitter& e, const Instruction& in, const Named& named, TextureGeometry g, Type coordinate,
                   uint32_t mode) {
  if (named.sampler) {
    return e.Refuse(in, "has a sampler of its own (texmode_independent), which softcuda does not support");
  }
  std::span<const Operand> parts = PartsOf(*named.coordinates);
  const size_t first = Layered(g) ? 1 : 0, axes = AxesOf(g);
  if (parts.size() < first + axes) return e.Refuse(in, fmt::format("needs {} coordinates", first + axes));
  TRY(Value * handle, HandleOf(e, in, *named.name));
  Value* layer = e.I32(0);
  if (first) {
    TRY(layer, e.Read(in, parts[0], Type::kB32));
  }
  Call call{{e.lane(), handle, e.I32(mode), layer}};
  for (size_t i = 0; i < 3; ++i) {
    Value* v = e.I32(0);
    if (i < axes) {
      TRY(v, e.Read(in, parts[first + i], coordinate));
      v = e.ToBits(v);
    }
    call.args.push_back(v);
  }
  return call;
}

llvm::Type* TexelType(Emitter& e) { return llvm::FixedVectorType::get(e.Int(32), 4); }

/// A call that reads memory and may fault, and does nothing else.
Value* Reads(Emitter& e, const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  auto* call = llvm::cast<llvm::CallInst>(e.CallRuntime(name, result, args));
  call->setOnlyReadsMemory();
  return call;
}

/// Writes results to `{a, b, c, d}` or `{a, b, c, d}|p`.
Status WriteTexel(Emitter& e, const Instruction& in, Type type, Value* texel) {
  const Operand* to = &in.operands[0];
  if (to->kind == OperandKind::kPair) {
    // Whether the texel is there: all are.
    TRY(e.Write(in, to->parts[1], e.ir.getTrue()));
    to = &to->parts[0];
  }
  std::span<const Operand> parts = PartsOf(*to);
  auto element = [&](uint64_t i) { return e.ir.CreateExtractElement(texel, i); };
  auto half = [&](uint64_t i) {
    return e.FloatToHalf(e.ir.CreateBitCast(element(i), e.ir.getFloatTy()), Type::kF16);
  };
  if (type == Type::kF16x2) {
    if (parts.size() > 2) return e.Refuse(in, "has more results than a texel has");
    for (size_t i = 0; i < parts.size(); ++i) {
      Value* both = llvm::PoisonValue::get(llvm::FixedVectorType::get(e.ir.getHalfTy(), 2));
      both = e.ir.CreateInsertElement(both, half(2 * i), uint64_t{0});
      both = e.ir.CreateInsertElement(both, half(2 * i + 1), uint64_t{1});
      TRY(e.Write(in, parts[i], e.ToBits(both)));
    }
    return {};
  }
  if (parts.size() > 4) return e.Refuse(in, "has more results than a texel has");
  for (size_t i = 0; i < parts.size(); ++i)
    TRY(e.Write(in, parts[i], type == Type::kF16 ? e.ToBits(half(i)) : element(i)));
  return {};
}

Status CheckTypes(Emitter& e, const Instruction& in) {
  const Type result = in.TypeAt(0), coordinate = in.TypeAt(1);
  const bool results = result == Type::kU32 || result == Type::kS32 || result == Type::kF32 ||
                       result == Type::kF16 || result == Type::kF16x2;
  if (in.TypeCount() != 2 || !results || (coordinate != Type::kF32 && coordinate != Type::kS32))
    return e.Refuse(in, "has types that PTX does not give it");
  return {};
}

/// The constant texels that an operand after the coordinates moves them by.
Status SetOffsets(Emitter& e, const Instruction& in, const Operand& op, TextureMode* mode) {
  std::span<const Operand> parts = PartsOf(op);
  for (unsigned i = 0; i < parts.size() && i < 3; ++i) {
    if (parts[i].kind != OperandKind::kInteger || parts[i].offset() < -8 || parts[i].offset() > 7)
      return e.Refuse(in, "moves its coordinates by other than constants from -8 to 7");
    mode->SetOffset(i, static_cast<int>(parts[i].offset()));
  }
  return {};
}

}  // namespace

Status EmitTex(Emitter& e, const Instruction& in) {
  TRY(CheckTypes(e, in));
  auto geometry = GeometryOf(in);
  if (!geometry) return e.Refuse(in, "has a geometry that softcuda does not support");
  const bool level = in.Has(Mod::kLevel), grad = in.Has(Mod::kGrad);
  const size_t needed = 2 + (level ? 1 : grad ? 2 : 0);
  if (in.operands.size() < needed || in.operands.size() > needed + 1)
    return e.Refuse(in, "compares depths or has operands that softcuda does not take");
  TextureMode mode = TextureMode::Make(*geometry, in.TypeAt(1) == Type::kS32);
  if (in.operands.size() > needed) {
    const Operand& last = in.operands[needed];
    if (last.kind != OperandKind::kVector && last.kind != OperandKind::kInteger)
      return e.Refuse(in, "compares depths, which softcuda does not support");
    TRY(SetOffsets(e, in, last, &mode));
  }
  TRY(Named named, TakeApart(e, in, in.operands[1]));
  TRY(Call call, Begin(e, in, named, *geometry, in.TypeAt(1), mode.bits));
  if (level) {
    TRY(Value * v, e.Read(in, in.operands[2], in.TypeAt(1)));
    if (in.TypeAt(1) == Type::kS32) v = e.ir.CreateSIToFP(v, e.ir.getFloatTy());
    call.args.push_back(v);
    return WriteTexel(e, in, in.TypeAt(0), Reads(e, "cuplex_tex_level", TexelType(e), call.args));
  }
  if (grad) {
    for (size_t operand : {2, 3}) {
      std::span<const Operand> parts = PartsOf(in.operands[operand]);
      for (size_t i = 0; i < 3; ++i) {
        Value* v = llvm::ConstantFP::get(e.ir.getFloatTy(), 0.0);
        if (i < AxesOf(*geometry)) {
          if (i >= parts.size()) return e.Refuse(in, "needs a gradient for each coordinate");
          TRY(v, e.Read(in, parts[i], Type::kF32));
        }
        call.args.push_back(v);
      }
    }
    return WriteTexel(e, in, in.TypeAt(0), Reads(e, "cuplex_tex_grad", TexelType(e), call.args));
  }
  return WriteTexel(e, in, in.TypeAt(0), Reads(e, "cuplex_tex", TexelType(e), call.args));
}

Status EmitTld4(Emitter& e, const Instruction& in) {
  TRY(CheckTypes(e, in));
  auto geometry = GeometryOf(in);
  if (!geometry || AxesOf(*geometry) < 2 || *geometry == TextureGeometry::k3D)
    return e.Refuse(in, "has a geometry that softcuda does not support");
  if (in.TypeAt(1) != Type::kF32) return e.Refuse(in, "has types that PTX does not give it");
  unsigned component = in.Has(Mod::kG) ? 1 : in.Has(Mod::kB) ? 2 : in.Has(Mod::kA) ? 3 : 0;
  TextureMode mode = TextureMode::Make(*geometry, false, component);
  if (in.operands.size() < 2 || in.operands.size() > 3)
    return e.Refuse(in, "compares depths or has operands that softcuda does not take");
  if (in.operands.size() == 3) {
    if (in.operands[2].kind != OperandKind::kVector)
      return e.Refuse(in, "compares depths, which softcuda does not support");
    TRY(SetOffsets(e, in, in.operands[2], &mode));
  }
  TRY(Named named, TakeApart(e, in, in.operands[1]));
  TRY(Call call, Begin(e, in, named, *geometry, Type::kF32, mode.bits));
  return WriteTexel(e, in, in.TypeAt(0), Reads(e, "cuplex_tld4", TexelType(e), call.args));
}

Status EmitTextureQuery(Emitter& e, const Instruction& in) {
  constexpr std::pair<Mod, TextureQuery> kAll[] = {{Mod::kWidth, TextureQuery::kWidth},
                                                   {Mod::kHeight, TextureQuery::kHeight},
                                                   {Mod::kDepth, TextureQuery::kDepth},
                                                   {Mod::kChannelDataType, TextureQuery::kChannelDataType},
                                                   {Mod::kChannelOrder, TextureQuery::kChannelOrder},
                                                   {Mod::kNormalizedCoords, TextureQuery::kNormalizedCoords},
                                                   {Mod::kArraySize, TextureQuery::kArraySize},
                                                   {Mod::kNumMipmapLevels, TextureQuery::kLevels},
                                                   {Mod::kNumSamples, TextureQuery::kSamples},
                                                   {Mod::kFilterMode, TextureQuery::kFilterMode},
                                                   {Mod::kAddrMode0, TextureQuery::kAddressMode0},
                                                   {Mod::kAddrMode1, TextureQuery::kAddressMode1},
                                                   {Mod::kAddrMode2, TextureQuery::kAddressMode2},
                                                   {Mod::kMemoryLayout, TextureQuery::kMemoryLayout}};
  std::optional<TextureQuery> query;
  for (auto [mod, each] : kAll)
    if (in.Has(mod)) query = each;
  const bool level = in.Has(Mod::kLevel);
  if (!query || in.operands.size() != (level ? 3u : 2u))
    return e.Refuse(in, "asks for something that softcuda does not know of");
  TRY(Value * handle, HandleOf(e, in, in.operands[1]));
  std::vector<Value*> args = {e.lane(), handle, e.I32(static_cast<uint32_t>(*query))};
  Value* answer;
  if (in.opcode == Opcode::kSuq) {
    answer = Reads(e, "cuplex_suq", e.Int(32), args);
  } else {
    Value* n = e.I32(0);
    if (level) {
      TRY(n, e.Read(in, in.operands[2], Type::kB32));
    }
    args.push_back(n);
    answer = Reads(e, "cuplex_txq", e.Int(32), args);
  }
  return e.Write(in, in.operands[0], answer);
}

// ----------------------------------------------------------------------------------------------- surfaces

namespace {

struct SurfaceShape {
  TextureGeometry geometry;
  unsigned width = 1;  // elements
  unsigned bits = 32;  // of one
  SurfaceMode mode;
};

Result<SurfaceShape> ShapeOf(Emitter& e, const Instruction& in) {
  auto geometry = GeometryOf(in);
  if (!geometry || *geometry == TextureGeometry::kCube || *geometry == TextureGeometry::kLayeredCube)
    return e.Refuse(in, "has a geometry that softcuda does not support");
  if (in.TypeCount() != 1) return e.Refuse(in, "takes one type");
  SurfaceShape out;
  out.geometry = *geometry;
  out.width = in.VectorWidth();
  out.bits = ptx::BitsOf(in.TypeAt());
  const unsigned bytes = out.width * out.bits / 8;
  if (out.bits < 8 || out.bits > 64 || out.width > 4 || bytes > 16)
    return e.Refuse(in, "has a type that PTX does not give it");
  const SurfaceBounds bounds = in.Has(Mod::kClamp)  ? SurfaceBounds::kClamp
                               : in.Has(Mod::kZero) ? SurfaceBounds::kZero
                                                    : SurfaceBounds::kTrap;
  out.mode = SurfaceMode::Make(*geometry, bounds, in.Has(Mod::kP), bytes);
  return out;
}

Type BitsType(unsigned bits) {
  return bits == 8 ? Type::kB8 : bits == 16 ? Type::kB16 : bits == 64 ? Type::kB64 : Type::kB32;
}

}  // namespace

Status EmitSuld(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  if (in.Has(Mod::kP)) return e.Refuse(in, "loads formatted texels, which softcuda does not support");
  TRY(SurfaceShape shape, ShapeOf(e, in));
  TRY(Named named, TakeApart(e, in, in.operands[1]));
  TRY(Call call, Begin(e, in, named, shape.geometry, Type::kS32, shape.mode.bits));
  std::span<const Operand> to = PartsOf(in.operands[0]);
  if (to.size() != shape.width) return e.Refuse(in, fmt::format("needs {} destinations", shape.width));
  Value* loaded = Reads(e, "cuplex_suld", TexelType(e), call.args);
  loaded = e.ir.CreateBitCast(loaded, llvm::FixedVectorType::get(e.Int(shape.bits), 128 / shape.bits));
  for (unsigned i = 0; i < shape.width; ++i)
    TRY(e.Write(in, to[i], e.ir.CreateExtractElement(loaded, uint64_t{i})));
  return {};
}

Status EmitSust(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(SurfaceShape shape, ShapeOf(e, in));
  const bool formatted = in.Has(Mod::kP);
  if (formatted && shape.bits != 32) return e.Refuse(in, "stores formatted texels of other than .b32");
  TRY(Named named, TakeApart(e, in, in.operands[0]));
  TRY(Call call, Begin(e, in, named, shape.geometry, Type::kS32, shape.mode.bits));
  std::span<const Operand> from = PartsOf(in.operands[1]);
  if (from.size() != shape.width) return e.Refuse(in, fmt::format("needs {} sources", shape.width));
  auto* type = llvm::FixedVectorType::get(e.Int(shape.bits), 128 / shape.bits);
  Value* value = llvm::Constant::getNullValue(type);
  for (unsigned i = 0; i < shape.width; ++i) {
    TRY(Value * v, e.Read(in, from[i], BitsType(shape.bits)));
    value = e.ir.CreateInsertElement(value, v, uint64_t{i});
  }
  call.args.push_back(e.ir.CreateBitCast(value, TexelType(e)));
  e.CallRuntime(formatted ? "cuplex_sust_formatted" : "cuplex_sust", e.ir.getVoidTy(), call.args);
  return {};
}

Status EmitSured(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(SurfaceShape shape, ShapeOf(e, in));
  if (shape.bits < 32 || shape.width != 1) return e.Refuse(in, "has a type that PTX does not give it");
  const bool is_signed = in.TypeAt() == Type::kS32 || in.TypeAt() == Type::kS64;
  using Op = llvm::AtomicRMWInst::BinOp;
  Op op;
  if (in.Has(Mod::kAdd)) {
    op = Op::Add;
  } else if (in.Has(Mod::kMin)) {
    op = is_signed ? Op::Min : Op::UMin;
  } else if (in.Has(Mod::kMax)) {
    op = is_signed ? Op::Max : Op::UMax;
  } else if (in.Has(Mod::kAnd)) {
    op = Op::And;
  } else if (in.Has(Mod::kOr)) {
    op = Op::Or;
  } else {
    return e.Refuse(in, "combines in a way that softcuda does not support");
  }
  TRY(Named named, TakeApart(e, in, in.operands[0]));
  TRY(Call call, Begin(e, in, named, shape.geometry, Type::kS32, shape.mode.bits));
  TRY(Value * v, e.Read(in, PartsOf(in.operands[1])[0], BitsType(shape.bits)));
  Value* at = e.CallRuntime("cuplex_sured", e.Int(64), call.args);
  llvm::BasicBlock* then = e.NewBlock("then");
  llvm::BasicBlock* after = e.NewBlock("after");
  e.ir.CreateCondBr(e.ir.CreateICmpNE(at, e.I64(0)), then, after);
  e.ir.SetInsertPoint(then);
  e.MarkProgramAccess(e.ir.CreateAtomicRMW(op, e.ir.CreateIntToPtr(at, e.ir.getPtrTy()), v,
                                           llvm::Align(shape.bits / 8), llvm::AtomicOrdering::Monotonic));
  e.ir.CreateBr(after);
  e.ir.SetInsertPoint(after);
  return {};
}

}  // namespace cuplex::softcuda
