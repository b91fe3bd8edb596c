// mov ld st cvta isspacep mapa createpolicy membar fence: values and the memory they lie in.
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

bool IsSigned(Type t) { return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64; }

Type BitsType(unsigned bits) {
  switch (bits) {
    case 8:
      return Type::kB8;
    case 16:
      return Type::kB16;
    case 32:
      return Type::kB32;
    case 64:
      return Type::kB64;
    default:
      return Type::kB128;
  }
}

Space MemorySpace(const Instruction& in) {
  Space s = in.SpaceAt();
  return s == Space::kSharedCta || s == Space::kSharedCluster ? Space::kShared : s;
}

/// How a load or store is ordered against other threads'.
struct Order {
  bool is_volatile = false;
  llvm::AtomicOrdering atomic = llvm::AtomicOrdering::NotAtomic;
};
Order OrderOf(const Instruction& in, Space space) {
  // A block's threads take turns on one worker, so its own memory needs no more than not being cached.
  bool own = space == Space::kShared || space == Space::kLocal || space == Space::kParam;
  switch (in.Order()) {
    case Mod::kVolatile:
    case Mod::kMmio:
      return {true, own ? llvm::AtomicOrdering::NotAtomic : llvm::AtomicOrdering::Monotonic};
    case Mod::kRelaxed:
      return own ? Order{true, llvm::AtomicOrdering::NotAtomic}
                 : Order{false, llvm::AtomicOrdering::Monotonic};
    case Mod::kAcquire:
      return {false, llvm::AtomicOrdering::Acquire};
    case Mod::kRelease:
      return {false, llvm::AtomicOrdering::Release};
    default:
      return {in.Has(Mod::kCv) || in.Has(Mod::kWt), llvm::AtomicOrdering::NotAtomic};
  }
}

}  // namespace

Status EmitMov(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  Type t = in.TypeAt();
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  unsigned bits = ptx::BitsOf(t);
  for (const Operand& op : in.operands) {
    if (op.kind != OperandKind::kVector) continue;
    size_t n = op.parts.size();
    if ((n != 2 && n != 4) || bits / n < 8)
      return e.Refuse(in, "packs or unpacks in a way that PTX does not have");
  }
  if (from.kind == OperandKind::kVector) {  // pack, the first part lowest
    unsigned part = bits / static_cast<unsigned>(from.parts.size());
    Value* v = llvm::ConstantInt::get(e.Int(bits), 0);
    for (size_t i = 0; i < from.parts.size(); ++i) {
      TRY(Value * p, e.Read(in, from.parts[i], BitsType(part)));
      v = e.ir.CreateOr(v, e.ir.CreateShl(e.ir.CreateZExt(p, e.Int(bits)), i * part));
    }
    return e.Write(in, to, v);
  }
  if (to.kind == OperandKind::kVector) {
    unsigned part = bits / static_cast<unsigned>(to.parts.size());
    TRY(Value * v, e.Read(in, from, BitsType(bits)));
    for (size_t i = 0; i < to.parts.size(); ++i) {
      TRY(e.Write(in, to.parts[i], e.ir.CreateTrunc(e.ir.CreateLShr(v, i * part), e.Int(part))));
    }
    return {};
  }
  TRY(Value * v, e.Read(in, from, t));
  return e.Write(in, to, v, IsSigned(t));
}

