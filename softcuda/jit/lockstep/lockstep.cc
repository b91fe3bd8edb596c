#include "softcuda/jit/lockstep/lockstep.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/FixIrreducible.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>
#include <llvm/Transforms/Utils/UnifyFunctionExitNodes.h>

#include "softcuda/jit/lockstep/flow.h"
#include "softcuda/jit/lockstep/suspension.h"
#include "softcuda/jit/lockstep/widen.h"

namespace cuplex::softcuda::lockstep {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

namespace {

/// Runs passes over one function.
class Passes {
 public:
  explicit Passes(llvm::TargetMachine& target) : builder_(&target) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(groups_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, groups_, modules_);
  }
  void Run(llvm::FunctionPassManager passes, Function& f) {
    passes.run(f, functions_);
    functions_.clear();
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager groups_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
};

/// What does not come back, traps and failed assertions, leads on to where the others are, so that it does
/// not count as a way of its own.
void JoinDeadEnds(Function& f) {
  for (BasicBlock& b : f) {
    if (!llvm::isa<llvm::UnreachableInst>(b.getTerminator())) continue;
    BasicBlock* before = b.getSinglePredecessor();
    auto* branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    if (!branch || !branch->isConditional()) continue;
    BasicBlock* other = branch->getSuccessor(branch->getSuccessor(0) == &b ? 1 : 0);
    if (other == &b || llvm::isa<llvm::UnreachableInst>(other->getTerminator())) continue;
    b.getTerminator()->eraseFromParent();
    for (Instruction& i : b) {
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) call->removeFnAttr(llvm::Attribute::NoReturn);
    }
    llvm::BranchInst::Create(other, &b);
    for (llvm::PHINode& phi : other->phis()) phi.addIncoming(phi.getIncomingValueForBlock(before), &b);
  }
}

/// Whether the instruction looks at memory that another thread may be about to change, on purpose.
bool Watches(const Instruction& i) {
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return load->isAtomic() || load->isVolatile();
  return llvm::isa<llvm::AtomicRMWInst>(i) || llvm::isa<llvm::AtomicCmpXchgInst>(i);
}

/// A compare and swap that retries with what it found: whenever it fails, another lane's has succeeded.
bool Retries(const llvm::AtomicCmpXchgInst& swap, const llvm::Loop& loop) {
  std::vector<const Value*> work = {swap.getCompareOperand()};
  std::set<const Value*> seen;
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    if (auto* e = llvm::dyn_cast<llvm::ExtractValueInst>(v)) {
      if (e->getAggregateOperand() == &swap) return true;
    }
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(v)) {
      if (loop.contains(load) && load->getPointerOperand() == swap.getPointerOperand()) return true;
    }
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(v)) {
      for (const Value* in : phi->incoming_values()) work.push_back(in);
    }
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(v)) work.push_back(cast->getOperand(0));
  }
  return false;
}

/// Counts: each turn gets another number, so the loop ends by itself.
bool Counts(const llvm::AtomicRMWInst& rmw) {
  auto* by = llvm::dyn_cast<llvm::ConstantInt>(rmw.getValOperand());
  return rmw.getOperation() == llvm::AtomicRMWInst::Add && by && !by->isZero();
}

