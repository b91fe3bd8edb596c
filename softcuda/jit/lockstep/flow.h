// Flow: the control flow of one thread's code, laid out so that all lanes of a warp run through it together.
//
// Blocks are put into an order in which every loop is one stretch. A branch whose lanes disagree goes on with
// the target that comes first and defers the others; a deferred block is entered, with the lanes that wait
// for it, before anything behind it in the order. Branches on which lanes agree stay branches wherever
// nothing is deferred in between. Pure; one thread.
//
// The function must be reducible, in LCSSA form with simplified loops, with one return and no switches.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace cuplex::softcuda::lockstep {

class Flow {
 public:
  explicit Flow(llvm::Function& function);

  struct Block {
    llvm::BasicBlock* ir = nullptr;
    /// A join of lanes that took different ways: its phis must blend.
    bool joins = false;
    /// The lanes disagree on its terminator.
    bool diverges = false;
    /// Divergences, by number, that decide which lanes get here.
    std::set<uint32_t> under;

    // Made by Linearise.
    std::set<uint32_t> deferred;  // where other lanes may wait when this block runs
    bool shares = false;          // the same lanes as in `leader`
    uint32_t leader = 0;
    bool guarded = false;  // may be entered without a lane: must look, and go on with `skip` then
    uint32_t skip = 0;
    /// Where each way out leads, in the order of the terminator's successors. For a branch that diverges both
    /// are the same; but the way back of a loop stays itself, taken while there are lanes for it.
    std::vector<uint32_t> next;
  };

  const std::vector<Block>& blocks() const { return blocks_; }
  uint32_t IndexOf(const llvm::BasicBlock* block) const { return index_.lookup(block); }
  const llvm::LoopInfo& loops() const { return loops_; }
  llvm::DominatorTree& dominators() { return dominators_; }

  /// Notes that the lanes disagree on the block's branch; true where that is news.
  bool Diverge(uint32_t block);
  /// Notes which loops are now left by some lanes before others; true where one is new.
  bool DivergeLoops();
  bool IsDivergent(const llvm::Loop* loop) const { return divergent_loops_.contains(loop); }
  bool IsBack(uint32_t from, uint32_t to) const { return to <= from; }

  /// Once all divergences are known.
  void Linearise();
  /// Whether whoever is in `inner` has been in `outer` before, by the ways that Linearise made.
  bool Dominates(uint32_t outer, uint32_t inner) const;
  /// Whether every lane that has not returned is here when the block runs.
  bool IsGathered(uint32_t block) const;
  uint32_t return_block() const { return return_; }

 private:
  struct Divergence {
    std::vector<uint32_t> at;  // blocks whose branches it is
  };

  void Sort(llvm::Loop* loop, llvm::BasicBlock* header, std::vector<llvm::BasicBlock*>& out);
  void Spread(std::vector<uint32_t> at, const std::vector<llvm::BasicBlock*>& starts, llvm::BasicBlock* stop,
              const llvm::Loop* around);
  void FindDominators();
  void FindLeaders();

  llvm::DominatorTree dominators_;
  llvm::PostDominatorTree postdominators_;
  llvm::LoopInfo loops_;
  std::vector<Block> blocks_;
  llvm::DenseMap<const llvm::BasicBlock*, uint32_t> index_;
  std::vector<Divergence> divergences_;
  std::set<const llvm::Loop*> divergent_loops_;
  std::vector<uint32_t> dominator_;  // of nodes: entry of block b is 2b, its body 2b + 1
  uint32_t return_ = 0;
};

}  // namespace cuplex::softcuda::lockstep
