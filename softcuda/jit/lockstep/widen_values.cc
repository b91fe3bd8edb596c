// Widener: instructions that compute, and those that are done lane by lane.
#include <bit>

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "softcuda/jit/lockstep/widen.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda::lockstep {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;
using llvm::Intrinsic::ID;
namespace Intrinsic = llvm::Intrinsic;

namespace {

/// Elements of a type: of a vector or struct its parts, else itself.
std::vector<llvm::Type*> Elements(llvm::Type* t) {
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(t)) {
    return std::vector<llvm::Type*>(v->getNumElements(), v->getElementType());
  }
  if (auto* s = llvm::dyn_cast<llvm::StructType>(t)) {
    return {s->element_begin(), s->element_end()};
  }
  return {t};
}

bool IsHuge(llvm::Type* t) {
  t = t->getScalarType();
  return t->isIntegerTy() && t->getIntegerBitWidth() > 65;
}

/// Intrinsics that LLVM has for vectors, element by element.
bool IsElementwise(ID id) {
  switch (id) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::fabs:
    case Intrinsic::sqrt:
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::trunc:
    case Intrinsic::rint:
    case Intrinsic::nearbyint:
    case Intrinsic::roundeven:
    case Intrinsic::round:
    case Intrinsic::minnum:
    case Intrinsic::maxnum:
    case Intrinsic::minimum:
    case Intrinsic::maximum:
    case Intrinsic::copysign:
    case Intrinsic::canonicalize:
    case Intrinsic::ctpop:
    case Intrinsic::ctlz:
    case Intrinsic::cttz:
    case Intrinsic::bswap:
    case Intrinsic::bitreverse:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
    case Intrinsic::abs:
    case Intrinsic::smax:
    case Intrinsic::smin:
    case Intrinsic::umax:
    case Intrinsic::umin:
    case Intrinsic::sadd_sat:
    case Intrinsic::uadd_sat:
    case Intrinsic::ssub_sat:
    case Intrinsic::usub_sat:
    case Intrinsic::is_fpclass:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status Widener::EmitInstruction(Instruction& i) {
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) return EmitCall(*call);
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return EmitLoad(*load);
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) return EmitStore(*store);
  if (llvm::isa<llvm::FenceInst>(i)) {
    ir_.Insert(i.clone());
    return {};
  }
  if (auto* alloca = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
    const Shape& shape = ShapeOf(&i);
    if (!shape.affine()) return Refuse("memory of a size that is not known");
    auto bytes = static_cast<uint64_t>(shape.stride) * width_;
    auto* slot =
        llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(ir_.getInt8Ty(), bytes));
    slot->setAlignment(std::max(alloca->getAlign(), llvm::Align(16)));
    slot->setName("kept");
    SetScalar(i, slot);
    return {};
  }
  if (llvm::isa<llvm::AtomicRMWInst>(i) || llvm::isa<llvm::AtomicCmpXchgInst>(i)) return EmitPerLane(i);
  if (ShapeOf(&i).scalar()) {
    EmitScalar(i);
    return {};
  }
  return EmitWide(i);
}

void Widener::EmitScalar(Instruction& i) {
  auto* disjoint = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&i);
  if (disjoint && disjoint->isDisjoint() && ShapeOf(&i).affine()) {
    // Of lane 0, which need not be there, it may not be true.
    SetScalar(i,
              ir_.Insert(llvm::BinaryOperator::CreateAdd(Scalar(i.getOperand(0)), Scalar(i.getOperand(1)))));
    return;
  }
  Instruction* clone = i.clone();
  for (unsigned n = 0; n < i.getNumOperands(); ++n) clone->setOperand(n, Scalar(i.getOperand(n)));
  // Lane 0 need not be there.
  bool of_lane_0 = !ShapeOf(&i).uniform();
  for (Value* v : i.operands()) of_lane_0 |= ShapeOf(v).affine();
  if (of_lane_0) clone->dropPoisonGeneratingFlags();
  ir_.Insert(clone);
  if (llvm::isa<llvm::SExtInst>(i) || llvm::isa<llvm::ZExtInst>(i)) clones_[&i] = clone;
  SetScalar(i, clone);
}

