#include "softcuda/jit/lockstep/flow.h"

#include <algorithm>

#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

namespace cuplex::softcuda::lockstep {

using llvm::BasicBlock;
using llvm::Loop;

namespace {
constexpr uint32_t kNowhere = UINT32_MAX;
}

Flow::Flow(llvm::Function& function) : dominators_(function), postdominators_(function), loops_(dominators_) {
  std::vector<BasicBlock*> order;
  Sort(nullptr, &function.getEntryBlock(), order);
  // Lanes that wait anywhere else must have their turn first.
  auto end = std::find_if(order.begin(), order.end(),
                          [](BasicBlock* b) { return llvm::isa<llvm::ReturnInst>(b->getTerminator()); });
  if (end != order.end()) std::rotate(end, end + 1, order.end());
  blocks_.resize(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    blocks_[i].ir = order[i];
    index_[order[i]] = i;
    if (llvm::isa<llvm::ReturnInst>(order[i]->getTerminator())) return_ = i;
  }
}

/// Appends the blocks of a loop (of the function without one) in topological order, inner loops in one piece.
void Flow::Sort(Loop* loop, BasicBlock* header, std::vector<BasicBlock*>& out) {
  // A node is a block of this loop or the header of one inside.
  auto child_of = [&](BasicBlock* b) -> Loop* {
    Loop* l = loops_.getLoopFor(b);
    if (l == loop) return nullptr;
    while (l && l->getParentLoop() != loop) l = l->getParentLoop();
    return l;
  };
  auto successors = [&](BasicBlock* node) {
    std::vector<BasicBlock*> to;
    auto add = [&](BasicBlock* s) {
      if (loop && !loop->contains(s)) return;
      if (s == header) return;
      Loop* inner = child_of(s);
      to.push_back(inner ? inner->getHeader() : s);
    };
    Loop* self = child_of(node);
    if (self) {
      llvm::SmallVector<BasicBlock*, 8> exits;
      self->getUniqueExitBlocks(exits);
      for (BasicBlock* e : exits) add(e);
    } else {
      for (BasicBlock* s : llvm::successors(node)) add(s);
    }
    return to;
  };
  std::vector<BasicBlock*> post;
  std::set<BasicBlock*> seen = {header};
  std::vector<std::pair<BasicBlock*, std::vector<BasicBlock*>>> path;
  path.emplace_back(header, successors(header));
  while (!path.empty()) {
    auto& [node, left] = path.back();
    if (left.empty()) {
      post.push_back(node);
      path.pop_back();
      continue;
    }
    // The last successor first, so that the first one comes first in the order.
    BasicBlock* to = left.back();
    left.pop_back();
    if (seen.insert(to).second) {
      auto next = successors(to);
      path.emplace_back(to, std::move(next));
    }
  }
  for (size_t i = post.size(); i-- > 0;) {
    Loop* inner = child_of(post[i]);
    if (inner) {
      Sort(inner, post[i], out);
    } else {
      out.push_back(post[i]);
    }
  }
}

/// A divergence whose ways begin at `starts` and are together again at `stop` (null: nowhere): which blocks
/// are under it, and where its ways meet.
void Flow::Spread(std::vector<uint32_t> at, const std::vector<BasicBlock*>& starts, BasicBlock* stop,
                  const Loop* around) {
  auto id = static_cast<uint32_t>(divergences_.size());
  uint32_t last = *std::min_element(at.begin(), at.end());
  divergences_.push_back({std::move(at)});
  std::vector<BasicBlock*> work;
  auto reach = [&](BasicBlock* b) {
    if (b != stop && blocks_[index_[b]].under.insert(id).second) work.push_back(b);
  };
  for (BasicBlock* s : starts) reach(s);
  if (around) {
    for (BasicBlock* b : around->blocks()) blocks_[index_[b]].under.insert(id);
  }
  while (!work.empty()) {
    BasicBlock* b = work.back();
    work.pop_back();
    for (BasicBlock* s : llvm::successors(b)) reach(s);
  }
  // Ways are told apart by the block they begin at, or last met at.
  std::vector<uint32_t> way(blocks_.size(), kNowhere);
  uint32_t end = stop ? index_[stop] : static_cast<uint32_t>(blocks_.size()) - 1;
  auto arrive = [&](uint32_t b, uint32_t from) {
    if (way[b] == kNowhere) {
      way[b] = from;
    } else if (way[b] != from) {
      blocks_[b].joins = true;
      way[b] = b;
    }
  };
  std::set<BasicBlock*> twice;
  for (BasicBlock* s : starts) {
    uint32_t b = index_[s];
    if (b > last || around) arrive(b, twice.insert(s).second ? b : kNowhere - 1);
  }
  for (uint32_t b = 0; b < end; ++b) {
    if (way[b] == kNowhere) continue;
    for (BasicBlock* s : llvm::successors(blocks_[b].ir)) {
      uint32_t t = index_[s];
      if (t > b) arrive(t, way[b]);
    }
  }
}

bool Flow::Diverge(uint32_t block) {
  Block& b = blocks_[block];
  if (b.diverges) return false;
  b.diverges = true;
  std::vector<BasicBlock*> starts(llvm::succ_begin(b.ir), llvm::succ_end(b.ir));
  auto* node = postdominators_.getNode(b.ir);
  auto* up = node ? node->getIDom() : nullptr;
  Spread({block}, starts, up ? up->getBlock() : nullptr, nullptr);
  return true;
}

bool Flow::DivergeLoops() {
  bool news = false;
  for (Loop* loop : loops_.getLoopsInPreorder()) {
    if (divergent_loops_.contains(loop)) continue;
    llvm::SmallVector<BasicBlock*, 8> exiting, exits;
    loop->getExitingBlocks(exiting);
    bool divergent = false;
    for (BasicBlock* e : exiting) {
      const Block& b = blocks_[index_[e]];
      divergent |= b.diverges;
      for (uint32_t d : b.under) {
        for (uint32_t at : divergences_[d].at) divergent |= loop->contains(blocks_[at].ir);
      }
    }
    if (!divergent) continue;
    divergent_loops_.insert(loop);
    news = true;
    loop->getUniqueExitBlocks(exits);
    BasicBlock* stop = exits.empty() ? nullptr : exits[0];
    for (BasicBlock* e : exits) {
      if (stop) stop = postdominators_.findNearestCommonDominator(stop, e);
      blocks_[index_[e]].joins = true;  // lanes come in different turns of the loop
    }
    std::vector<uint32_t> at;
    for (BasicBlock* e : exiting) at.push_back(index_[e]);
    Spread(at, {exits.begin(), exits.end()}, stop, loop);
  }
  return news;
}

void Flow::Linearise() {
  auto n = static_cast<uint32_t>(blocks_.size());
  std::vector<bool> forced(n, false);
  for (uint32_t i = 0; i < n; ++i) {
    Block& b = blocks_[i];
    Loop* loop = loops_.getLoopFor(b.ir);
    if (loop && loop->getHeader() == b.ir && IsDivergent(loop)) {
      llvm::SmallVector<BasicBlock*, 8> exits;
      loop->getUniqueExitBlocks(exits);
      for (BasicBlock* e : exits) b.deferred.insert(index_[e]);
    }
    // From here to `target` with what is deferred: where that goes first, and what is left to that block.
    auto go = [&](std::set<uint32_t> pending, uint32_t target) {
      pending.insert(target);
      uint32_t first = *pending.begin();
      pending.erase(pending.begin());
      blocks_[first].deferred.insert(pending.begin(), pending.end());
      if (first != target) forced[first] = true;
      return first;
    };
    b.deferred.erase(i);
    std::vector<uint32_t> targets;
    for (BasicBlock* s : llvm::successors(b.ir)) targets.push_back(index_[s]);
    b.next.resize(targets.size(), kNowhere);
    if (!b.diverges) {
      for (size_t k = 0; k < targets.size(); ++k) {
        b.next[k] = IsBack(i, targets[k]) ? targets[k] : go(b.deferred, targets[k]);
      }
    } else {
      std::set<uint32_t> pending = b.deferred;
      uint32_t ahead = kNowhere;
      for (uint32_t t : targets) {
        if (IsBack(i, t)) continue;
        pending.insert(t);
        forced[t] = true;
        ahead = t;
      }
      uint32_t first = ahead == kNowhere ? kNowhere : go(pending, ahead);
      if (first != kNowhere) forced[first] = true;
      for (size_t k = 0; k < targets.size(); ++k) b.next[k] = IsBack(i, targets[k]) ? targets[k] : first;
    }
    // Everything that ever waits is entered by whoever waits, or by nobody.
    for (uint32_t d : b.deferred) forced[d] = true;
    if (forced[i] && !b.deferred.empty()) {
      std::set<uint32_t> rest = b.deferred;
      uint32_t first = *rest.begin();
      rest.erase(rest.begin());
      blocks_[first].deferred.insert(rest.begin(), rest.end());
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    Block& b = blocks_[i];
    b.guarded = forced[i] && i != return_;
    b.skip = b.deferred.empty() ? return_ : *b.deferred.begin();
  }
  FindDominators();
  FindLeaders();
}

void Flow::FindDominators() {
  auto n = static_cast<uint32_t>(blocks_.size());
  std::vector<std::vector<uint32_t>> before(2 * n);
  for (uint32_t i = 0; i < n; ++i) {
    before[2 * i + 1].push_back(2 * i);
    if (blocks_[i].guarded) before[2 * blocks_[i].skip].push_back(2 * i);
    for (uint32_t t : blocks_[i].next) {
      if (t != kNowhere) before[2 * t].push_back(2 * i + 1);
    }
  }
  dominator_.assign(2 * n, kNowhere);
  dominator_[0] = 0;
  auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (a > b) a = dominator_[a];
      while (b > a) b = dominator_[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t v = 1; v < 2 * n; ++v) {
      uint32_t d = kNowhere;
      for (uint32_t p : before[v]) {
        if (p != 0 && dominator_[p] == kNowhere) continue;
        d = d == kNowhere ? p : meet(d, p);
      }
      if (d != kNowhere && dominator_[v] != d) {
        dominator_[v] = d;
        changed = true;
      }
    }
  }
}

bool Flow::Dominates(uint32_t outer, uint32_t inner) const {
  uint32_t o = 2 * outer + 1, v = 2 * inner + 1;
  while (v > o) {
    if (dominator_[v] == kNowhere) return false;
    v = dominator_[v];
  }
  return v == o;
}

/// A block has the lanes of its dominator where nothing between the two tells lanes apart for good.
void Flow::FindLeaders() {
  for (uint32_t i = 1; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    auto* node = dominators_.getNode(b.ir);
    if (!node || !node->getIDom()) continue;
    BasicBlock* up = node->getIDom()->getBlock();
    uint32_t p = index_[up];
    if (blocks_[p].under != b.under || !Dominates(p, i)) continue;
    bool same = true;
    // A loop that lanes leave one by one has fewer of them in every turn.
    for (const Loop* l = loops_.getLoopFor(b.ir); l && !l->contains(up); l = l->getParentLoop()) {
      same &= !IsDivergent(l);
    }
    for (const Divergence& d : divergences_) {
      for (uint32_t at : d.at) {
        BasicBlock* x = blocks_[at].ir;
        if (dominators_.dominates(up, x) && !dominators_.dominates(b.ir, x)) {
          same &= postdominators_.dominates(b.ir, x);
        }
      }
    }
    if (!same) continue;
    b.shares = true;
    b.leader = blocks_[p].shares ? blocks_[p].leader : p;
  }
  for (Block& b : blocks_) {
    if (b.shares) b.guarded = false;
  }
  FindDominators();  // fewer guards
}

bool Flow::IsGathered(uint32_t block) const {
  const auto& d = blocks_[block].deferred;
  return d.empty() || (d.size() == 1 && *d.begin() == return_);
}

}  // namespace cuplex::softcuda::lockstep
