#include "client/graph/graphs.h"

#include <algorithm>

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {

GraphMemory::~GraphMemory() {
  Session* session = Attached();
  if (!session) return;
  session->graphs.Held(*this, false);
  // Where its context has ended it is gone already.
  if (!session->gone() && session->allocations.Take(address, {Allocation::kGraph}))
    (void)session->submission().Post(Op::cuMemFree_v2, context, wire::cuMemFree_v2Args(address));
}

Graphs::Graphs() = default;
Graphs::~Graphs() = default;

std::shared_ptr<GraphMemory> Graphs::FindMemory(uint64_t address) {
  auto at = memory_.find(address);
  return at == memory_.end() ? nullptr : at->second.lock();
}

void Graphs::Learn(Graph& graph) {
  known_[&graph] = Kind::kGraph;
  for (auto& node : graph.nodes) Learn(*node);
}

void Graphs::Learn(GraphNode& node) {
  known_[&node] = Kind::kNode;
  if (auto* child = std::get_if<ChildWork>(&node.work)) Learn(*child->graph);
}

void Graphs::Learn(const std::shared_ptr<GraphMemory>& memory) {
  std::erase_if(memory_, [](const auto& each) { return each.second.expired(); });
  memory_[memory->address] = memory;
  Held(*memory, true);
}

void Graphs::Forget(Graph& graph) {
  known_.erase(&graph);
  for (auto& node : graph.nodes) Forget(*node);
}

void Graphs::Forget(GraphNode& node) {
  known_.erase(&node);
  if (auto* child = std::get_if<ChildWork>(&node.work)) Forget(*child->graph);
  for (auto& capture : captures)
    for (auto& [stream, tips] : capture->tips) std::erase(tips, &node);
  for (auto& [event, captured] : captured_events) std::erase(captured.nodes, &node);
}

void Graphs::ForgetContext(uint32_t context) {
  std::lock_guard lock(mutex);
  for (size_t i = captures.size(); i-- > 0;)
    if (captures[i]->context == context) EndCapture(*this, *captures[i]);
}

void Graphs::CountCaptures() {
  captures_.store(static_cast<int>(captures.size()), std::memory_order_relaxed);
}

Graphs::Use Graphs::UseOf(int device) {
  std::lock_guard lock(use_mutex_);
  return use_[device];
}

void Graphs::ResetMost(int device, bool used) {
  std::lock_guard lock(use_mutex_);
  Use& use = use_[device];
  if (used) {
    use.most_used = use.used;
  } else {
    use.most_held = use.held;
  }
}

void Graphs::Allocated(GraphMemory& memory, bool allocated) {
  if (memory.allocated == allocated) return;
  memory.allocated = allocated;
  std::lock_guard lock(use_mutex_);
  Use& use = use_[memory.device];
  use.used += allocated ? memory.bytes : -memory.bytes;
  use.most_used = std::max(use.most_used, use.used);
}

void Graphs::Held(const GraphMemory& memory, bool held) {
  std::lock_guard lock(use_mutex_);
  Use& use = use_[memory.device];
  use.held += held ? memory.bytes : -memory.bytes;
  use.most_held = std::max(use.most_held, use.held);
  if (!held && memory.allocated) use.used -= memory.bytes;
}

}  // namespace cuplex::client