Status EmitLd(Emitter& e, const Instruction& in) {
  size_t wants = 2u + in.Has(Mod::kL2CacheHint);
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  Type t = in.TypeAt();
  unsigned n = in.VectorWidth(), size = ptx::BitsOf(t) / 8;
  if (!size) return e.Refuse(in, "loads a type that has no bytes");
  const Operand& to = in.operands[0];
  if (n > 1 && (to.kind != OperandKind::kVector || to.parts.size() != n)) {
    return e.Refuse(in, fmt::format("needs {} destinations", n));
  }
  Space space = MemorySpace(in);
  TRY(Value * at, e.Address(in, in.operands[1], space, n * size));
  Order order = OrderOf(in, space);
  llvm::Type* one = e.TypeFor(t);
  if (one->isVectorTy() || one->isHalfTy()) one = e.Int(size * 8);
  if (order.atomic != llvm::AtomicOrdering::NotAtomic && size <= 8) {
    for (unsigned i = 0; i < n; ++i) {
      auto* load = e.ir.CreateAlignedLoad(e.Int(size * 8),
                                          e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), at, i * size),
                                          llvm::Align(size), order.is_volatile);
      load->setAtomic(order.atomic);
      e.MarkProgramAccess(load);
      TRY(e.Write(in, n > 1 ? to.parts[i] : to, load, IsSigned(t)));
    }
    return {};
  }
  llvm::Type* type = n > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(one, n)) : one;
  auto* load = e.ir.CreateAlignedLoad(type, at, llvm::Align(n * size), order.is_volatile);
  e.MarkProgramAccess(load);
  bool param = space == Space::kParam || space == Space::kParamEntry;
  if (param && e.IsKernelParameter(in.operands[1])) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.ir.getContext(), {}));
  }
  for (unsigned i = 0; i < n; ++i) {
    Value* v = n > 1 ? e.ir.CreateExtractElement(load, static_cast<uint64_t>(i)) : static_cast<Value*>(load);
    TRY(e.Write(in, n > 1 ? to.parts[i] : to, v, IsSigned(t)));
  }
  return {};
}

Status EmitSt(Emitter& e, const Instruction& in) {
  if (in.Has(Mod::kBulk)) {  // st.bulk: zeros
    if (in.operands.size() != 3) return e.Refuse(in, "takes 3 operands");
    Space space = MemorySpace(in);
    TRY(Value * to, e.PlainAddress(in, in.operands[0], space));
    TRY(Value * size, e.Read(in, in.operands[1], Type::kU64));
    e.CallRuntime("cuplex_bulk_zero", e.ir.getVoidTy(), {e.lane(), to, size, e.I32(space == Space::kShared)});
    return {};
  }
  // st.async tells an mbarrier, its third operand, and is done here when it is issued.
  bool async = in.Has(Mod::kAsync);
  size_t wants = 2u + async + in.Has(Mod::kL2CacheHint);
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  Type t = in.TypeAt();
  unsigned n = in.VectorWidth(), size = ptx::BitsOf(t) / 8;
  if (!size) return e.Refuse(in, "stores a type that has no bytes");
  const Operand& from = in.operands[1];
  if (n > 1 && (from.kind != OperandKind::kVector || from.parts.size() != n)) {
    return e.Refuse(in, fmt::format("needs {} sources", n));
  }
  Space space = MemorySpace(in);
  std::vector<Value*> values;
  for (unsigned i = 0; i < n; ++i) {
    TRY(Value * v, e.Read(in, n > 1 ? from.parts[i] : from, t));
    if (v->getType()->isVectorTy() || v->getType()->isHalfTy()) v = e.ToBits(v);
    values.push_back(v);
  }
  TRY(Value * at, e.Address(in, in.operands[0], space, n * size));
  Order order = OrderOf(in, space);
  if (order.atomic != llvm::AtomicOrdering::NotAtomic && size <= 8) {
    for (unsigned i = 0; i < n; ++i) {
      auto* store = e.ir.CreateAlignedStore(e.ToBits(values[i]),
                                            e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), at, i * size),
                                            llvm::Align(size), order.is_volatile);
      store->setAtomic(order.atomic);
      e.MarkProgramAccess(store);
    }
    return {};
  }
  Value* v = values[0];
  if (n > 1) {
    v = llvm::PoisonValue::get(llvm::FixedVectorType::get(values[0]->getType(), n));
    for (unsigned i = 0; i < n; ++i) v = e.ir.CreateInsertElement(v, values[i], static_cast<uint64_t>(i));
  }
  e.MarkProgramAccess(e.ir.CreateAlignedStore(v, at, llvm::Align(n * size), order.is_volatile));
  return async ? CompleteTransaction(e, in, in.operands[2], e.I32(n * size)) : Status();
}

