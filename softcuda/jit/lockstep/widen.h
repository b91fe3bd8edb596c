// Widener: makes, of the code of one thread, the code of a warp whose lanes run in lockstep. A value that is
// the same in all lanes, or grows evenly from lane to lane, stays one scalar; the others become vectors.
//
// Used by one thread, for one function.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "base/result.h"
#include "softcuda/jit/lockstep/flow.h"
#include "softcuda/jit/lockstep/shape.h"
#include "softcuda/jit/lockstep/warp.h"
#include "softcuda/jit/program.h"
#include "softcuda/window.h"

namespace cuplex::softcuda::lockstep {

class Widener {
 public:
  using Value = llvm::Value;
  /// A value in all lanes: a vector for each element that the thread's value has (one for a scalar).
  using Wide = llvm::SmallVector<Value*, 2>;

  Widener(llvm::Function& thread, Flow& flow, const Shapes& shapes, const WarpShape& warp,
          const AddressWindow& window, llvm::Function& out);
  Status Run();

 private:
  // ---- widen.cc: blocks, ways between them, phis
  Status EmitBlock(uint32_t block);
  Status EmitTerminator(uint32_t block);
  void EmitEdge(uint32_t from, uint32_t to, Value* lanes);
  void LoadPhis(uint32_t block);
  llvm::BasicBlock* EntryOf(uint32_t block);

  // ---- widen_values.cc
  Status EmitInstruction(llvm::Instruction& i);
  Status EmitWide(llvm::Instruction& i);
  Status EmitCall(llvm::CallInst& call);
  Status EmitWideIntrinsic(llvm::CallInst& call);
  Status EmitWideCast(llvm::CastInst& cast);
  Status EmitWideDivision(llvm::BinaryOperator& op);
  Status EmitPureMarker(llvm::CallInst& call);
  Value* DotProduct(Value* a, Value* b, Value* c, bool a_signed, bool b_signed);
  /// The instruction once for each lane that is there, in their order.
  Status EmitPerLane(llvm::Instruction& i);
  void EmitScalar(llvm::Instruction& i);

  // ---- widen_memory.cc
  Status EmitLoad(llvm::LoadInst& load);
  Status EmitStore(llvm::StoreInst& store);
  Status EmitCheckWindow(llvm::CallInst& call);
  Status EmitCheckBounds(llvm::CallInst& call);
  /// A varying address as base + scale * index, the base the same in all lanes and the index of 32 bits, to
  /// be extended as a signed number. `scale` is a power of two.
  struct Indexed {
    Value* base = nullptr;   // i64
    Value* index = nullptr;  // <W x i32>
    unsigned scale = 0;      // 0: not of that form
    bool bounded = false;    // the index is an offset that was checked
  };
  Indexed Split(Value* address);
  Value* Pointers(const Indexed& indexed, int64_t offset);
  Value* Gather(llvm::Type* element, Value* addresses, Value* lanes, unsigned alignment);
  void Scatter(Value* values, Value* addresses, Value* lanes, unsigned alignment);
  Value* LoadRow(llvm::Type* element, Value* base, Value* lanes, unsigned alignment, bool is_volatile);
  void StoreRow(Value* values, Value* base, Value* lanes, unsigned alignment, bool is_volatile);
  void ReportOutside(Value* addresses, const char* function, llvm::ArrayRef<Value*> more);
  bool CanDescribe(const Shape& shape) const;
  Value* Describe(Value* v);
  /// Memory of the function's own that every unlikely case shares.
  Value* Scratch(Value*& slot, uint64_t bytes);

  // ---- widen_meeting.cc
  Status EmitCollective(llvm::CallInst& call, bool wide);
  Status EmitBarrier(llvm::CallInst& call);
  Result<Value*> Shuffle(llvm::CallInst& call, Value*& inside);

  // ---- widen_matrix.cc
  Status EmitMatrix(llvm::CallInst& call);
  /// Memory that holds a fragment, register by register, 32 lanes each. It lasts to the end of its block, or
  /// until it is given back.
  struct Home {
    llvm::AllocaInst* at = nullptr;
    uint64_t bytes = 0;
    bool taken = false;
  };
  size_t TakeHome(uint64_t bytes);
  struct Operand;
  Operand FindOperand(llvm::CallInst& call, unsigned first, unsigned count);

