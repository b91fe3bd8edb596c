// The calls of a session that concern graphs.
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/span_reader.h"
#include "protocol/decode.h"
#include "protocol/uniform_call_handler.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr char kNoGraph[] = "the graph is none of this process, or has gone.";

}  // namespace

/// Takes the frames of a graph's nodes, and makes operations of them by the same checks as those of a stream.
class Session::GraphBuilder final : public UniformCallHandler {
 public:
  GraphBuilder(Session& session, const Context& context, Graph& graph)
      : session_(session), context_(context), graph_(graph) {}

  Outcome Any(const CallFrame&, std::span<const std::byte>, std::span<const std::byte>,
              std::string*) override {
    return session_.Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
                           "a node of a graph is a call that gives a stream no work.");
  }

  Outcome wireLaunch(const CallFrame&, const wire::wireLaunchArgs& args,
                     std::span<const std::byte> parameters) override {
    CUresult why;
    Function* function = session_.LaunchOf(args, parameters, &context_, &why);
    if (!function) return why;
    SetLaunch(Add(OperationKind::kLaunch), *function, args, parameters);
    return CUDA_SUCCESS;
  }
  Outcome wireCopy(const CallFrame&, const wire::wireCopyArgs& args) override {
    Operation::Copy copy;
    return Copy(OperationKind::kCopy, copy, args.staged(), session_.CopyOf(args, &copy));
  }
  Outcome wireCopyBox(const CallFrame&, const wire::wireCopyBoxArgs& args) override {
    Operation::Copy copy;
    return Copy(OperationKind::kCopyBox, copy, args.staged(), session_.CopyOf(args, &copy));
  }
  Outcome wireCopyArray(const CallFrame&, const wire::wireCopyArrayArgs& args) override {
    Operation::Copy copy;
    return Copy(OperationKind::kCopyBox, copy, args.staged(), session_.CopyOf(args, &context_, &copy));
  }
  Outcome wireFill(const CallFrame&, const wire::wireFillArgs& args) override {
    Operation::Fill fill;
    const CUresult code = session_.FillOf(args, &fill);
    if (!code && fill.width) Add(OperationKind::kFill).fill = fill;
    return code;
  }
  Outcome wireHostFunc(const CallFrame&, const wire::wireHostFuncArgs& args) override {
    Add(OperationKind::kHostFunc).host_func = {args.cookie(), nullptr, false};
    return CUDA_SUCCESS;
  }
  Outcome cuEventRecord(const CallFrame&, const wire::cuEventRecordArgs& args) override {
    OwnEvent* event = session_.events_.Find(args.h_event());
    if (!event || session_.contexts_.at(event->context).context.get() != &context_)
      return session_.Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE,
                             "a node of a graph records an event that is none of its context.");
    return Use(OperationKind::kRecord, args.h_event());
  }
  Outcome cuStreamWaitEvent(const CallFrame&, const wire::cuStreamWaitEventArgs& args) override {
    if (!session_.events_.Find(args.h_event()))
      return session_.Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE,
                             "a node of a graph waits for an event that is none.");
    return Use(OperationKind::kWait, args.h_event());
  }

 private:
  Operation& Add(OperationKind kind) {
    auto operation = std::make_unique<Operation>();
    operation->kind = kind;
    Operation& added = *operation;
    graph_.Add(std::move(operation));
    return added;
  }
  Outcome Use(OperationKind kind, uint64_t event) {
    Add(kind).mark = nullptr;
    graph_.events.push_back({event, kind == OperationKind::kRecord});
    return CUDA_SUCCESS;
  }
  // The staging area belongs to calls that are on their way: a graph's copies are between memories that stay.
  Outcome Copy(OperationKind kind, const Operation::Copy& copy, uint32_t staged, bool good) {
    if (!staged && (copy.bytes == 0 || copy.height == 0 || copy.depth == 0)) return CUDA_SUCCESS;
    if (!good || staged)
      return session_.Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
                             "a node of a graph copies what its client does not own, or the staging area.");
    Add(kind).copy = copy;
    return CUDA_SUCCESS;
  }

  Session& session_;
  const Context& context_;
  Graph& graph_;
};

CUresult Session::BuildGraph(OwnGraph& own, uint32_t* node) {
  *node = 0;
  CUresult why;
  Context* context = Live(own.context, &why);
  if (!context) return why;
  if (*graph_operations_ + own.nodes.size() > kMostGraphNodes)
    return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY,
                  "a process's graphs, with those that only launches keep, have too many nodes.");
  auto graph = std::make_shared<Graph>(graph_operations_);
  graph->operations.reserve(own.nodes.size());
  GraphBuilder builder(*this, *context, *graph);
  for (const std::string& bytes : own.nodes) {
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    auto frame = CheckHeader(header, 0);
    CallReply reply;
    Status decoded = frame.ok() ? DecodeCall(*frame, std::as_bytes(std::span(bytes)).subspan(sizeof(header)),
                                             builder, &reply)
                                : Status(frame.error());
    if (!decoded.ok()) return Refuse(decoded.error());
    if (reply.outcome.result) return reply.outcome.result;
    ++*node;
  }
  own.graph = std::move(graph);
  own.checked = Gone();
  return CUDA_SUCCESS;
}

