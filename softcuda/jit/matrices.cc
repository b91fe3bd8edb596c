// wmma mma ldmatrix stmatrix movmatrix: collectives of a whole warp, whose lanes hand over registers and get
// registers back.
#include "softcuda/jit/matrices.h"

#include <optional>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

constexpr const char* kNotInPtx = "is a combination of shape and types that softcuda does not have";

std::optional<MatrixType> TypeOfElement(Type type) {
  switch (type) {
    case Type::kF16:
      return MatrixType::kF16;
    case Type::kBf16:
      return MatrixType::kBf16;
    case Type::kTf32:
      return MatrixType::kTf32;
    case Type::kF32:
      return MatrixType::kF32;
    case Type::kF64:
      return MatrixType::kF64;
    case Type::kS8:
      return MatrixType::kS8;
    case Type::kU8:
      return MatrixType::kU8;
    case Type::kS4:
      return MatrixType::kS4;
    case Type::kU4:
      return MatrixType::kU4;
    case Type::kB1:
      return MatrixType::kB1;
    case Type::kE4m3:
      return MatrixType::kE4m3;
    case Type::kE5m2:
      return MatrixType::kE5m2;
    case Type::kS32:
      return MatrixType::kS32;
    default:
      return std::nullopt;
  }
}

struct ShapeRow {
  Mod mod;
  uint8_t m, n;
  uint16_t k;
};
constexpr ShapeRow kShapes[] = {
    {Mod::kM16n16k16, 16, 16, 16}, {Mod::kM32n8k16, 32, 8, 16},   {Mod::kM8n32k16, 8, 32, 16},
    {Mod::kM8n8k4, 8, 8, 4},       {Mod::kM16n16k8, 16, 16, 8},   {Mod::kM8n8k32, 8, 8, 32},
    {Mod::kM8n8k128, 8, 8, 128},   {Mod::kM8n8k16, 8, 8, 16},     {Mod::kM16n8k4, 16, 8, 4},
    {Mod::kM16n8k8, 16, 8, 8},     {Mod::kM16n8k16, 16, 8, 16},   {Mod::kM16n8k32, 16, 8, 32},
    {Mod::kM16n8k64, 16, 8, 64},   {Mod::kM16n8k128, 16, 8, 128}, {Mod::kM16n8k256, 16, 8, 256},
};

bool SetShape(const Instruction& in, MatrixOp& op) {
  for (const ShapeRow& row : kShapes) {
    if (!in.Has(row.mod)) continue;
    op.m = row.m;
    op.n = row.n;
    op.k = row.k;
    return true;
  }
  return false;
}

/// The operand's registers; one that stands alone is a list of one.
std::vector<const Operand*> RegistersOf(const Operand& operand) {
  if (operand.kind != OperandKind::kVector) return {&operand};
  std::vector<const Operand*> out;
  for (const Operand& part : operand.parts) out.push_back(&part);
  return out;
}

bool FactorsFit(const MatrixOp& op) {
  bool floats = (op.d == MatrixType::kF16 || op.d == MatrixType::kF32) &&
                (op.c == MatrixType::kF16 || op.c == MatrixType::kF32);
  bool single = op.c == MatrixType::kF32 && op.d == MatrixType::kF32;
  bool integers = op.c == MatrixType::kS32 && op.d == MatrixType::kS32;
  unsigned tile = op.a == MatrixType::kF64 ? 4 : 128 / BitsOf(op.a);
  if (op.k % tile || (op.a != MatrixType::kB1 && op.k > 64)) return false;
  switch (op.a) {
    case MatrixType::kF16:
      return floats && op.b == op.a && op.k <= 16;
    case MatrixType::kBf16:
    case MatrixType::kTf32:
      return single && op.b == op.a && op.k <= 16;
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
      return floats && (op.b == MatrixType::kE4m3 || op.b == MatrixType::kE5m2);
    case MatrixType::kF64:
      return op.b == op.a && op.c == op.a && op.d == op.a && op.n == 8;
    case MatrixType::kS8:
    case MatrixType::kU8:
      return integers && (op.b == MatrixType::kS8 || op.b == MatrixType::kU8);
    case MatrixType::kS4:
    case MatrixType::kU4:
      return integers && (op.b == MatrixType::kS4 || op.b == MatrixType::kU4);
    case MatrixType::kB1:
      return integers && op.b == op.a;
    default:
      return false;
  }
}

