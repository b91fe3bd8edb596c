// vadd vsub vabsdiff vmin vmax vshl vshr vmad vset, and those of them that work on the halves and bytes of
// words (vadd2, vadd4, ...): arithmetic on parts of 32-bit words.
#include <array>
#include <optional>

#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

bool IsSigned(Type t) { return t == Type::kS32; }
bool IsWord(Type t) { return t == Type::kS32 || t == Type::kU32; }

/// A part of a word, as `.b2` or `.h1` after a register says.
struct Part {
  unsigned first = 0, bits = 32;
};
std::optional<Part> PartOf(const Operand& operand) {
  switch (operand.component) {
    case Mod::kNone:
      return Part{0, 32};
    case Mod::kByte0:
      return Part{0, 8};
    case Mod::kTypeB1:
      return Part{8, 8};
    case Mod::kByte2:
      return Part{16, 8};
    case Mod::kByte3:
      return Part{24, 8};
    case Mod::kH0:
      return Part{0, 16};
    case Mod::kH1:
      return Part{16, 16};
    default:
      return std::nullopt;
  }
}

Operand Whole(Operand operand) {
  operand.component = Mod::kNone;
  return operand;
}

/// The operand's part in 64 bits, extended as its type says.
Result<Value*> ReadPart(Emitter& e, const Instruction& in, const Operand& operand, Type type) {
  auto part = PartOf(operand);
  if (!part) return e.Refuse(in, "selects a part of a register that PTX does not have");
  TRY(Value * v, e.Read(in, Whole(operand), Type::kB32));
  v = e.ir.CreateTrunc(e.ir.CreateLShr(v, part->first), e.Int(part->bits));
  return IsSigned(type) ? e.ir.CreateSExt(v, e.Int(64)) : e.ir.CreateZExt(v, e.Int(64));
}

/// To what `bits` bits hold, signed or not.
Value* Clamp(Emitter& e, Value* v, unsigned bits, bool is_signed) {
  unsigned width = v->getType()->getIntegerBitWidth();
  llvm::APInt low = is_signed ? llvm::APInt::getSignedMinValue(bits).sext(width) : llvm::APInt(width, 0);
  llvm::APInt high = is_signed ? llvm::APInt::getSignedMaxValue(bits).sext(width)
                               : llvm::APInt::getMaxValue(bits).zext(width);
  v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, llvm::ConstantInt::get(v->getType(), low));
  return e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, llvm::ConstantInt::get(v->getType(), high));
}

Value* Compare(Emitter& e, const Instruction& in, Value* x, Value* y) {
  // Both stand in more bits than their types have, so signed comparison is right for all.
  switch (in.Comparison()) {
    case Mod::kEq:
      return e.ir.CreateICmpEQ(x, y);
    case Mod::kNe:
      return e.ir.CreateICmpNE(x, y);
    case Mod::kLt:
      return e.ir.CreateICmpSLT(x, y);
    case Mod::kLe:
      return e.ir.CreateICmpSLE(x, y);
    case Mod::kGt:
      return e.ir.CreateICmpSGT(x, y);
    case Mod::kGe:
      return e.ir.CreateICmpSGE(x, y);
    default:
      return nullptr;
  }
}

Value* AbsoluteDifference(Emitter& e, Value* x, Value* y) {
  return e.ir.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {e.ir.CreateSub(x, y), e.ir.getFalse()});
}

/// vmad: a * b + c, scaled and clamped, in 128 bits as PTX has it.
Status EmitVmad(Emitter& e, const Instruction& in) {
  if (in.TypeCount() != 3 || in.operands.size() != 4) return e.Refuse(in, "takes three types and 4 operands");
  for (size_t i = 0; i < 3; ++i) {
    if (!IsWord(in.TypeAt(i))) return e.Refuse(in, "has a type that PTX does not give it");
  }
  TRY(Value * a, ReadPart(e, in, in.operands[1], in.TypeAt(1)));
  TRY(Value * b, ReadPart(e, in, in.operands[2], in.TypeAt(2)));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
  bool is_signed = IsSigned(in.TypeAt(1)) || IsSigned(in.TypeAt(2));
  auto* wide = e.Int(128);
  Value* v = e.ir.CreateMul(e.ir.CreateSExt(a, wide), e.ir.CreateSExt(b, wide));
  v = e.ir.CreateAdd(v, is_signed ? e.ir.CreateSExt(c, wide) : e.ir.CreateZExt(c, wide));
  if (in.Has(Mod::kPo)) v = e.ir.CreateAdd(v, llvm::ConstantInt::get(wide, 1));
  unsigned scale = in.Has(Mod::kShr7) ? 7 : in.Has(Mod::kShr15) ? 15 : 0;
  v = e.ir.CreateAShr(v, scale);
  if (in.Has(Mod::kSat)) v = Clamp(e, v, 32, is_signed);
  return e.Write(in, in.operands[0], e.ir.CreateTrunc(v, e.Int(32)));
}

