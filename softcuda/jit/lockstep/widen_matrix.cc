// Widener: matrix instructions. Lanes of a warp are together already, and a function does the work
// (matrix_warp.h) on fragments in memory. There they stay: an instruction whose operand is what another one
// of its block gave takes it from where that one put it.
#include <set>

#include "softcuda/jit/lockstep/widen.h"
#include "softcuda/jit/markers.h"
#include "softcuda/jit/matrix_warp.h"

namespace cuplex::softcuda::lockstep {

using llvm::CallInst;
using llvm::ExtractValueInst;
using llvm::Value;

namespace {

const llvm::Align kAlign(64);

/// The matrix instruction that gave the value, if one did.
const CallInst* OriginOf(const Value* v) {
  auto* e = llvm::dyn_cast<ExtractValueInst>(v);
  return e ? llvm::dyn_cast<CallInst>(e->getAggregateOperand()) : nullptr;
}
bool IsMatrix(const llvm::Instruction& i) {
  auto* call = llvm::dyn_cast<CallInst>(&i);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName().starts_with(marker::kMatrix);
}

/// Matrix instructions of the same block that take any of what the call gives.
std::set<const llvm::User*> ReadersOf(const CallInst& call) {
  std::set<const llvm::User*> readers;
  for (const llvm::User* part : call.users()) {
    for (const llvm::User* user : part->users()) {
      auto* i = llvm::dyn_cast<llvm::Instruction>(user);
      if (i && i->getParent() == call.getParent() && IsMatrix(*i)) readers.insert(user);
    }
  }
  return readers;
}

/// Whether each part of what the call gives has one use.
bool IsUsedOnce(const CallInst& call) {
  for (const llvm::User* part : call.users()) {
    if (!part->hasOneUse()) return false;
  }
  return true;
}

}  // namespace

/// Where an operand's fragment lies, and the instruction that put it there; null where it was copied.
struct Widener::Operand {
  Value* at = nullptr;
  const CallInst* origin = nullptr;
  size_t home = 0;
};

size_t Widener::TakeHome(uint64_t bytes) {
  for (size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i].taken || homes_[i].bytes != bytes) continue;
    homes_[i].taken = true;
    return i;
  }
  auto* slot =
      llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(ir_.getInt8Ty(), bytes));
  slot->setAlignment(kAlign);
  slot->setName("kept");  // in the warp's record: it outlasts barriers
  homes_.push_back({slot, bytes, true});
  return homes_.size() - 1;
}

Widener::Operand Widener::FindOperand(CallInst& call, unsigned first, unsigned count) {
  llvm::Type* element = call.getArgOperand(first)->getType();
  uint64_t row = uint64_t{element->getIntegerBitWidth()} / 8 * width_;
  const CallInst* origin = lanes_ ? nullptr : OriginOf(call.getArgOperand(first));
  auto resident = residents_.find(origin);
  if (origin && resident != residents_.end()) {
    auto index = [&](unsigned n) -> unsigned {
      Value* v = call.getArgOperand(first + n);
      return OriginOf(v) == origin ? llvm::cast<ExtractValueInst>(v)->getIndices()[0] : ~0u;
    };
    bool in_order = true;
    for (unsigned n = 1; n < count; ++n) in_order &= index(n) == index(0) + n;
    if (in_order) {
      Value* at = homes_[resident->second.home].at;
      if (index(0)) at = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), at, index(0) * row);
      return {at, origin, resident->second.home};
    }
  }
  Operand out;
  out.home = TakeHome(count * row);
  out.at = homes_[out.home].at;
  for (unsigned n = 0; n < count; ++n) {
    // Lanes that are not there hand over zeros.
    Value* v = AndLanes(lanes_, Single(call.getArgOperand(first + n)));
    Value* at = n ? ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), out.at, n * row) : out.at;
    ir_.CreateAlignedStore(v, at, kAlign);
  }
  return out;
}

