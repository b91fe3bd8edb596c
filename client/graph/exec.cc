#include "client/graph/exec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "client/copy.h"
#include "client/exports.h"
#include "client/frame.h"

namespace cuplex::client {
namespace {

constexpr size_t kMostSent = 64 << 10;  // bytes of nodes in one message

/// What stands for a node that does nothing.
const std::string& NothingFrame() {
  static const std::string* frame =
      new std::string(FrameOf(Op::wireFill, wire::wireFillArgs(0, 0, 0, 0, 0, 0, 1)));
  return *frame;
}

CUresult EncodeKernel(const Caller& caller, const KernelWork& work, Encoded* out) {
  if (work.context != caller.context->handle()) {
    Log().error(
        "a graph with kernels of several contexts, or of another context than the current one, is not "
        "carried.");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Function* function;
  Handle handle;
  if (CUresult r = ResolveFunction(caller, work.function, &function, &handle)) return r;
  const uint32_t bytes = function->facts.parameter_bytes;
  if (bytes != work.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [gx, gy, gz] = work.grid;
  const auto& [bx, by, bz] = work.block;
  const wire::wireLaunchArgs args(handle, 0, gx, gy, gz, bx, by, bz, work.shared_bytes,
                                  work.cooperative() ? kCooperative : 0, bytes);
  out->frames.push_back(FrameOf(Op::wireLaunch, args, bytes, [&](std::byte* to) {
    std::copy(work.parameters.begin(), work.parameters.end(), to);
  }));
  return CUDA_SUCCESS;
}

CUresult EncodeEvent(const Caller& caller, CUevent given, bool record, Encoded* out) {
  const Handle event = reinterpret_cast<Handle>(given);
  const Event* found = caller.session->events.Find(event);
  if (!found || (record && found->context != caller.number)) return CUDA_ERROR_INVALID_HANDLE;
  out->frames.push_back(record ? FrameOf(Op::cuEventRecord, wire::cuEventRecordArgs(event, 0))
                               : FrameOf(Op::cuStreamWaitEvent, wire::cuStreamWaitEventArgs(0, event, 0)));
  return CUDA_SUCCESS;
}

CUresult Encode(const Caller& caller, const Work& work, Encoded* out) {
  if (auto* kernel = std::get_if<KernelWork>(&work)) return EncodeKernel(caller, *kernel, out);
  if (auto* copy = std::get_if<CopyWork>(&work)) return EncodeCopy(caller, copy->copy, out);
  if (auto* fill = std::get_if<FillWork>(&work)) {
    std::string frame;
    if (CUresult r = FillFrame(*caller.session, fill->fill, &frame)) return r;
    if (!frame.empty()) out->frames.push_back(std::move(frame));
  }
  if (auto* host = std::get_if<HostWork>(&work)) {
    Session& session = *caller.session;
    const uint64_t cookie =
        session.host_functions.Keep(session, caller.number, [fn = host->fn, data = host->data] { fn(data); });
    out->cookies.push_back(cookie);
    out->frames.push_back(FrameOf(Op::wireHostFunc, wire::wireHostFuncArgs(0, cookie)));
  }
  if (auto* record = std::get_if<RecordWork>(&work)) return EncodeEvent(caller, record->event, true, out);
  if (auto* wait = std::get_if<WaitWork>(&work)) return EncodeEvent(caller, wait->event, false, out);
  return CUDA_SUCCESS;  // memory is there already, and nothing is nothing
}

/// How many frames a node of that kind may ever need.
uint32_t RoomOf(const Work& work) {
  if (std::holds_alternative<EmptyWork>(work) || std::holds_alternative<AllocWork>(work) ||
      std::holds_alternative<FreeWork>(work))
    return 0;
  return std::holds_alternative<CopyWork>(work) ? 2 : 1;
}

/// The steps of a graph's nodes, those of child graphs in their place. False where there is a circle.
bool Flatten(const Graph& graph, GraphExec& exec) {
  const std::vector<GraphNode*> order = graph.InOrder();
  if (order.size() != graph.nodes.size()) return false;
  for (GraphNode* node : order) {
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      if (!Flatten(*child->graph, exec)) return false;
      continue;
    }
    exec.by_origin[node->origin] = exec.steps.size();
    GraphExec::Step step;
    step.node = node;
    step.first = exec.steps.empty() ? 0 : exec.steps.back().first + exec.steps.back().room;
    step.room = RoomOf(node->work);
    exec.steps.push_back(std::move(step));
  }
  return true;
}

void AppendFrames(const GraphExec::Step& step, std::string* to) {
  for (uint32_t i = 0; i < step.room; ++i)
    *to += step.enabled && i < step.now.frames.size() ? step.now.frames[i] : NothingFrame();
}

CUresult Send(Session& session, const GraphExec& exec, uint32_t first, const std::string& frames) {
  const wire::wireGraphNodesArgs args(exec.handle, first, static_cast<uint32_t>(frames.size()));
  return session.submission().Post(Op::wireGraphNodes, exec.context, args,
                                   static_cast<uint32_t>(frames.size()),
                                   [&](std::byte* to) { std::memcpy(to, frames.data(), frames.size()); });
}

/// Sends the steps that `which` picks, neighbours together.
template <typename Which>
CUresult SendSteps(Session& session, const GraphExec& exec, Which which) {
  std::string frames;
  uint32_t first = 0, next = 0;
  auto flush = [&] {
    const CUresult r = frames.empty() ? CUDA_SUCCESS : Send(session, exec, first, frames);
    frames.clear();
    return r;
  };
  for (const GraphExec::Step& step : exec.steps) {
    if (!which(step) || step.room == 0) continue;
    if (step.first != next || frames.size() >= kMostSent)
      if (CUresult r = flush()) return r;
    if (frames.empty()) first = step.first;
    AppendFrames(step, &frames);
    next = step.first + step.room;
  }
  return flush();
}

/// The program's own node, which may be one of a child graph.
GraphNode* OriginalOf(const Graph& graph, const GraphNode& copy) {
  GraphNode* found = nullptr;
  graph.ForEachNode([&](GraphNode& node) {
    if (node.id == copy.origin) found = &node;
  });
  return found;
}

}  // namespace

CUresult InstantiateGraph(const Caller& caller, Graphs& graphs, const Graph& graph, unsigned long long flags,
                          GraphExec** out, GraphNode** wrong) {
  *wrong = nullptr;
  Session& session = *caller.session;
  auto exec = std::make_unique<GraphExec>();
  exec->context = caller.number;
  exec->flags = flags;
  exec->source = graph.Clone();
  if (!Flatten(*exec->source, *exec)) return CUDA_ERROR_INVALID_VALUE;
  auto undo = [&] {
    for (GraphExec::Step& step : exec->steps) session.host_functions.Drop(step.now.cookies);
  };
  for (GraphExec::Step& step : exec->steps) {
    if (CUresult r = Encode(caller, step.node->work, &step.now)) {
      *wrong = OriginalOf(graph, *step.node);
      undo();
      return r;
    }
    exec->calls_back |= !step.now.cookies.empty();
    exec->has_memory |= std::holds_alternative<AllocWork>(step.node->work) ||
                        std::holds_alternative<FreeWork>(step.node->work);
  }
  exec->handle = graphs.handles.Take();
  if (!exec->handle) {
    undo();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const uint32_t count = exec->steps.empty() ? 0 : exec->steps.back().first + exec->steps.back().room;
  wire::wireGraphReadyReply reply;
  CUresult r = count ? CUDA_SUCCESS : Send(session, *exec, 0, {});
  if (!r) r = SendSteps(session, *exec, [](const GraphExec::Step&) { return true; });
  if (!r)
    r = session.submission().Ask(Op::wireGraphReady, exec->context,
                                 wire::wireGraphReadyArgs(exec->handle, count), &reply);
  if (r) {
    for (const GraphExec::Step& step : exec->steps)
      if (reply.node() >= step.first && reply.node() - step.first < step.room)
        *wrong = OriginalOf(graph, *step.node);
    undo();
    (void)session.submission().Post(Op::wireGraphDestroy, exec->context,
                                    wire::wireGraphDestroyArgs(exec->handle));
    graphs.handles.Return(exec->handle);
    return r;
  }
  graphs.Learn(*exec);
  *out = exec.release();
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(const Caller& caller, Graphs& graphs, GraphExec& exec, Handle stream) {
  if (exec.context != caller.number) return CUDA_ERROR_INVALID_CONTEXT;
  Session& session = *caller.session;
  Submission& submission = session.submission();
  if (CUresult r = submission.TakeDeferred()) return r;
  // What an earlier launch has allocated must be free again, unless the program asked for that to happen by
  // itself.
  if (exec.has_memory)
    for (const GraphExec::Step& step : exec.steps)
      if (auto* alloc = std::get_if<AllocWork>(&step.node->work))
        if (alloc->memory->allocated && !(exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
          return CUDA_ERROR_INVALID_VALUE;
  if (exec.changed) {
    if (CUresult r = SendSteps(session, exec, [](const GraphExec::Step& step) { return step.changed; }))
      return r;
    for (GraphExec::Step& step : exec.steps) step.changed = false;
    exec.changed = false;
  }
  if (exec.calls_back)
    for (const GraphExec::Step& step : exec.steps)
      if (step.enabled) session.host_functions.Expect(step.now.cookies);
  if (exec.has_memory)
    for (const GraphExec::Step& step : exec.steps) {
      if (auto* alloc = std::get_if<AllocWork>(&step.node->work)) graphs.Allocated(*alloc->memory, true);
      if (auto* free = std::get_if<FreeWork>(&step.node->work)) graphs.Allocated(*free->memory, false);
    }
  exec.last_stream = stream;
  return submission.Post(Op::wireGraphLaunch, caller.number, wire::wireGraphLaunchArgs(exec.handle, stream));
}

namespace {

/// A change that has been encoded and not been made.
struct Change {
  GraphExec::Step* step = nullptr;
  Work work;
  Encoded encoded;
  bool same = false;
};

CUresult Prepare(const Caller& caller, GraphExec& exec, GraphExec::Step& step, Work work, Change* out) {
  if (work.index() != step.node->work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (exec.context != caller.number) return CUDA_ERROR_INVALID_CONTEXT;
  out->step = &step;
  out->work = std::move(work);
  if (auto* host = std::get_if<HostWork>(&out->work)) {
    auto* was = std::get_if<HostWork>(&step.node->work);
    out->same = host->fn == was->fn && host->data == was->data;
  }
  return out->same ? CUDA_SUCCESS : Encode(caller, out->work, &out->encoded);
}

void Make(Session& session, GraphExec& exec, Change change) {
  if (change.same) return;
  GraphExec::Step& step = *change.step;
  session.host_functions.Drop(step.now.cookies);
  step.changed |= change.encoded.frames != step.now.frames;
  exec.changed |= step.changed;
  exec.calls_back |= !change.encoded.cookies.empty();
  step.now = std::move(change.encoded);
  step.node->work = std::move(change.work);
}

}  // namespace

CUresult ChangeStep(const Caller& caller, GraphExec& exec, GraphExec::Step& step, Work work) {
  Change change;
  if (CUresult r = Prepare(caller, exec, step, std::move(work), &change)) return r;
  Make(*caller.session, exec, std::move(change));
  return CUDA_SUCCESS;
}

CUresult UpdateExec(const Caller& caller, GraphExec& exec, const Graph& part, const Graph& now,
                    CUgraphExecUpdateResultInfo* info) {
  auto fail = [&](CUgraphExecUpdateResult result, GraphNode* node, GraphNode* from) {
    *info = {result, node ? node->handle() : nullptr, from ? from->handle() : nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  std::vector<std::pair<GraphNode*, GraphNode*>> pairs;
  if (auto different = graph::Compare(part, now, &pairs))
    return fail(different->result, different->node, different->from);
  std::vector<Change> changes(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto [was, node] = pairs[i];
    CUresult r = CUDA_SUCCESS;
    if (auto* alloc = std::get_if<AllocWork>(&node->work)) {
      if (alloc->memory != std::get<AllocWork>(was->work).memory) r = CUDA_ERROR_NOT_SUPPORTED;
    } else if (auto* free = std::get_if<FreeWork>(&node->work)) {
      if (free->memory != std::get<FreeWork>(was->work).memory) r = CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!r) r = Prepare(caller, exec, exec.steps[exec.by_origin.at(was->origin)], node->work, &changes[i]);
    if (!r) continue;
    for (Change& change : changes) caller.session->host_functions.Drop(change.encoded.cookies);
    return fail(r == CUDA_ERROR_NOT_SUPPORTED ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
                                              : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                node, nullptr);
  }
  for (Change& change : changes) Make(*caller.session, exec, std::move(change));
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

void EnableStep(GraphExec& exec, GraphExec::Step& step, bool enabled) {
  step.changed |= step.enabled != enabled;
  exec.changed |= step.changed;
  step.enabled = enabled;
}

std::shared_ptr<Graph> DestroyExec(Session& session, Graphs& graphs, GraphExec* exec) {
  graphs.Forget(*exec);
  for (GraphExec::Step& step : exec->steps) session.host_functions.Drop(step.now.cookies);
  std::shared_ptr<Graph> source = std::move(exec->source);
  const bool alive = session.contexts.FindNumber(exec->context) != nullptr;
  if (alive) {
    // What the graph's launches use goes when the last of them is over.
    if (exec->last_stream && !source->objects.empty() &&
        session.host_functions.Launch(session, exec->context, exec->last_stream, [source] {}) == CUDA_SUCCESS)
      source.reset();  // the function has it
    (void)session.submission().Post(Op::wireGraphDestroy, exec->context,
                                    wire::wireGraphDestroyArgs(exec->handle));
  }
  graphs.handles.Return(exec->handle);
  delete exec;
  return source;
}

}  // namespace cuplex::client