// ------------------------------------------------------------------------------------- halves and bytes

/// What `.h10` or `.b3210` after a register says: part i of the result is part digit[i] of a and b together.
Result<std::array<unsigned, 4>> SelectorOf(Emitter& e, const Instruction& in, const Operand& operand,
                                           unsigned parts, unsigned first) {
  std::array<unsigned, 4> out = {first, first + 1, first + 2, first + 3};
  if (operand.component == Mod::kNone) return out;
  std::string_view text = e.build.module.Text(operand.component);
  if (text.size() != parts + 1 || text[0] != (parts == 2 ? 'h' : 'b')) {
    return e.Refuse(in, "selects parts of a register in a way that PTX does not have");
  }
  for (unsigned i = 0; i < parts; ++i) {
    unsigned digit = static_cast<unsigned>(text[parts - i] - '0');
    if (digit >= 2 * parts) return e.Refuse(in, "selects a part that is not there");
    out[i] = digit;
  }
  return out;
}

/// Which parts of the result are written, as `.h1` or `.b320` after the destination says.
Result<unsigned> MaskOf(Emitter& e, const Instruction& in, const Operand& operand, unsigned parts) {
  if (operand.component == Mod::kNone) return (1u << parts) - 1;
  std::string_view text = e.build.module.Text(operand.component);
  unsigned mask = 0;
  bool fits = text.size() >= 2 && text.size() <= parts + 1 && text[0] == (parts == 2 ? 'h' : 'b');
  for (size_t i = 1; fits && i < text.size(); ++i) {
    unsigned digit = static_cast<unsigned>(text[i] - '0');
    fits = digit < parts;
    mask |= 1u << digit;
  }
  if (!fits) return e.Refuse(in, "masks a register in a way that PTX does not have");
  return mask;
}

unsigned PartsOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kVadd2:
    case Opcode::kVsub2:
    case Opcode::kVavrg2:
    case Opcode::kVabsdiff2:
    case Opcode::kVmin2:
    case Opcode::kVmax2:
    case Opcode::kVset2:
      return 2;
    default:
      return 4;
  }
}

}  // namespace

Status EmitVideo(Emitter& e, const Instruction& in) {
  unsigned parts = PartsOf(in.opcode), width = 32 / parts;
  bool sets = in.opcode == Opcode::kVset2 || in.opcode == Opcode::kVset4;
  size_t types = sets ? 2 : 3;
  if (in.TypeCount() != types || in.operands.size() != 4) {
    return e.Refuse(in, fmt::format("takes {} types and 4 operands", types));
  }
  for (size_t i = 0; i < types; ++i) {
    if (!IsWord(in.TypeAt(i))) return e.Refuse(in, "has a type that PTX does not give it");
  }
  bool to_signed = !sets && IsSigned(in.TypeAt(0));
  TRY(auto of_a, SelectorOf(e, in, in.operands[1], parts, 0));
  TRY(auto of_b, SelectorOf(e, in, in.operands[2], parts, parts));
  TRY(unsigned mask, MaskOf(e, in, in.operands[0], parts));
  TRY(Value * a, e.Read(in, Whole(in.operands[1]), Type::kB32));
  TRY(Value * b, e.Read(in, Whole(in.operands[2]), Type::kB32));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
  auto part = [&](unsigned which, Type type) {
    Value* p = e.ir.CreateTrunc(e.ir.CreateLShr(which < parts ? a : b, which % parts * width), e.Int(width));
    return IsSigned(type) ? e.ir.CreateSExt(p, e.Int(32)) : e.ir.CreateZExt(p, e.Int(32));
  };
  bool adds = in.Has(Mod::kAdd);
  Value* out = adds ? c : e.I32(0);
  for (unsigned i = 0; i < parts; ++i) {
    uint32_t place = (width == 16 ? 0xffffu : 0xffu) << i * width;
    if (!(mask >> i & 1)) {
      if (!adds) out = e.ir.CreateOr(out, e.ir.CreateAnd(c, e.I32(place)));
      continue;
    }
    Value* x = part(of_a[i], in.TypeAt(types - 2));
    Value* y = part(of_b[i], in.TypeAt(types - 1));
    Value* v = nullptr;
    switch (in.opcode) {
      case Opcode::kVadd2:
      case Opcode::kVadd4:
        v = e.ir.CreateAdd(x, y);
        break;
      case Opcode::kVsub2:
      case Opcode::kVsub4:
        v = e.ir.CreateSub(x, y);
        break;
      case Opcode::kVavrg2:
      case Opcode::kVavrg4: {
        // Rounded away from zero, as the manual has it: half up for sums that are not negative.
        Value* sum = e.ir.CreateAdd(x, y);
        Value* up = e.ir.CreateZExt(e.ir.CreateICmpSGE(sum, e.I32(0)), e.Int(32));
        v = e.ir.CreateAShr(e.ir.CreateAdd(sum, up), 1);
        break;
      }
      case Opcode::kVabsdiff2:
      case Opcode::kVabsdiff4:
        v = AbsoluteDifference(e, x, y);
        break;
      case Opcode::kVmin2:
      case Opcode::kVmin4:
        v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
        break;
      case Opcode::kVset2:
      case Opcode::kVset4:
        v = Compare(e, in, x, y);
        if (!v) return e.Refuse(in, "compares in a way that PTX does not give it");
        v = e.ir.CreateZExt(v, e.Int(32));
        break;
      default:
        v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
        break;
    }
    if (in.Has(Mod::kSat)) v = Clamp(e, v, width, to_signed);
    out = adds ? e.ir.CreateAdd(out, v)
               : e.ir.CreateOr(out, e.ir.CreateAnd(e.ir.CreateShl(v, i * width), e.I32(place)));
  }
  return e.Write(in, Whole(in.operands[0]), out);
}