Status Widener::EmitWide(Instruction& i) {
  for (Value* v : i.operands()) {
    if (IsHuge(v->getType())) return EmitPerLane(i);
  }
  if (IsHuge(i.getType())) return EmitPerLane(i);
  auto each = [&](auto&& make) -> Status {
    Wide a = Vector(i.getOperand(0));
    Wide out;
    for (size_t n = 0; n < a.size(); ++n) out.push_back(make(n, a[n]));
    SetWide(i, out);
    return {};
  };
  auto constant = [&](unsigned n) { return llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(n)); };
  if (auto* op = llvm::dyn_cast<llvm::BinaryOperator>(&i)) {
    switch (op->getOpcode()) {
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::URem:
      case Instruction::SRem:
        return EmitWideDivision(*op);
      default: {
        Wide b = Vector(i.getOperand(1));
        return each([&](size_t n, Value* a) { return ir_.CreateBinOp(op->getOpcode(), a, b[n]); });
      }
    }
  }
  if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&i)) return EmitWideCast(*cast);
  switch (i.getOpcode()) {
    case Instruction::FNeg:
      return each([&](size_t, Value* a) { return ir_.CreateFNeg(a); });
    case Instruction::Freeze:
      return each([&](size_t, Value* a) { return ir_.CreateFreeze(a); });
    case Instruction::ICmp:
    case Instruction::FCmp: {
      auto predicate = llvm::cast<llvm::CmpInst>(i).getPredicate();
      Wide b = Vector(i.getOperand(1));
      return each([&](size_t n, Value* a) { return ir_.CreateCmp(predicate, a, b[n]); });
    }
    case Instruction::Select: {
      Value* condition = i.getOperand(0);
      Wide a = Vector(i.getOperand(1)), b = Vector(i.getOperand(2)), out;
      bool scalar = ShapeOf(condition).uniform() && !condition->getType()->isVectorTy();
      Wide c = scalar ? Wide{Scalar(condition)} : Vector(condition);
      for (size_t n = 0; n < a.size(); ++n) {
        out.push_back(ir_.CreateSelect(c.size() == 1 ? c[0] : c[n], a[n], b[n]));
      }
      SetWide(i, out);
      return {};
    }
    case Instruction::ExtractValue: {
      const auto& e = llvm::cast<llvm::ExtractValueInst>(i);
      if (e.getNumIndices() != 1) return Refuse("a value of nested parts");
      SetWide(i, {Vector(i.getOperand(0))[e.getIndices()[0]]});
      return {};
    }
    case Instruction::ExtractElement:
      if (!constant(1)) return EmitPerLane(i);
      SetWide(i, {Vector(i.getOperand(0))[constant(1)->getZExtValue()]});
      return {};
    case Instruction::InsertElement: {
      if (!constant(2)) return EmitPerLane(i);
      Wide out = Vector(i.getOperand(0));
      out[constant(2)->getZExtValue()] = Single(i.getOperand(1));
      SetWide(i, out);
      return {};
    }
    case Instruction::ShuffleVector: {
      const auto& shuffle = llvm::cast<llvm::ShuffleVectorInst>(i);
      Wide both = Vector(i.getOperand(0));
      Wide b = Vector(i.getOperand(1));
      both.append(b.begin(), b.end());
      Wide out;
      for (int n : shuffle.getShuffleMask()) out.push_back(both[static_cast<size_t>(std::max(n, 0))]);
      SetWide(i, out);
      return {};
    }
    case Instruction::GetElementPtr: {
      const auto& gep = llvm::cast<llvm::GetElementPtrInst>(i);
      std::vector<Value*> indices;
      for (Value* v : gep.indices()) {
        indices.push_back(llvm::isa<llvm::Constant>(v) ? v : Single(v));
      }
      SetWide(i, {ir_.CreateGEP(gep.getSourceElementType(), Single(gep.getOperand(0)), indices)});
      return {};
    }
    default:
      return Refuse(fmt::format("an instruction `{}`", i.getOpcodeName()));
  }
}

