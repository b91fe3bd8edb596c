#include "client/graph/graphs.h"

#include <algorithm>

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {

Graphs::Graphs()
    : captures([this](graph::StreamId stream, bool captured) {
        if (captured) {
          captured_streams.insert(stream);
        } else {
          captured_streams.erase(stream);
        }
        captures_.store(static_cast<int>(captured_streams.size()), std::memory_order_relaxed);
      }) {}
Graphs::~Graphs() = default;

std::shared_ptr<graph::Memory> Graphs::FindMemory(uint64_t address) {
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

void Graphs::Learn(const std::shared_ptr<graph::Memory>& memory) {
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

void Graphs::Allocated(graph::Memory& memory, bool allocated) {
  if (memory.allocated == allocated) return;
  memory.allocated = allocated;
  std::lock_guard lock(use_mutex_);
  Use& use = use_[memory.device];
  use.used += allocated ? memory.bytes : -memory.bytes;
  use.most_used = std::max(use.most_used, use.used);
}

void Graphs::Held(const graph::Memory& memory, bool held) {
  std::lock_guard lock(use_mutex_);
  Use& use = use_[memory.device];
  use.held += held ? memory.bytes : -memory.bytes;
  use.most_held = std::max(use.most_held, use.held);
  if (!held && memory.allocated) use.used -= memory.bytes;
}

}  // namespace cuplex::client