/// In lockstep nobody waits for a lane of his own warp: a loop whose end depends on memory that it watches
/// might never end.
Status RefuseSpins(Flow& flow) {
  for (const llvm::Loop* loop : flow.loops().getLoopsInPreorder()) {
    std::vector<const Instruction*> watching;
    for (const BasicBlock* b : loop->blocks()) {
      for (const Instruction& i : *b) {
        if (!Watches(i)) continue;
        auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i);
        auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i);
        if ((swap && Retries(*swap, *loop)) || (rmw && Counts(*rmw))) continue;
        watching.push_back(&i);
      }
    }
    if (watching.empty()) continue;
    std::set<const Value*> tainted(watching.begin(), watching.end());
    auto spread = [&] {
      for (bool grew = true; grew;) {
        grew = false;
        for (const BasicBlock* b : loop->blocks()) {
          for (const Instruction& i : *b) {
            if (tainted.contains(&i)) continue;
            for (const Value* v : i.operands()) {
              if (tainted.contains(v)) grew |= tainted.insert(&i).second;
            }
          }
        }
      }
    };
    spread();
    // A branch so decided decides what values meet behind it.
    bool branches = false;
    for (const BasicBlock* b : loop->blocks()) branches |= tainted.contains(b->getTerminator());
    if (branches) {
      for (const BasicBlock* b : loop->blocks()) {
        if (b == loop->getHeader()) continue;
        for (const llvm::PHINode& phi : b->phis()) tainted.insert(&phi);
      }
      spread();
    }
    llvm::SmallVector<BasicBlock*, 8> exiting;
    loop->getExitingBlocks(exiting);
    for (BasicBlock* b : exiting) {
      bool always = flow.dominators().dominates(b, loop->getLoopLatch());
      if (tainted.contains(b->getTerminator()) || (branches && !always)) {
        return Fail(Blame::kUnsupported, "a warp cannot run in lockstep: a loop that waits for memory");
      }
    }
  }
  return {};
}

}  // namespace

Result<uint32_t> Widen(Function& thread, const WarpShape& warp, const AddressWindow& window,
                       llvm::TargetMachine& target) {
  Passes passes(target);
  {
    llvm::FunctionPassManager f;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass());
    // What is the same in all lanes must not become a choice between two ways.
    f.addPass(llvm::GVNPass(llvm::GVNOptions().setPRE(false).setLoadPRE(false)));
    f.addPass(llvm::DSEPass());
    f.addPass(llvm::ADCEPass());
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::LowerSwitchPass());
    f.addPass(llvm::UnifyFunctionExitNodesPass());
    f.addPass(llvm::FixIrreduciblePass());
    passes.Run(std::move(f), thread);
  }
  JoinDeadEnds(thread);
  // Nothing is left to do where all lanes return.
  for (BasicBlock& b : thread) {
    if (!llvm::isa<llvm::ReturnInst>(b.getTerminator())) continue;
    llvm::SplitBlock(&b, b.getTerminator());
    break;
  }
  {
    llvm::FunctionPassManager f;
    f.addPass(llvm::LoopSimplifyPass());
    f.addPass(llvm::LCSSAPass());
    passes.Run(std::move(f), thread);
  }
  bool returns = false;
  for (BasicBlock& b : thread) returns |= llvm::isa<llvm::ReturnInst>(b.getTerminator());
  if (!returns) return Fail(Blame::kUnsupported, "a warp cannot run in lockstep: a kernel that never ends");

  llvm::LLVMContext& c = thread.getContext();
  auto* ptr = llvm::PointerType::getUnqual(c);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(c), {ptr, ptr}, false);
  auto* out = Function::Create(type, Function::ExternalLinkage, "", thread.getParent());
  out->addFnAttr(llvm::Attribute::NoUnwind);
  out->addDereferenceableParamAttr(0, sizeof(BlockContext));
  out->addDereferenceableParamAttr(1, sizeof(Warp));
  out->addFnAttr("prefer-vector-width", "512");
  out->addFnAttr("min-legal-vector-width", "512");
  Flow flow(thread);
  TRY(RefuseSpins(flow));
  Shapes shapes(thread, flow, warp);
  flow.Linearise();
  TRY(Widener(thread, flow, shapes, warp, window, *out).Run());
  std::string name = thread.getName().str();
  thread.eraseFromParent();
  out->setName(name);
  {
    llvm::FunctionPassManager f;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::ADCEPass());
    passes.Run(std::move(f), *out);
  }
  uint32_t bytes = SplitSuspensions(*out);
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyFunction(*out, &stream)) {
    return Fail(Blame::kOurs, "the code made for a warp of `{}` is malformed: {}", name, complaint);
  }
  return bytes;
}

}  // namespace cuplex::softcuda::lockstep