Status Widener::EmitWideDivision(llvm::BinaryOperator& op) {
  Value* a = Single(op.getOperand(0));
  Wide divisor = Vector(op.getOperand(1));
  if (divisor.size() != 1) return EmitPerLane(op);
  Value* b = divisor[0];
  bool constant = llvm::isa<llvm::Constant>(b);
  llvm::Type* t = b->getType();
  Value* one = llvm::ConstantInt::get(t, 1);
  // Lanes that are not there must not divide by whatever they hold.
  if (!constant && lanes_) b = ir_.CreateSelect(lanes_, b, one);
  bool is_signed = op.getOpcode() == Instruction::SDiv || op.getOpcode() == Instruction::SRem;
  bool remainder = op.getOpcode() == Instruction::URem || op.getOpcode() == Instruction::SRem;
  unsigned bits = op.getType()->getScalarSizeInBits();
  if (constant || bits > 32) {
    SetWide(op, {ir_.CreateBinOp(op.getOpcode(), a, b)});
    return {};
  }
  // A double's quotient of integers of 32 bits, cut off, is theirs: 1 / 2^32 is more than its error.
  llvm::Type* real = WideType(ir_.getDoubleTy());
  auto widen = [&](Value* v) { return is_signed ? ir_.CreateSIToFP(v, real) : ir_.CreateUIToFP(v, real); };
  Value* q = ir_.CreateFDiv(widen(a), widen(b));
  llvm::Type* wide = WideType(ir_.getInt64Ty());
  q = ir_.CreateFreeze(ir_.CreateTrunc(is_signed ? ir_.CreateFPToSI(q, wide) : ir_.CreateFPToUI(q, wide), t));
  SetWide(op, {remainder ? ir_.CreateSub(a, ir_.CreateMul(q, b)) : q});
  return {};
}

Status Widener::EmitWideCast(llvm::CastInst& cast) {
  Wide in = Vector(cast.getOperand(0));
  auto to = Elements(cast.getType());
  Wide out;
  if (cast.getOpcode() != Instruction::BitCast || in.size() == to.size()) {
    for (size_t n = 0; n < in.size(); ++n) {
      out.push_back(ir_.CreateCast(cast.getOpcode(), in[n], WideType(to[n])));
    }
    SetWide(cast, out);
    return {};
  }
  auto integers = [&](Value* v) -> Value* {
    unsigned bits = v->getType()->getScalarSizeInBits();
    return ir_.CreateBitCast(v, WideType(ir_.getIntNTy(bits)));
  };
  unsigned bits = to[0]->getScalarSizeInBits();
  auto* narrow = WideType(ir_.getIntNTy(bits));
  if (in.size() < to.size()) {  // taken apart, low bits first
    size_t parts = to.size() / in.size();
    for (Value* v : in) {
      Value* whole = integers(v);
      for (size_t n = 0; n < parts; ++n) {
        Value* part = n ? ir_.CreateLShr(whole, llvm::ConstantInt::get(whole->getType(), n * bits)) : whole;
        out.push_back(ir_.CreateBitCast(ir_.CreateTrunc(part, narrow), WideType(to[0])));
      }
    }
  } else {
    size_t parts = in.size() / to.size();
    for (size_t m = 0; m < to.size(); ++m) {
      Value* whole = nullptr;
      for (size_t n = 0; n < parts; ++n) {
        Value* part = ir_.CreateZExt(integers(in[m * parts + n]), narrow);
        if (n) {
          part = ir_.CreateShl(part, llvm::ConstantInt::get(narrow, n * (bits / parts)));
        }
        whole = whole ? ir_.CreateOr(whole, part) : part;
      }
      out.push_back(ir_.CreateBitCast(whole, WideType(to[m])));
    }
  }
  SetWide(cast, out);
  return {};
}

// --------------------------------------------------------------------------------------------------- calls

Status Widener::EmitCall(llvm::CallInst& call) {
  llvm::Function* f = call.getCalledFunction();
  if (!f) return Refuse("a call through a pointer");
  llvm::StringRef name = f->getName();
  if (name == marker::kCheckWindow) return EmitCheckWindow(call);
  if (name == marker::kCheckBounds) return EmitCheckBounds(call);
  if (name == marker::kBarrier) return EmitBarrier(call);
  if (name == marker::kCollective) return EmitCollective(call, false);
  if (name == marker::kCollective64) return EmitCollective(call, true);
  if (name.starts_with(marker::kMatrix)) return EmitMatrix(call);
  if (name.starts_with("thread.")) return EmitPureMarker(call);
  if (f->isIntrinsic()) {
    switch (f->getIntrinsicID()) {
      case Intrinsic::assume:
      case Intrinsic::lifetime_start:
      case Intrinsic::lifetime_end:
      case Intrinsic::experimental_noalias_scope_decl:
        return {};
      default:
        break;
    }
  }
  if (IsBound(call) && ShapeOf(&call).affine()) {
    // In place of the bound: what it lets through. A clone keeps both operands at hand.
    Instruction* clone = call.clone();
    for (unsigned n = 0; n < 2; ++n) clone->setOperand(n, Scalar(call.getArgOperand(n)));
    clone->dropPoisonGeneratingFlags();
    ir_.Insert(clone);
    clones_[&call] = clone;
    SetScalar(call, clone->getOperand(ShapeOf(call.getArgOperand(0)).affine() ? 0 : 1));
    return {};
  }
  if (!call.getType()->isVoidTy() && ShapeOf(&call).uniform()) {
    EmitScalar(call);
    return {};
  }
  if (f->isIntrinsic() && !llvm::isa<llvm::MemIntrinsic>(call)) return EmitWideIntrinsic(call);
  return EmitPerLane(call);
}