Outcome Session::wireGraphNodes(const CallFrame& frame, const wire::wireGraphNodesArgs& args,
                                std::span<const std::byte> nodes) {
  std::unique_ptr<OwnGraph>* found = graphs_.Find(args.graph());
  if (!found) {
    CUresult why;
    if (!Live(frame.context, &why)) return why;
    if (graphs_.size() >= kMostGraphs)
      return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY, "a process has too many graphs.");
    auto made = std::make_unique<OwnGraph>();
    made->context = frame.context;
    if (!graphs_.Insert(args.graph(), std::move(made)))
      return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE,
                    "the number of a graph is no handle, or that of one that has gone.");
    found = graphs_.Find(args.graph());
  }
  OwnGraph& own = **found;
  own.graph.reset();
  size_t index = args.first();
  if (index > own.nodes.size())
    return Refuse(
        metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
        fmt::format("nodes from number {} on came for a graph that has {}.", index, own.nodes.size()));
  while (!nodes.empty()) {
    FrameHeader header;
    if (nodes.size() < sizeof(header))
      return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
                    fmt::format("the last {} bytes of a graph's nodes are no frame.", nodes.size()));
    std::memcpy(&header, nodes.data(), sizeof(header));
    if (header.bytes < sizeof(header) || header.bytes > nodes.size())
      return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
                    fmt::format("the frame of a graph's node has {} bytes, {} to {} were expected.",
                                header.bytes, sizeof(header), nodes.size()));
    const bool more = index == own.nodes.size();
    const size_t before = more ? 0 : own.nodes[index].size();
    if (graph_nodes_ + more > kMostGraphNodes || graph_bytes_ - before + header.bytes > kMostGraphBytes)
      return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY,
                    fmt::format("a process describes {} nodes of {} bytes, at most {} of {} were expected.",
                                graph_nodes_ + more, graph_bytes_ - before + header.bytes, kMostGraphNodes,
                                kMostGraphBytes));
    if (more) own.nodes.emplace_back();
    own.nodes[index++].assign(reinterpret_cast<const char*>(nodes.data()), header.bytes);
    graph_nodes_ += more;
    graph_bytes_ += header.bytes - before;
    nodes = nodes.subspan(header.bytes);
  }
  return CUDA_SUCCESS;
}

Outcome Session::wireGraphReady(const CallFrame& frame, const wire::wireGraphReadyArgs& args,
                                wire::wireGraphReadyReply* reply) {
  std::unique_ptr<OwnGraph>* found = graphs_.Find(args.graph());
  if (!found) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE, kNoGraph);
  OwnGraph& own = **found;
  if (own.nodes.size() != args.count())
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
                  fmt::format("a graph of {} nodes was said to have {}.", own.nodes.size(), args.count()));
  uint32_t node = 0;
  const CUresult code = BuildGraph(own, &node);
  reply->mutate_node(node);
  if (code) {
    Log().debug("Node {} of a graph of process {} ({}) is refused with code {}.", node, client_.peer.pid,
                tenant_.name, static_cast<int>(code));
    return code;
  }
  own.ready = true;
  return CUDA_SUCCESS;
}

Outcome Session::wireGraphLaunch(const CallFrame& frame, const wire::wireGraphLaunchArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  if (!stream) return why;
  std::unique_ptr<OwnGraph>* found = graphs_.Find(args.graph());
  if (!found || !(*found)->ready || contexts_.at((*found)->context).context.get() != stream->context)
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE,
                  "the graph to launch is none of the stream's context, or not ready.");
  OwnGraph& own = **found;
  uint32_t node;
  if (!own.graph || own.checked != Gone())
    if (CUresult code = BuildGraph(own, &node)) return code;
  if (own.graph->operations.empty()) return CUDA_SUCCESS;
  for (const Graph::EventUse& use : own.graph->events)
    if (!events_.Find(use.event))
      return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE,
                    "an event that the graph uses has gone.");
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  Context& context = *stream->context;
  if (own.stream && own.stream != args.stream()) {
    OwnStream* last = streams_.Find(own.stream);
    Leave(own, last ? *last->stream : *context.legacy());
  }
  if (Mark* before = std::exchange(own.before, nullptr)) {
    if (before->state == Mark::State::kDone) {
      Drop(before);
    } else {
      context.Push(*stream, OperationKind::kWait).mark = before;
    }
  }
  own.stream = args.stream();
  std::vector<Mark*> marks;
  for (const Graph::EventUse& use : own.graph->events) {
    OwnEvent* event = events_.Find(use.event);
    Mark* mark = use.record || !event->latest ? context.NewMark() : Share(event->latest);
    if (use.record) {
      if (event->latest) Drop(event->latest);
      event->latest = Share(mark);
    } else if (!event->latest) {
      mark->state = Mark::State::kDone;  // nobody has recorded it
    }
    marks.push_back(mark);
  }
  context.Push(*stream, OperationKind::kGraph).graph = new GraphRun(own.graph, std::move(marks));
  context.Pushed();
  return CUDA_SUCCESS;
}

void Session::Leave(OwnGraph& own, VirtualStream& stream) {
  own.stream = 0;
  if (stream.context->Idle(stream) || stream.context->fault()) return;
  Mark* mark = stream.context->NewMark();
  own.before = Share(mark);
  stream.context->Push(stream, OperationKind::kRecord).mark = mark;
  stream.context->Pushed();
}

void Session::LeaveStream(uint64_t handle, VirtualStream& stream) {
  graphs_.ForEach([&](uint64_t, std::unique_ptr<OwnGraph>& own) {
    if (own->stream == handle) Leave(*own, stream);
  });
}

void Session::EraseGraph(uint64_t handle) {
  OwnGraph& own = **graphs_.Find(handle);
  if (own.before) Drop(own.before);
  graph_nodes_ -= own.nodes.size();
  for (const std::string& node : own.nodes) graph_bytes_ -= node.size();
  graphs_.Erase(handle);
}

Outcome Session::wireGraphDestroy(const CallFrame&, const wire::wireGraphDestroyArgs& args) {
  if (!graphs_.Find(args.graph()))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE, kNoGraph);
  EraseGraph(args.graph());
  return CUDA_SUCCESS;
}

}  // namespace cuplex::server