  // ---- values
  const Shape& ShapeOf(const Value* v) const { return shapes_.Of(v); }
  /// The scalar that a uniform value is, or an affine one has in lane 0.
  Value* Scalar(Value* v);
  /// The value in every lane, exact also where extensions wrap.
  Wide Vector(Value* v);
  Value* Single(Value* v) { return Vector(v)[0]; }
  void SetScalar(llvm::Value& v, Value* scalar) { scalar_[&v] = scalar; }
  void SetWide(llvm::Value& v, Wide wide) { wide_[&v] = std::move(wide); }
  /// i1: no extension in the affine value wraps inside the warp. Null where none can.
  Value* NeverWraps(const Shape& shape);
  Value* WrapOf(const llvm::Instruction& extension);
  Value* Splat(Value* scalar);
  Value* Steps(llvm::Type* integer, int64_t stride);  // <0, stride, 2 * stride ...>
  Wide SplatAll(Value* scalar);

  /// The lanes that are here, <W x i1>; null where all are, for certain.
  Value* Lanes() const { return lanes_; }
  Value* LanesOrAll();
  Value* Bits(Value* lanes);  // iW, bit i for lane i
  Value* Bits32(Value* lanes);
  Value* Any(Value* lanes);
  Value* AndLanes(Value* lanes, Value* more);

  // ---- words
  llvm::FixedVectorType* WideType(llvm::Type* element) { return llvm::FixedVectorType::get(element, width_); }
  llvm::ConstantInt* I32(uint32_t v) { return ir_.getInt32(v); }
  llvm::ConstantInt* I64(uint64_t v) { return ir_.getInt64(v); }
  llvm::BasicBlock* NewBlock(const char* name);
  Value* NewSlot(llvm::Type* type);
  Value* Field(size_t offset, llvm::Type* type);
  void StoreField(size_t offset, Value* value);
  Value* FieldAddress(size_t offset);
  Value* Call(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args);
  /// Code for an unlikely case, built by `cold` where `likely` is false; both go on together.
  void Unless(Value* likely, const std::function<void()>& cold);
  /// One of two values, by two ways of making it.
  Wide Choose(Value* likely, const std::function<Wide()>& hot, const std::function<Wide()>& cold);
  Error Refuse(const std::string& why) const;

  llvm::Function& thread_;
  Flow& flow_;
  const Shapes& shapes_;
  const WarpShape& warp_;
  const AddressWindow& window_;
  llvm::Function& out_;
  llvm::IRBuilder<> ir_;
  const llvm::DataLayout& layout_;
  unsigned width_;

  uint32_t at_ = 0;         // the block that is being made
  Value* lanes_ = nullptr;  // its lanes
  Value* all_ = nullptr;    // the lanes there are at the start; null where all
  llvm::BasicBlock* slots_ = nullptr;
  Value *described_ = nullptr, *list_ = nullptr, *values_ = nullptr;  // Scratch
  std::map<const Value*, Value*> scalar_;
  std::map<const Value*, Wide> wide_;
  std::map<const llvm::Instruction*, Value*> never_wraps_;
  std::map<const llvm::Instruction*, llvm::Instruction*> clones_;  // of what Shape::wraps names
  struct Slots {
    Value* scalar = nullptr;
    Wide wide;
  };
  std::map<const Value*, Slots> phis_;
  std::map<const Value*, Slots> spilled_;  // values used where their block does not dominate
  struct Made {
    llvm::BasicBlock* entry = nullptr;
    llvm::BasicBlock* body = nullptr;
    Value* lanes = nullptr;
    Value* slot = nullptr;  // of lanes that wait to enter
  };
  std::vector<Made> made_;
  std::vector<Home> homes_;
  /// Of the block that is being made: matrix instructions whose results lie in a home, its number, and how
  /// many others will still look there.
  struct Resident {
    size_t home = 0;
    size_t readers = 0;
  };
  std::map<const llvm::CallInst*, Resident> residents_;
};

}  // namespace cuplex::softcuda::lockstep