/// d, a, b, c of wmma.mma and mma.
Status PlanMultiply(Emitter& e, const Instruction& in, MatrixPlan& plan) {
  MatrixOp& op = plan.op;
  if (in.operands.size() != 4) return e.Refuse(in, "takes 4 operands");
  Type types[4] = {in.TypeAt(0), Type::kF16, Type::kF16, in.TypeAt(1)};  // as wmma writes products of halves
  if (in.TypeCount() == 4) {
    for (size_t i = 0; i < 4; ++i) types[i] = in.TypeAt(i);
  } else if (in.TypeCount() != 2 || in.opcode != Opcode::kWmma) {
    return e.Refuse(in, "takes four types");
  }
  MatrixType* to[4] = {&op.d, &op.a, &op.b, &op.c};
  for (size_t i = 0; i < 4; ++i) {
    auto type = TypeOfElement(types[i]);
    if (!type) return e.Refuse(in, kNotInPtx);
    *to[i] = *type;
  }
  if (!SetShape(in, op)) return e.Refuse(in, "has a shape that softcuda does not have");
  op.kind = MatrixKind::kMultiply;
  if (in.opcode == Opcode::kMma && in.Has(Mod::kM8n8k4) && op.a == MatrixType::kF16) {
    bool halves = (op.c == MatrixType::kF16 || op.c == MatrixType::kF32) &&
                  (op.d == MatrixType::kF16 || op.d == MatrixType::kF32);
    if (!halves || op.b != op.a) return e.Refuse(in, kNotInPtx);
    op.kind = MatrixKind::kVoltaMultiply;
    bool first = true;
    for (Mod m : in.mods) {
      if (m != Mod::kRow && m != Mod::kCol) continue;
      (first ? op.a_column : op.b_column) = m == Mod::kCol;
      first = false;
    }
  } else if (!FactorsFit(op)) {
    return e.Refuse(in, kNotInPtx);
  }
  op.satfinite = in.Has(Mod::kSatfinite) && op.d == MatrixType::kS32;
  op.exclusive = in.Has(Mod::kXor);
  if (op.a == MatrixType::kB1 && !in.Has(Mod::kPopc)) return e.Refuse(in, "needs .popc");
  Mod rounding = in.Rounding();
  op.rounding = rounding == Mod::kRz ? 1 : rounding == Mod::kRm ? 2 : rounding == Mod::kRp ? 3 : 0;
  if (op.rounding && op.a != MatrixType::kF64) return e.Refuse(in, "rounds in a way that PTX does not have");
  plan.wide = op.a == MatrixType::kF64;
  auto take = [&](size_t operand, unsigned needed, std::vector<const Operand*>& list) -> Status {
    auto given = RegistersOf(in.operands[operand]);
    // wmma gives fragments of halves more registers than their elements fill.
    bool more = in.opcode == Opcode::kWmma && given.size() > needed && given.size() % needed == 0;
    if (given.size() != needed && !more) {
      return e.Refuse(in, fmt::format("needs {} registers in operand {}", needed, operand + 1));
    }
    list.insert(list.end(), given.begin(), given.begin() + needed);
    return {};
  };
  TRY(take(0, op.RegistersC(op.d), plan.out));
  TRY(take(1, op.RegistersA(), plan.in));
  TRY(take(2, op.RegistersB(), plan.in));
  return take(3, op.RegistersC(op.c), plan.in);
}