Status EmitCvta(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  if (ptx::BitsOf(in.TypeAt()) != 64)
    return e.Refuse(in, "converts addresses of 32 bits, which softcuda does not have");
  TRY(Value * v, e.Read(in, in.operands[1], Type::kB64));
  Value* base = nullptr;
  switch (in.SpaceAt()) {
    case Space::kShared:
    case Space::kSharedCta:
    case Space::kSharedCluster:
      base = e.shared_base();
      break;
    case Space::kLocal:
      base = e.local_base();
      break;
    case Space::kParam:
    case Space::kParamEntry:
      base = e.ContextField(offsetof(BlockContext, params), 64);
      break;
    case Space::kGlobal:
    case Space::kConst:
      return e.Write(in, in.operands[0], v);
    default:
      return e.Refuse(in, "converts addresses of a state space that softcuda does not have");
  }
  v = in.Has(Mod::kTo) ? e.ir.CreateSub(v, base) : e.ir.CreateAdd(v, base);
  return e.Write(in, in.operands[0], v);
}

Status EmitIsspacep(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(Value * v, e.Read(in, in.operands[1], Type::kB64));
  auto within = [&](Value* base, Value* bytes) { return e.ir.CreateICmpULT(e.ir.CreateSub(v, base), bytes); };
  auto constant = [&]() -> Value* {
    Value* p = e.ir.getFalse();
    for (size_t i = 0; i < e.build.module.variables.size(); ++i) {
      const ptx::Variable& variable = e.build.module.variables[i];
      if (variable.space != Space::kConst) continue;
      p = e.ir.CreateOr(
          p, within(e.build.VariableAddress(static_cast<uint32_t>(i)), e.I64(variable.SizeBytes())));
    }
    return p;
  };
  Value* p = nullptr;
  switch (in.SpaceAt()) {
    case Space::kShared:
    case Space::kSharedCta:
    case Space::kSharedCluster:
      p = within(e.shared_base(), e.I64(kSharedWindow));
      break;
    case Space::kLocal:
      p = within(e.local_base(),
                 e.ir.CreateZExt(e.ContextField(offsetof(BlockContext, local_bytes), 32), e.Int(64)));
      break;
    case Space::kParam:
    case Space::kParamEntry:
      p = within(e.ContextField(offsetof(BlockContext, params), 64), e.I64(kParamWindow));
      break;
    case Space::kConst:
      p = constant();
      break;
    case Space::kGlobal: {
      const Window& aperture = e.build.window.aperture();
      p = e.ir.CreateNot(e.ir.CreateOr(within(e.I64(aperture.base), e.I64(aperture.size)), constant()));
      break;
    }
    default:
      return e.Refuse(in, "asks for a state space that softcuda does not have");
  }
  return e.Write(in, in.operands[0], p);
}

Status EmitFence(Emitter& e, const Instruction& in) {
  if (in.Scope() == Mod::kCta) {
    e.ir.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
  } else {
    e.ir.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  }
  return {};
}

Status EmitNothing(Emitter&, const Instruction&) { return {}; }

Status EmitCreatepolicy(Emitter& e, const Instruction& in) {
  if (in.operands.empty()) return e.Refuse(in, "has no operands");
  return e.Write(in, in.operands[0], e.I64(0));  // whatever it says, there is no cache to say it to
}

Status EmitMapa(Emitter& e, const Instruction& in) {
  // The one block of a cluster has its own addresses, and number 0.
  if (in.opcode == ptx::Opcode::kGetctarank) {
    if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
    return e.Write(in, in.operands[0], e.I32(0));
  }
  if (in.operands.size() != 3) return e.Refuse(in, "takes 3 operands");
  TRY(Value * v, e.Read(in, in.operands[1], in.TypeAt()));
  return e.Write(in, in.operands[0], v);
}

}  // namespace cuplex::softcuda
