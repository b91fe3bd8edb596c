#include "softcuda/graph/graphs.h"

#include <algorithm>

#include "softcuda/call.h"

namespace cuplex::softcuda {

Graphs::Graphs()
    : captures([this](graph::StreamId id, bool is) {
        Stream& stream = *streams_.at(id);
        stream.captured.store(is, std::memory_order_relaxed);
        captured_.fetch_add(is ? 1 : -1, std::memory_order_relaxed);
        if (stream.kind == Stream::Kind::kBlocking) stream.context.captured_blocking.fetch_add(is ? 1 : -1);
        if (!is) streams_.erase(id);
      }) {}

void Graphs::Introduce(Stream* stream) {
  streams_.try_emplace(stream->id, HandleTable<Stream>::Share(stream));
}

void Graphs::Learn(const graph::Graph& graph) {
  known_[&graph] = Kind::kGraph;
  for (const auto& node : graph.nodes) Learn(*node);
}

void Graphs::Learn(const graph::GraphNode& node) {
  known_[&node] = Kind::kNode;
  if (auto* child = std::get_if<graph::ChildWork>(&node.work)) Learn(*child->graph);
}

void Graphs::Forget(const graph::Graph& graph) {
  known_.erase(&graph);
  for (const auto& node : graph.nodes) Forget(*node);
}

void Graphs::Forget(const graph::GraphNode& node) {
  known_.erase(&node);
  if (auto* child = std::get_if<graph::ChildWork>(&node.work)) Forget(*child->graph);
}

void Graphs::Learn(const std::shared_ptr<graph::Memory>& memory) {
  std::erase_if(memory_, [](const auto& each) { return each.second.expired(); });
  memory_[memory->address] = memory;
  has_memory_.store(true, std::memory_order_relaxed);
}

Graphs::Use Graphs::UseOf(int device) {
  std::lock_guard guard(use_lock_);
  return use_[device];
}

void Graphs::ResetMost(int device, bool used) {
  std::lock_guard guard(use_lock_);
  Use& use = use_[device];
  if (used) {
    use.most_used = use.used;
  } else {
    use.most_held = use.held;
  }
}

void Graphs::SetAllocated(graph::Memory& memory, bool allocated) {
  std::lock_guard guard(use_lock_);
  if (memory.allocated == allocated) return;
  memory.allocated = allocated;
  Use& use = use_[memory.device];
  use.used += allocated ? memory.bytes : -memory.bytes;
  use.most_used = std::max(use.most_used, use.used);
}

void Graphs::Hold(const graph::Memory& memory) {
  std::lock_guard guard(use_lock_);
  Use& use = use_[memory.device];
  use.held += memory.bytes;
  use.most_held = std::max(use.most_held, use.held);
}

void Graphs::Release(int device, uint64_t bytes, bool allocated) {
  std::lock_guard guard(use_lock_);
  Use& use = use_[device];
  use.held -= bytes;
  if (allocated) use.used -= bytes;
}

std::shared_ptr<graph::Memory> Graphs::MemoryAt(uint64_t address) {
  auto at = memory_.find(address);
  return at == memory_.end() ? nullptr : at->second.lock();
}

CUresult Graphs::RefuseUnsafe() {
  if (!capturing()) return CUDA_SUCCESS;
  std::lock_guard guard(lock);
  return captures.RefuseUnsafe(Thread::Here().id, Thread::Here().capture_mode);
}

CUresult Graphs::Refuse(Stream& stream) {
  if (!capturing()) return CUDA_SUCCESS;
  std::lock_guard guard(lock);
  if (stream.kind != Stream::Kind::kLegacy) return captures.Refuse(stream.id);
  std::vector<graph::StreamId> blocking;
  for (auto& [id, each] : streams_)
    if (&each->context == &stream.context && each->kind == Stream::Kind::kBlocking) blocking.push_back(id);
  return captures.RefuseLegacy(blocking);
}

CUresult Graphs::Refuse(Event& event) {
  if (!event.captured.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  std::lock_guard guard(lock);
  return captures.RefuseEvent(IdOf(&event));
}

CUresult Graphs::Refuse(Context& context) {
  if (!capturing()) return CUDA_SUCCESS;
  std::lock_guard guard(lock);
  return captures.RefuseContext(context.id);
}

void Graphs::Forget(Stream& stream) {
  if (!stream.captured.load(std::memory_order_relaxed)) return;
  std::lock_guard guard(lock);
  captures.Leave(stream.id);
}

void Graphs::Forget(Context& context) {
  if (!capturing()) return;
  std::lock_guard guard(lock);
  std::vector<graph::StreamId> gone;
  for (auto& [id, stream] : streams_)
    if (&stream->context == &context) gone.push_back(id);
  for (graph::StreamId id : gone) captures.Leave(id);
}

}  // namespace cuplex::softcuda