Status Widener::EmitWideIntrinsic(llvm::CallInst& call) {
  ID id = call.getIntrinsicID();
  bool overflows = llvm::isa<llvm::WithOverflowInst>(call);
  if (!overflows && !IsElementwise(id)) return EmitPerLane(call);
  if (IsHuge(call.getArgOperand(0)->getType())) return EmitPerLane(call);
  size_t n = Vector(call.getArgOperand(0)).size();
  if (overflows && n != 1) return EmitPerLane(call);
  Wide out;
  for (size_t k = 0; k < n; ++k) {
    std::vector<Value*> args;
    for (unsigned a = 0; a < call.arg_size(); ++a) {
      Value* v = call.getArgOperand(a);
      args.push_back(call.paramHasAttr(a, llvm::Attribute::ImmArg) ? v : Vector(v)[k]);
    }
    Value* made = ir_.CreateIntrinsic(id, {args[0]->getType()}, args);
    if (!overflows) {
      out.push_back(made);
    } else {
      out.push_back(ir_.CreateExtractValue(made, 0));
      out.push_back(ir_.CreateExtractValue(made, 1));
    }
  }
  SetWide(call, out);
  return {};
}

/// c and the products of four bytes, of scalars or of lanes.
Value* Widener::DotProduct(Value* a, Value* b, Value* c, bool a_signed, bool b_signed) {
  llvm::Type* t = a->getType();
  auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(t, v); };
  if (!t->isVectorTy() || !warp_.dot_products) {
    for (unsigned i = 0; i < 4; ++i) {
      auto byte = [&](Value* v, bool is_signed) {
        v = ir_.CreateShl(v, constant(24 - 8 * i));
        return is_signed ? ir_.CreateAShr(v, constant(24)) : ir_.CreateLShr(v, constant(24));
      };
      c = ir_.CreateAdd(c, ir_.CreateMul(byte(a, a_signed), byte(b, b_signed)));
    }
    return c;
  }
  // The instruction takes the first bytes unsigned and the second signed. Turning the top bit over adds 128
  // to a signed byte, or takes it from an unsigned one; what that adds to the sum is 128 times the other's
  // bytes.
  unsigned lanes = std::min(width_, 16u);
  auto dot = [&](Value* sum, Value* bytes, Value* signed_bytes) {
    auto id = lanes == 16 ? Intrinsic::x86_avx512_vpdpbusd_512 : Intrinsic::x86_avx512_vpdpbusd_256;
    auto part = [&](Value* v, unsigned from) -> Value* {
      if (width_ == lanes) return v;
      std::vector<int> mask;
      for (unsigned n = 0; n < lanes; ++n) mask.push_back(static_cast<int>(from + n));
      return ir_.CreateShuffleVector(v, mask);
    };
    Value* whole = nullptr;
    for (unsigned from = 0; from < width_; from += lanes) {
      Value* made =
          ir_.CreateIntrinsic(id, {}, {part(sum, from), part(bytes, from), part(signed_bytes, from)});
      if (!whole) {
        whole = made;
        continue;
      }
      std::vector<int> mask;
      for (unsigned n = 0; n < 2 * lanes; ++n) mask.push_back(static_cast<int>(n));
      whole = ir_.CreateShuffleVector(whole, made, mask);
    }
    return whole;
  };
  Value* turned = constant(0x80808080);
  Value* ones = constant(0x01010101);
  Value* zero = constant(0);
  auto times_128 = [&](Value* v) { return ir_.CreateShl(v, constant(7)); };
  if (!a_signed && b_signed) return dot(c, a, b);
  if (a_signed && !b_signed) return dot(c, b, a);
  if (a_signed) return ir_.CreateSub(dot(c, ir_.CreateXor(a, turned), b), times_128(dot(zero, ones, b)));
  return ir_.CreateAdd(dot(c, a, ir_.CreateXor(b, turned)), times_128(dot(zero, a, ones)));
}