/// wmma.load and wmma.store.
Status PlanFragment(Emitter& e, const Instruction& in, MatrixPlan& plan) {
  MatrixOp& op = plan.op;
  bool loads = in.Has(Mod::kLoad);
  op.kind = loads ? MatrixKind::kLoad : MatrixKind::kStore;
  auto type = TypeOfElement(in.TypeAt());
  if (in.TypeCount() != 1 || !type) return e.Refuse(in, kNotInPtx);
  op.a = *type;
  if (!SetShape(in, op)) return e.Refuse(in, "has a shape that softcuda does not have");
  op.part = in.Has(Mod::kA) ? MatrixPart::kA : in.Has(Mod::kB) ? MatrixPart::kB : MatrixPart::kC;
  op.column = in.Has(Mod::kCol);
  if (in.operands.size() != 2 && in.operands.size() != 3) return e.Refuse(in, "takes 2 or 3 operands");
  plan.address = &in.operands[loads ? 1 : 0];
  if (in.operands.size() == 3) plan.stride = &in.operands[2];
  auto given = RegistersOf(in.operands[loads ? 0 : 1]);
  bool accumulates = op.part == MatrixPart::kC;
  bool holds = op.a == MatrixType::kF16 || op.a == MatrixType::kF32 || op.a == MatrixType::kF64 ||
               op.a == MatrixType::kS32;
  bool factor = op.a != MatrixType::kF32 && op.a != MatrixType::kS32 && op.a != MatrixType::kE4m3 &&
                op.a != MatrixType::kE5m2;
  unsigned tile = op.a == MatrixType::kF64 ? 4 : 128 / BitsOf(op.a);
  if (accumulates
          ? !holds
          : (!factor || op.k % tile || (BitsOf(op.a) < 8 && op.column == (op.part == MatrixPart::kA)))) {
    return e.Refuse(in, kNotInPtx);
  }
  op.b = op.a;
  unsigned needed = accumulates                 ? op.RegistersC(op.a)
                    : op.part == MatrixPart::kA ? op.RegistersA()
                                                : op.RegistersB();
  if (given.size() < needed || given.size() % needed || given.size() > 8 ||
      (accumulates && given.size() != needed)) {
    return e.Refuse(in, fmt::format("needs {} registers", needed));
  }
  op.registers = static_cast<uint8_t>(given.size());
  plan.wide = op.a == MatrixType::kF64;
  (loads ? plan.out : plan.in) = given;
  return {};
}

/// ldmatrix and stmatrix.
Status PlanTiles(Emitter& e, const Instruction& in, MatrixPlan& plan) {
  MatrixOp& op = plan.op;
  bool loads = in.opcode == Opcode::kLdmatrix;
  op.kind = loads ? MatrixKind::kLoadTiles : MatrixKind::kStoreTiles;
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  if (!in.Has(Mod::kM8n8) || in.TypeCount() != 1 || in.TypeAt() != Type::kB16) {
    return e.Refuse(in, "moves tiles other than .m8n8.b16, which softcuda does not support");
  }
  op.count = in.Has(Mod::kX4) ? 4 : in.Has(Mod::kX2) ? 2 : 1;
  op.transposed = in.Has(Mod::kTrans);
  plan.address = &in.operands[loads ? 1 : 0];
  auto given = RegistersOf(in.operands[loads ? 0 : 1]);
  if (given.size() != op.count) return e.Refuse(in, fmt::format("needs {} registers", op.count));
  (loads ? plan.out : plan.in) = given;
  return {};
}

}  // namespace

Result<MatrixPlan> PlanMatrix(Emitter& e, const Instruction& in) {
  MatrixPlan plan;
  Space space = in.SpaceAt();
  plan.op.shared = space == Space::kShared || space == Space::kSharedCta;
  if (!plan.op.shared && space != Space::kNone && space != Space::kGlobal) {
    return e.Refuse(in, "addresses a state space that PTX does not give it");
  }
  switch (in.opcode) {
    case Opcode::kMovmatrix:
      if (in.operands.size() != 2 || !in.Has(Mod::kTrans) || in.TypeAt() != Type::kB16) {
        return e.Refuse(in, "takes 2 operands, .trans and .b16");
      }
      plan.op.kind = MatrixKind::kTranspose;
      plan.out = RegistersOf(in.operands[0]);
      plan.in = RegistersOf(in.operands[1]);
      break;
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
      TRY(PlanTiles(e, in, plan));
      break;
    case Opcode::kMma:
      TRY(PlanMultiply(e, in, plan));
      break;
    default:
      if (in.Has(Mod::kMma)) {
        TRY(PlanMultiply(e, in, plan));
      } else if (in.Has(Mod::kLoad) || in.Has(Mod::kStore)) {
        TRY(PlanFragment(e, in, plan));
      } else {
        return e.Refuse(in, "is an operation on matrices that softcuda does not have");
      }
  }
  return plan;
}

Result<std::vector<Value*>> ReadMatrixWords(Emitter& e, const Instruction& in, const MatrixPlan& plan) {
  std::vector<Value*> words;
  auto push = [&](Value* v) {
    words.push_back(e.ir.CreateTrunc(v, e.Int(32)));
    words.push_back(e.ir.CreateTrunc(e.ir.CreateLShr(v, 32), e.Int(32)));
  };
  if (plan.address) {
    TRY(Value * at, e.PlainAddress(in, *plan.address, in.SpaceAt()));
    push(at);
  }
  if (plan.op.kind == MatrixKind::kLoad || plan.op.kind == MatrixKind::kStore) {
    Value* stride = e.I32(0);
    if (plan.stride) {
      TRY(stride, e.Read(in, *plan.stride, Type::kB32));
    }
    words.push_back(stride);
  }
  for (const Operand* operand : plan.in) {
    TRY(Value * v, e.Read(in, *operand, plan.wide ? Type::kB64 : Type::kB32));
    if (plan.wide) {
      push(v);
    } else {
      words.push_back(v);
    }
  }
  return words;
}