Status Widener::EmitMatrix(CallInst& call) {
  if (width_ != 32) return Refuse("a matrix instruction, which takes 32 lanes");
  if (!flow_.IsGathered(at_)) {
    return Refuse("a matrix instruction that lanes of a warp come to by different ways");
  }
  Value* packed = call.getArgOperand(0);
  MatrixOp op = MatrixOp::Unpack(llvm::cast<llvm::ConstantInt>(packed)->getZExtValue());
  llvm::Type* none = ir_.getVoidTy();
  auto* gives = llvm::dyn_cast<llvm::StructType>(call.getType());
  unsigned registers = gives ? gives->getNumElements() : 0;
  llvm::Type* element = gives ? gives->getElementType(0) : nullptr;
  uint64_t row = gives ? uint64_t{element->getIntegerBitWidth()} / 8 * width_ : 0;
  std::vector<Operand> operands;
  auto take = [&](unsigned first, unsigned count) {
    operands.push_back(FindOperand(call, first, count));
    return operands.back().at;
  };
  auto of_lane_0 = [&](Value* v) -> Value* {
    if (!lanes_ && ShapeOf(v).scalar()) return Scalar(v);
    return ir_.CreateExtractElement(AndLanes(lanes_, Single(v)), uint64_t{0});
  };
  size_t home = 0;
  Value* out = nullptr;
  auto settle = [&] {
    home = TakeHome(registers * row);
    out = homes_[home].at;
  };
  bool in_place = false;
  switch (op.kind) {
    case MatrixKind::kMultiply:
    case MatrixKind::kVoltaMultiply: {
      unsigned of_a = op.RegistersA(), of_b = op.RegistersB(), of_c = op.RegistersC(op.c);
      Value *a = take(1, of_a), *b = take(1 + of_a, of_b), *c = take(1 + of_a + of_b, of_c);
      // Where nobody else looks at the accumulator, the result takes its place.
      const Operand& old = operands.back();
      in_place = of_c == registers && homes_[old.home].bytes == registers * row &&
                 (!old.origin || (IsUsedOnce(*old.origin) && residents_.at(old.origin).readers == 1));
      if (in_place) {
        home = old.home;
        out = homes_[home].at;
      } else {
        settle();
      }
      Call(SymbolOfMultiply(op), none, {packed, a, b, c, out});
      break;
    }
    case MatrixKind::kLoad: {
      Value* address = of_lane_0(call.getArgOperand(1));
      Value* stride = of_lane_0(call.getArgOperand(2));
      settle();
      if (LoadsRows(op)) {
        Value* line = ir_.CreateSelect(ir_.CreateICmpEQ(stride, I32(0)), I32(op.k), stride);
        line = ir_.CreateLShr(ir_.CreateMul(ir_.CreateZExt(line, ir_.getInt64Ty()), I64(BitsOf(op.a))), 3);
        Call("cuplex_matrix_load_rows", none, {I32(RowsOf(op)), address, line, out});
      } else {
        Call("cuplex_matrix_load", none, {packed, address, stride, out});
      }
      break;
    }
    case MatrixKind::kStore: {
      Value* address = of_lane_0(call.getArgOperand(1));
      Value* stride = of_lane_0(call.getArgOperand(2));
      Value* from = take(3, call.arg_size() - 3);
      Call("cuplex_matrix_store", none, {packed, address, stride, from});
      break;
    }
    case MatrixKind::kLoadTiles: {
      Value* addresses = take(1, 1);
      settle();
      Call("cuplex_matrix_load_tiles", none, {packed, addresses, out});
      break;
    }
    case MatrixKind::kStoreTiles: {
      Value* addresses = take(1, 1);
      Value* from = take(2, op.count);
      Call("cuplex_matrix_store_tiles", none, {packed, addresses, from});
      break;
    }
    case MatrixKind::kTranspose: {
      Value* from = take(1, 1);
      settle();
      Call("cuplex_matrix_transpose", none, {packed, from, out});
      break;
    }
  }
  // Copies were for this call alone, and what it was the last to read is free.
  for (const Operand& operand : operands) {
    if (!operand.origin && !(in_place && operand.home == home)) homes_[operand.home].taken = false;
  }
  std::set<const CallInst*> origins;
  for (const Value* v : call.args()) {
    if (const CallInst* origin = OriginOf(v); origin && residents_.contains(origin)) origins.insert(origin);
  }
  for (const CallInst* origin : origins) {
    Resident& resident = residents_.at(origin);
    if (--resident.readers) continue;
    if (!(in_place && resident.home == home)) homes_[resident.home].taken = false;
    residents_.erase(origin);
  }
  if (!registers) return {};
  Wide wide;
  for (unsigned n = 0; n < registers; ++n) {
    Value* at = n ? ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), out, n * row) : out;
    wide.push_back(ir_.CreateAlignedLoad(WideType(element), at, kAlign));
  }
  SetWide(call, wide);
  size_t readers = ReadersOf(call).size();
  if (readers) {
    residents_[&call] = {home, readers};
  } else {
    homes_[home].taken = false;
  }
  return {};
}

}  // namespace cuplex::softcuda::lockstep