Status Widener::EmitPureMarker(llvm::CallInst& call) {
  llvm::StringRef name = call.getCalledFunction()->getName();
  llvm::Type* i32 = ir_.getInt32Ty();
  Value* first = nullptr;
  auto linear = [&] { return first = Field(offsetof(Warp, first), i32); };
  if (name == marker::kLinear) {
    SetScalar(call, linear());
  } else if (name == marker::kLaneid) {
    SetScalar(call, ir_.CreateAnd(linear(), I32(31)));
  } else if (name == marker::kWarpid) {
    SetScalar(call, ir_.CreateLShr(linear(), I32(5)));
  } else if (name == marker::kLocal) {
    SetScalar(call, Field(offsetof(Warp, local), ir_.getInt64Ty()));
  } else if (name == marker::kDotProduct) {
    bool uniform = ShapeOf(&call).uniform();
    std::vector<Value*> v;
    for (unsigned n = 0; n < 3; ++n) {
      v.push_back(uniform ? Scalar(call.getArgOperand(n)) : Single(call.getArgOperand(n)));
    }
    auto is_signed = [&](unsigned n) {
      return llvm::cast<llvm::ConstantInt>(call.getArgOperand(n))->isOne();
    };
    Value* sum = DotProduct(v[0], v[1], v[2], is_signed(3), is_signed(4));
    if (uniform) {
      SetScalar(call, sum);
    } else {
      SetWide(call, {sum});
    }
  } else if (name == marker::kOffset) {
    Value* v = call.getArgOperand(0);
    if (ShapeOf(&call).scalar()) {
      SetScalar(call, ir_.CreateSExt(Scalar(v), ir_.getInt64Ty()));
    } else {
      SetWide(call, {ir_.CreateSExt(Single(v), WideType(ir_.getInt64Ty()))});
    }
  } else {
    unsigned axis = name == marker::kTid[0] ? 0 : name == marker::kTid[1] ? 1 : 2;
    bool flat = warp_.block[1] == 1 && warp_.block[2] == 1;
    if (axis && flat) {
      SetScalar(call, I32(0));
    } else if (warp_.rows()) {
      SetScalar(call, Field(offsetof(Warp, tid) + 4 * axis, i32));
    } else {
      Value* number = ir_.CreateAdd(Splat(linear()), Steps(i32, 1));
      auto divide = [&](Value* v, uint32_t by) { return ir_.CreateUDiv(v, Splat(I32(by))); };
      auto rest = [&](Value* v, uint32_t by) { return ir_.CreateURem(v, Splat(I32(by))); };
      Value* v = axis == 0   ? rest(number, warp_.block[0])
                 : axis == 1 ? rest(divide(number, warp_.block[0]), warp_.block[1])
                             : divide(number, warp_.block[0] * warp_.block[1]);
      SetWide(call, {v});
    }
  }
  return {};
}