Status EmitScalarVideo(Emitter& e, const Instruction& in) {
  if (in.opcode == Opcode::kVmad) return EmitVmad(e, in);
  auto& ir = e.ir;
  bool sets = in.opcode == Opcode::kVset;
  bool shifts = in.opcode == Opcode::kVshl || in.opcode == Opcode::kVshr;
  size_t types = sets ? 2 : 3;
  if (in.TypeCount() != types || in.operands.size() < 3 || in.operands.size() > 4) {
    return e.Refuse(in, fmt::format("takes {} types and 3 or 4 operands", types));
  }
  for (size_t i = 0; i < types; ++i) {
    if (!IsWord(in.TypeAt(i))) return e.Refuse(in, "has a type that PTX does not give it");
  }
  auto to = PartOf(in.operands[0]);
  bool folds = in.Has(Mod::kAdd) || in.Has(Mod::kMin) || in.Has(Mod::kMax);
  bool merges = to && to->bits < 32;
  if (!to || (folds && merges) || (in.operands.size() == 4) != (folds || merges)) {
    return e.Refuse(in, "has operands that PTX does not give it");
  }
  bool to_signed = !sets && IsSigned(in.TypeAt(0));
  TRY(Value * x, ReadPart(e, in, in.operands[1], in.TypeAt(types - 2)));
  TRY(Value * y, ReadPart(e, in, in.operands[2], in.TypeAt(types - 1)));
  Value* v = nullptr;
  if (shifts) {
    y = in.Has(Mod::kWrap) ? ir.CreateAnd(y, e.I64(31))
                           : ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, y, e.I64(32));
    v = in.opcode == Opcode::kVshl ? ir.CreateShl(x, y) : ir.CreateAShr(x, y);
  } else {
    switch (in.opcode) {
      case Opcode::kVadd:
        v = ir.CreateAdd(x, y);
        break;
      case Opcode::kVsub:
        v = ir.CreateSub(x, y);
        break;
      case Opcode::kVabsdiff:
        v = AbsoluteDifference(e, x, y);
        break;
      case Opcode::kVmin:
        v = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
        break;
      case Opcode::kVmax:
        v = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
        break;
      default:
        v = Compare(e, in, x, y);
        if (!v) return e.Refuse(in, "compares in a way that PTX does not give it");
        v = ir.CreateZExt(v, e.Int(64));
        break;
    }
  }
  if (in.Has(Mod::kSat)) v = Clamp(e, v, to->bits, to_signed);
  v = ir.CreateTrunc(v, e.Int(32));
  if (in.operands.size() == 4) {
    TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
    if (in.Has(Mod::kAdd)) {
      v = ir.CreateAdd(v, c);
    } else if (folds) {
      auto id = in.Has(Mod::kMin) ? (to_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin)
                                  : (to_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax);
      v = ir.CreateBinaryIntrinsic(id, v, c);
    } else {
      uint32_t place = (to->bits == 16 ? 0xffffu : 0xffu) << to->first;
      v = ir.CreateOr(ir.CreateAnd(ir.CreateShl(v, to->first), e.I32(place)), ir.CreateAnd(c, e.I32(~place)));
    }
  }
  return e.Write(in, Whole(in.operands[0]), v);
}

}  // namespace cuplex::softcuda
