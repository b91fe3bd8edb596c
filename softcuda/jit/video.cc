// vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2, and the same with 4: arithmetic on the halves and bytes of a
// word.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

Status EmitVideo(Emitter& e, const Instruction& in) {
  if (in.TypeCount() != 3 || in.operands.size() != 4) return e.Refuse(in, "takes three types and 4 operands");
  for (size_t i = 0; i < 3; ++i) {
    if (in.TypeAt(i) != Type::kU32 && in.TypeAt(i) != Type::kS32) {
      return e.Refuse(in, "has a type that PTX does not give it");
    }
  }
  bool to_signed = in.TypeAt(0) == Type::kS32, a_signed = in.TypeAt(1) == Type::kS32,
       b_signed = in.TypeAt(2) == Type::kS32;
  TRY(Value * a, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * b, e.Read(in, in.operands[2], Type::kB32));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
  bool halves = in.opcode == Opcode::kVadd2 || in.opcode == Opcode::kVsub2 || in.opcode == Opcode::kVavrg2 ||
                in.opcode == Opcode::kVabsdiff2 || in.opcode == Opcode::kVmin2 || in.opcode == Opcode::kVmax2;
  unsigned width = halves ? 16 : 8;
  auto part = [&](Value* v, unsigned i, bool is_signed) {
    Value* p = e.ir.CreateTrunc(e.ir.CreateLShr(v, i * width), e.Int(width));
    return is_signed ? e.ir.CreateSExt(p, e.Int(32)) : e.ir.CreateZExt(p, e.Int(32));
  };
  bool adds = in.Has(Mod::kAdd);
  Value* out = adds ? c : e.I32(0);
  for (unsigned i = 0; i < 32 / width; ++i) {
    Value* x = part(a, i, a_signed);
    Value* y = part(b, i, b_signed);
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
        v = e.ir.CreateIntrinsic(llvm::Intrinsic::abs, {e.Int(32)}, {e.ir.CreateSub(x, y), e.ir.getFalse()});
        break;
      case Opcode::kVmin2:
      case Opcode::kVmin4:
        v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
        break;
      default:
        v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
        break;
    }
    if (adds) {
      out = e.ir.CreateAdd(out, v);
      continue;
    }
    if (in.Has(Mod::kSat)) {
      int32_t low = to_signed ? -(1 << (width - 1)) : 0;
      int32_t high = to_signed ? (1 << (width - 1)) - 1 : (1 << width) - 1;
      v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, e.I32(static_cast<uint32_t>(low)));
      v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, e.I32(static_cast<uint32_t>(high)));
    }
    Value* kept = e.ir.CreateZExt(e.ir.CreateTrunc(v, e.Int(width)), e.Int(32));
    out = e.ir.CreateOr(out, e.ir.CreateShl(kept, i * width));
  }
  return e.Write(in, in.operands[0], out);
}

}  // namespace cuplex::softcuda