Status Widener::EmitPerLane(Instruction& i) {
  // Everything that differs goes through memory, an array for each operand and result.
  struct Array {
    Value* at = nullptr;
    llvm::Type* element = nullptr;
  };
  // Vectors of odd integers are packed in memory, arrays are not; so such are stored wider.
  auto odd = [](llvm::Type* t) {
    return t->isIntegerTy() && (t->getIntegerBitWidth() < 8 || !std::has_single_bit(t->getIntegerBitWidth()));
  };
  auto stored = [&](llvm::Type* t) -> llvm::Type* {
    return odd(t) ? ir_.getIntNTy(std::max(8u, std::bit_ceil(t->getIntegerBitWidth()))) : t;
  };
  auto array_of = [&](llvm::Type* element) {
    llvm::Type* t = stored(element);
    auto* slot = llvm::IRBuilder<>(slots_, slots_->begin()).CreateAlloca(llvm::ArrayType::get(t, width_));
    slot->setAlignment(llvm::Align(64));
    return Array{slot, element};
  };
  auto whole = [&](const Array& a) { return WideType(stored(a.element)); };
  auto put = [&](Value* vector) {
    Array a = array_of(vector->getType()->getScalarType());
    if (odd(a.element)) vector = ir_.CreateZExt(vector, whole(a));
    ir_.CreateAlignedStore(vector, a.at, llvm::Align(64));
    return a;
  };
  auto at = [&](const Array& a, Value* lane) { return ir_.CreateInBoundsGEP(stored(a.element), a.at, lane); };
  struct Source {
    Value* scalar = nullptr;  // the same in all lanes, or with `stride` the base
    int64_t stride = 0;
    std::vector<Array> arrays;
  };
  std::vector<Source> sources(i.getNumOperands());
  bool wants_lane = false;
  for (unsigned n = 0; n < i.getNumOperands(); ++n) {
    Value* v = i.getOperand(n);
    if (llvm::isa<llvm::Function>(v)) {
      sources[n].scalar = v;
    } else if (v == thread_.getArg(1)) {
      wants_lane = true;
      sources[n].scalar = FieldAddress(offsetof(Warp, lane));
    } else if (ShapeOf(v).uniform()) {
      sources[n].scalar = Scalar(v);
    } else if (ShapeOf(v).affine() && ShapeOf(v).wraps.empty()) {
      sources[n].scalar = Scalar(v);
      sources[n].stride = ShapeOf(v).stride;
    } else {
      if (v->getType()->isStructTy()) return Refuse("parts given to one lane");
      for (Value* part : Vector(v)) sources[n].arrays.push_back(put(part));
    }
  }
  std::vector<Array> results;
  bool used = !i.getType()->isVoidTy() && !i.use_empty();
  if (used) {
    for (llvm::Type* t : Elements(i.getType())) results.push_back(array_of(t));
  }
  Value* all = Bits32(lanes_);
  BasicBlock* before = ir_.GetInsertBlock();
  BasicBlock* turn = NewBlock("lane");
  BasicBlock* done = NewBlock("lanes");
  ir_.CreateBr(turn);
  ir_.SetInsertPoint(turn);
  auto* left = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  left->addIncoming(all, before);
  Value* lane = ir_.CreateIntrinsic(Intrinsic::cttz, {ir_.getInt32Ty()}, {left, ir_.getTrue()});
  Value* lane64 = ir_.CreateZExt(lane, ir_.getInt64Ty());
  if (wants_lane) {
    auto set = [&](size_t offset, Value* v) { StoreField(offsetof(Warp, lane) + offset, v); };
    Value* linear = ir_.CreateAdd(Field(offsetof(Warp, first), ir_.getInt32Ty()), lane);
    set(offsetof(Lane, linear), linear);
    Value* x = ir_.CreateURem(linear, I32(warp_.block[0]));
    Value* yz = ir_.CreateUDiv(linear, I32(warp_.block[0]));
    set(offsetof(Lane, tid), x);
    set(offsetof(Lane, tid) + 4, ir_.CreateURem(yz, I32(warp_.block[1])));
    set(offsetof(Lane, tid) + 8, ir_.CreateUDiv(yz, I32(warp_.block[1])));
    set(offsetof(Lane, local), ir_.CreateAdd(Field(offsetof(Warp, local), ir_.getInt64Ty()),
                                             ir_.CreateMul(lane64, I64(warp_.local_bytes))));
  }
  std::vector<Value*> operands;
  for (unsigned n = 0; n < sources.size(); ++n) {
    const Source& s = sources[n];
    llvm::Type* t = i.getOperand(n)->getType();
    auto get = [&](const Array& a) -> Value* {
      Value* v = ir_.CreateLoad(stored(a.element), at(a, lane64));
      return odd(a.element) ? ir_.CreateTrunc(v, a.element) : v;
    };
    if (s.scalar && !s.stride) {
      operands.push_back(s.scalar);
    } else if (s.scalar && t->isPointerTy()) {
      operands.push_back(ir_.CreateGEP(ir_.getInt8Ty(), s.scalar,
                                       ir_.CreateMul(lane64, I64(static_cast<uint64_t>(s.stride)))));
    } else if (s.scalar) {
      Value* steps = ir_.CreateZExtOrTrunc(ir_.CreateMul(lane64, I64(static_cast<uint64_t>(s.stride))), t);
      operands.push_back(ir_.CreateAdd(s.scalar, steps));
    } else if (!t->isVectorTy()) {
      operands.push_back(get(s.arrays[0]));
    } else {
      Value* v = llvm::PoisonValue::get(t);
      for (uint64_t k = 0; k < s.arrays.size(); ++k) v = ir_.CreateInsertElement(v, get(s.arrays[k]), k);
      operands.push_back(v);
    }
  }
  std::vector<Value*> made;
  auto take = [&](Value* v) {
    llvm::Type* t = i.getType();
    auto parts = Elements(t);
    for (unsigned k = 0; k < parts.size(); ++k) {
      made.push_back(t->isVectorTy()   ? ir_.CreateExtractElement(v, static_cast<uint64_t>(k))
                     : t->isStructTy() ? ir_.CreateExtractValue(v, k)
                                       : v);
    }
  };
  auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i);
  auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i);
  bool own = (rmw && rmw->getSyncScopeID() == llvm::SyncScope::SingleThread) ||
             (swap && swap->getSyncScopeID() == llvm::SyncScope::SingleThread);
  if (own) {
    // Nobody else runs: plain instructions are as good.
    llvm::Type* t = operands[1]->getType();
    llvm::Align align = rmw ? rmw->getAlign() : swap->getAlign();
    Value* old = ir_.CreateAlignedLoad(t, operands[0], align);
    Value* v = nullptr;
    if (swap) {
      Value* same = ir_.CreateICmpEQ(old, operands[1]);
      v = ir_.CreateSelect(same, operands[2], old);
      made = {old, same};
    } else {
      Value* b = operands[1];
      using R = llvm::AtomicRMWInst;
      auto both = [&](ID id) { return ir_.CreateBinaryIntrinsic(id, old, b); };
      Value* zero = llvm::Constant::getNullValue(t);
      Value* one = t->isIntegerTy() ? llvm::ConstantInt::get(t, 1) : zero;
      switch (rmw->getOperation()) {
        case R::Xchg:
          v = b;
          break;
        case R::Add:
          v = ir_.CreateAdd(old, b);
          break;
        case R::Sub:
          v = ir_.CreateSub(old, b);
          break;
        case R::And:
          v = ir_.CreateAnd(old, b);
          break;
        case R::Or:
          v = ir_.CreateOr(old, b);
          break;
        case R::Xor:
          v = ir_.CreateXor(old, b);
          break;
        case R::Max:
          v = both(Intrinsic::smax);
          break;
        case R::Min:
          v = both(Intrinsic::smin);
          break;
        case R::UMax:
          v = both(Intrinsic::umax);
          break;
        case R::UMin:
          v = both(Intrinsic::umin);
          break;
        case R::FAdd:
          v = ir_.CreateFAdd(old, b);
          break;
        case R::UIncWrap:
          v = ir_.CreateSelect(ir_.CreateICmpUGE(old, b), zero, ir_.CreateAdd(old, one));
          break;
        case R::UDecWrap:
          v = ir_.CreateSelect(ir_.CreateOr(ir_.CreateICmpEQ(old, zero), ir_.CreateICmpUGT(old, b)), b,
                               ir_.CreateSub(old, one));
          break;
        default:
          return Refuse("an atomic operation that it does not know");
      }
      made = {old};
    }
    ir_.CreateAlignedStore(v, operands[0], align);
  } else {
    Instruction* clone = i.clone();
    for (unsigned n = 0; n < operands.size(); ++n) clone->setOperand(n, operands[n]);
    ir_.Insert(clone);
    if (used) take(clone);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    Value* v = made[k];
    if (odd(v->getType())) v = ir_.CreateZExt(v, stored(v->getType()));
    ir_.CreateStore(v, at(results[k], lane64));
  }
  Value* rest = ir_.CreateAnd(left, ir_.CreateSub(left, I32(1)));
  left->addIncoming(rest, ir_.GetInsertBlock());
  ir_.CreateCondBr(ir_.CreateICmpNE(rest, I32(0)), turn, done);
  ir_.SetInsertPoint(done);
  if (used) {
    Wide out;
    for (const Array& a : results) {
      Value* v = ir_.CreateFreeze(ir_.CreateAlignedLoad(whole(a), a.at, llvm::Align(64)));
      out.push_back(odd(a.element) ? ir_.CreateTrunc(v, WideType(a.element)) : v);
    }
    SetWide(i, out);
  }
  return {};
}

}  // namespace cuplex::softcuda::lockstep
