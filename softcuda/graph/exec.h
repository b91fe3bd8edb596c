// GraphExec: a graph that has been instantiated: what its nodes do, ready to run, in one order, with those of
// child graphs in the child's place. Under the lock of Graphs; its program is read by streams without.
//
// A launch puts few operations into the stream, each of which runs all steps up to the next that is one of
// its own: a function of the program, an event. Programs are not changed while they are used: a change makes
// a new one.
#pragma once

#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cuda/graph/graph.h"
#include "softcuda/driver.h"
#include "softcuda/grid.h"
#include "softcuda/transfer.h"

namespace cuplex::softcuda {

struct GridStep {
  Ref<Function> function;
  Shape shape;
  bool cooperative;
  std::shared_ptr<const std::vector<std::byte>> params;
};
struct CopyStep {
  TransferEnd to, from;
  Box box;
};
struct FillStep {
  BoxAt to;
  Pattern pattern;
  Box box;
};
struct HostStep {
  CUhostFn fn;
  void* data;
};
struct RecordStep {
  Ref<Event> event;
};
struct WaitStep {
  Ref<Event> event;
};
using Step = std::variant<std::monostate, GridStep, CopyStep, FillStep, HostStep, RecordStep, WaitStep>;

struct GraphProgram {
  std::vector<Step> steps;
  std::vector<bool> disabled;
  std::shared_ptr<const graph::Graph> source;  // for what it holds

  /// Runs steps [first, last) on the stream's thread.
  void Run(size_t first, size_t last, Context& context, Stream& stream) const;
};

struct GraphExec {
  unsigned long long flags = 0;
  Context* context = nullptr;  // that all is compiled for
  uint64_t context_id = 0;
  std::shared_ptr<graph::Graph> source;  // a copy; `origin` of its nodes says of what
  std::vector<graph::GraphNode*> nodes;  // of `source`, as the program's steps
  std::unordered_map<uint64_t, size_t> by_origin;
  std::shared_ptr<GraphProgram> program;
  bool launched = false;  // the program may be in use
  Ref<Stream> last_stream;
  uint64_t last_number = 0;  // the last launch's last operation there

  CUgraphExec handle() { return reinterpret_cast<CUgraphExec>(this); }
  /// The number of the step that such a node of the original graph has become; -1: none.
  ptrdiff_t StepOf(const graph::GraphNode& node) const;
  /// The program, to be changed.
  GraphProgram& Own();
};

/// What a node's work means in `context`; compiles kernels. Errors are those of the call that would do the
/// same.
CUresult Compile(Context& context, const graph::Work& work, Step* out);
/// `wrong`: the node at fault, where it is one's.
CUresult Instantiate(Context& context, const graph::Graph& graph, unsigned long long flags,
                     std::unique_ptr<GraphExec>* out, graph::GraphNode** wrong);
/// Under the lock of Graphs.
CUresult LaunchExec(Context& current, GraphExec& exec, CUstream stream);
/// Gives a node other work of the same kind, for launches from here on.
CUresult ChangeStep(Context& context, GraphExec& exec, size_t step, graph::Work work);
/// Gives the nodes of `part` (the source or a child of it) the work of a graph of the same shape, or changes
/// nothing and says what is in the way.
CUresult UpdateExec(Context& context, GraphExec& exec, const graph::Graph& part, const graph::Graph& graph,
                    CUgraphExecUpdateResultInfo* info);

}  // namespace cuplex::softcuda