Status WriteMatrixWords(Emitter& e, const Instruction& in, const MatrixPlan& plan,
                        const std::vector<Value*>& words) {
  for (size_t i = 0; i < plan.out.size(); ++i) {
    Value* v = plan.wide ? e.ir.CreateOr(e.ir.CreateZExt(words[2 * i], e.Int(64)),
                                         e.ir.CreateShl(e.ir.CreateZExt(words[2 * i + 1], e.Int(64)), 32))
                         : words[i];
    TRY(e.Write(in, *plan.out[i], v));
  }
  return {};
}

namespace {

/// The warp's instruction, with this lane's registers; what it gets back.
Status EmitInLockstep(Emitter& e, const Instruction& in, MatrixPlan plan) {
  MatrixOp& op = plan.op;
  // A fragment's registers beyond these hold the same elements again.
  unsigned distinct = op.kind != MatrixKind::kLoad ? static_cast<unsigned>(plan.out.size())
                      : op.part == MatrixPart::kC  ? op.RegistersC(op.a)
                      : op.part == MatrixPart::kA  ? op.RegistersA()
                                                   : op.RegistersB();
  if (op.kind == MatrixKind::kLoad) op.registers = static_cast<uint8_t>(distinct);
  std::vector<Value*> args = {e.I64(op.Pack())};
  if (plan.address) {
    TRY(Value * at, e.PlainAddress(in, *plan.address, in.SpaceAt()));
    args.push_back(at);
  }
  if (op.kind == MatrixKind::kLoad || op.kind == MatrixKind::kStore) {
    Value* stride = e.I32(0);
    if (plan.stride) {
      TRY(stride, e.Read(in, *plan.stride, Type::kB32));
    }
    args.push_back(stride);
  }
  for (const Operand* operand : plan.in) {
    TRY(Value * v, e.Read(in, *operand, plan.wide ? Type::kB64 : Type::kB32));
    args.push_back(v);
  }
  unsigned bits = plan.wide ? 64 : 32;
  llvm::Type* result = e.ir.getVoidTy();
  if (distinct) {
    std::vector<llvm::Type*> registers(distinct, e.Int(bits));
    result = llvm::StructType::get(e.ir.getContext(), registers);
  }
  std::string name = fmt::format("{}{}.{}.{}.{}", marker::kMatrix, static_cast<unsigned>(op.kind), bits,
                                 args.size(), distinct);
  Value* met = e.Mark(name.c_str(), result, args);
  for (unsigned i = 0; i < plan.out.size(); ++i) {
    TRY(e.Write(in, *plan.out[i], e.ir.CreateExtractValue(met, i % distinct)));
  }
  return {};
}

}  // namespace

Status EmitMatrix(Emitter& e, const Instruction& in) {
  TRY(MatrixPlan plan, PlanMatrix(e, in));
  if (e.lockstep()) return EmitInLockstep(e, in, std::move(plan));
  if (!e.waits()) {
    return e.Refuse(in,
                    "waits for other threads in a function that is called through a pointer, which softcuda "
                    "does not support");
  }
  TRY(std::vector<Value*> words, ReadMatrixWords(e, in, plan));
  uint32_t area = e.build.CollectiveArea();
  for (size_t i = 0; i < words.size(); ++i) e.StoreLane(area + 4 * i, words[i]);
  e.StoreLane(offsetof(Lane, op), e.I32(static_cast<uint32_t>(Collective::kMatrix)));
  e.StoreLane(offsetof(Lane, mask), e.I32(~0u));
  e.StoreLane(offsetof(Lane, value), e.I64(plan.op.Pack()));
  e.StoreLane(offsetof(Lane, b), e.I32(area));
  TRY(e.Suspend(in, Step::kCollective));
  std::vector<Value*> results;
  for (unsigned i = 0; i < plan.op.WordsOut(); ++i) results.push_back(e.LoadLane(area + 4 * i, 32));
  return WriteMatrixWords(e, in, plan, results);
}

}  // namespace cuplex::softcuda
