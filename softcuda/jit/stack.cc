// alloca stacksave stackrestore: local memory of a size known at run time. It lies past the frames of the
// kernel's functions; the top of the stack is a word of the
// thread's record.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {

using llvm::Value;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Type;

Status EmitAlloca(Emitter& e, const Instruction& in) {
  if (e.lockstep()) return e.Refuse(in, "is not carried out in lockstep");
  constexpr size_t place = offsetof(Lane, stack);
  if (in.opcode == Opcode::kStacksave) {
    if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
    return e.Write(in, in.operands[0], e.LoadLane(place, 32));
  }
  if (in.opcode == Opcode::kStackrestore) {
    if (in.operands.size() != 1) return e.Refuse(in, "takes 1 operand");
    TRY(Value * top, e.Read(in, in.operands[0], in.TypeAt()));
    e.StoreLane(place, e.ir.CreateZExtOrTrunc(top, e.Int(32)));
    return {};
  }
  if (in.operands.size() != 2 && in.operands.size() != 3) return e.Refuse(in, "takes 2 or 3 operands");
  uint64_t alignment = 8;
  if (in.operands.size() == 3) {
    alignment = in.operands[2].bits;
    if (in.operands[2].kind != ptx::OperandKind::kInteger || !alignment || (alignment & (alignment - 1)) ||
        alignment > (1 << 23)) {
      return e.Refuse(in, "needs a power of two up to 2^23 as its alignment");
    }
  }
  TRY(Value * size, e.Read(in, in.operands[1], in.TypeAt()));
  size = e.ir.CreateZExtOrTrunc(size, e.Int(64));
  Value* top = e.ir.CreateZExt(e.LoadLane(place, 32), e.Int(64));
  Value* at = e.ir.CreateAnd(e.ir.CreateAdd(top, e.I64(alignment - 1)), e.I64(~(alignment - 1)));
  // One that does not fit gets an address past the thread's local memory: touching it is a fault.
  Value* limit = e.I64(UINT32_MAX - (uint64_t{1} << 24));
  size = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, limit);
  Value* next = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e.ir.CreateAdd(at, size), limit);
  e.StoreLane(place, e.ir.CreateTrunc(next, e.Int(32)));
  return e.Write(in, in.operands[0], at);
}

}  // namespace cuplex::softcuda
