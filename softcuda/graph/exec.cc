#include "softcuda/graph/exec.h"

#include <utility>

#include "softcuda/call.h"
#include "softcuda/graph/recorder.h"
#include "softcuda/pause.h"

namespace cuplex::softcuda {
namespace {

using graph::Graph;
using graph::GraphNode;

// Steps that are operations of their own.
bool Apart(const Step& step) {
  return std::holds_alternative<HostStep>(step) || std::holds_alternative<RecordStep>(step) ||
         std::holds_alternative<WaitStep>(step);
}

void Flatten(const Graph& graph, std::vector<GraphNode*>* nodes) {
  for (GraphNode* node : graph.InOrder()) {
    if (auto* child = std::get_if<graph::ChildWork>(&node->work)) {
      Flatten(*child->graph, nodes);
    } else {
      nodes->push_back(node);
    }
  }
}

CUresult CompileKernel(Context& context, const graph::KernelWork& work, Step* out) {
  if (work.context != reinterpret_cast<CUcontext>(&context)) return CUDA_ERROR_NOT_SUPPORTED;
  GridStep step;
  if (CUresult failed = FindFunction(context, work.function, &step.function)) return failed;
  step.shape = {work.grid, work.block, work.shared_bytes};
  step.cooperative = work.cooperative();
  if (work.parameters.size() != step.function->info.param_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = CheckAgainst(*step.function, step.shape)) return wrong;
  if (step.cooperative) {
    if (CUresult wrong = CheckCooperative(context.device, context.partition, *step.function, step.shape))
      return wrong;
  }
  if (CUresult failed = step.function->Prepare(work.block)) return failed;
  if (step.function->info.uses_heap) {
    if (CUresult failed = context.MakeHeap()) return failed;
  }
  step.params = std::make_shared<const std::vector<std::byte>>(work.parameters);
  *out = std::move(step);
  return CUDA_SUCCESS;
}

CUresult CompileFill(Context& context, const CUDA_MEMSET_NODE_PARAMS& fill, Step* out) {
  if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  size_t bytes;
  if (__builtin_mul_overflow(fill.width, size_t{fill.elementSize}, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (fill.height > 1 && (fill.pitch < bytes || fill.pitch % fill.elementSize))
    return CUDA_ERROR_INVALID_VALUE;
  const FillStep step = {{fill.dst, fill.pitch, 0}, {fill.value, fill.elementSize}, {bytes, fill.height, 1}};
  if (CUresult wrong = CheckFill(context.driver.memory, step.to, step.pattern, step.box)) return wrong;
  *out = step;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Compile(Context& context, const graph::Work& work, Step* out) {
  *out = std::monostate{};
  if (auto* kernel = std::get_if<graph::KernelWork>(&work)) return CompileKernel(context, *kernel, out);
  if (auto* fill = std::get_if<graph::FillWork>(&work)) return CompileFill(context, fill->fill, out);
  if (auto* copy = std::get_if<graph::CopyWork>(&work)) {
    CopyStep step;
    if (CUresult wrong = ReadCopy(context, copy->copy, &step.to, &step.from, &step.box)) return wrong;
    if (CUresult wrong = CheckCopy(context.driver.memory, step.to, step.from, step.box)) return wrong;
    *out = step;
  } else if (auto* host = std::get_if<graph::HostWork>(&work)) {
    *out = HostStep{host->fn, host->data};
  } else if (auto* record = std::get_if<graph::RecordWork>(&work)) {
    Ref<Event> event = context.driver.events.Find(record->event);
    if (!event || &event->context != &context) return CUDA_ERROR_INVALID_VALUE;
    *out = RecordStep{std::move(event)};
  } else if (auto* wait = std::get_if<graph::WaitWork>(&work)) {
    Ref<Event> event = context.driver.events.Find(wait->event);
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    *out = WaitStep{std::move(event)};
  }
  return CUDA_SUCCESS;
}

void GraphProgram::Run(size_t first, size_t last, Context& context, Stream& stream) const {
  const MemoryMap& memory = context.driver.memory;
  for (size_t i = first; i < last && !context.fault(); ++i) {
    if (disabled[i]) continue;
    if (auto* grid = std::get_if<GridStep>(&steps[i])) {
      RunGrid(context, stream, grid->function->kernel, grid->shape, *grid->params,
              grid->cooperative ? stream.workspace : 0);
    } else if (auto* copy = std::get_if<CopyStep>(&steps[i])) {
      if (!copy->box.empty() && !memory.Copy(copy->to.at, copy->from.at, copy->box))
        context.Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    } else if (auto* fill = std::get_if<FillStep>(&steps[i])) {
      if (!fill->box.empty() && !memory.Fill(fill->to, fill->pattern, fill->box))
        context.Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
  }
}

ptrdiff_t GraphExec::StepOf(const GraphNode& node) const {
  auto at = by_origin.find(node.id);
  return at == by_origin.end() ? -1 : static_cast<ptrdiff_t>(at->second);
}

GraphProgram& GraphExec::Own() {
  if (std::exchange(launched, false)) program = std::make_shared<GraphProgram>(*program);
  return *program;
}

CUresult Instantiate(Context& context, const Graph& graph, unsigned long long flags,
                     std::unique_ptr<GraphExec>* out, GraphNode** wrong) {
  auto exec = std::make_unique<GraphExec>();
  exec->flags = flags;
  exec->context = &context;
  exec->context_id = context.id;
  exec->source = graph.Clone();
  Flatten(*exec->source, &exec->nodes);
  exec->program = std::make_shared<GraphProgram>();
  exec->program->source = exec->source;
  exec->program->steps.resize(exec->nodes.size());
  exec->program->disabled.resize(exec->nodes.size());
  for (size_t i = 0; i < exec->nodes.size(); ++i) {
    exec->by_origin[exec->nodes[i]->origin] = i;
    if (CUresult failed = Compile(context, exec->nodes[i]->work, &exec->program->steps[i])) {
      graph.ForEachNode([&](GraphNode& node) {
        if (node.id == exec->nodes[i]->origin) *wrong = &node;
      });
      return failed;
    }
  }
  *out = std::move(exec);
  return CUDA_SUCCESS;
}

namespace {

// Whether all that a launch needs is there; kernels' modules and events may have gone meanwhile.
CUresult CheckSteps(const GraphExec& exec, const Submission& submission, bool* workspace) {
  *workspace = false;
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    const Step& step = exec.program->steps[i];
    if (auto* grid = std::get_if<GridStep>(&step)) {
      if (!HandleTable<Function>::IsLive(grid->function.get())) return CUDA_ERROR_INVALID_HANDLE;
      *workspace |= grid->cooperative && !submission.stream().workspace;
    } else if (auto* record = std::get_if<RecordStep>(&step)) {
      if (!HandleTable<Event>::IsLive(record->event.get())) return CUDA_ERROR_INVALID_HANDLE;
    } else if (auto* alloc = std::get_if<graph::AllocWork>(&exec.nodes[i]->work)) {
      if (alloc->memory->allocated && !(exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
        return CUDA_ERROR_INVALID_VALUE;  // nobody has freed what the last launch allocated
    }
  }
  return CUDA_SUCCESS;
}

void PushApart(Submission& submission, const Step& step) {
  if (auto* host = std::get_if<HostStep>(&step)) {
    submission.Push([fn = host->fn, data = host->data](Stream& stream) {
      stream.pool().BeginHostCall();
      fn(data);
      stream.pool().EndHostCall();
      return Progress::kDone;
    });
  } else if (auto* record = std::get_if<RecordStep>(&step)) {
    submission.PushRecord(record->event);
  } else if (auto* wait = std::get_if<WaitStep>(&step)) {
    const Event::Mark mark = wait->event->mark();
    if (!mark.Done() && mark.stream.get() != &submission.stream())
      submission.PushWait(*mark.stream, mark.number);
  }
}

}  // namespace

CUresult LaunchExec(Context& current, GraphExec& exec, CUstream handle) {
  for (;;) {
    // The caller has looked for captures, whose lock this thread holds.
    Submission submission(current, handle, Submission::Captured::kIgnore);
    if (submission.result) return submission.result;
    Context& context = submission.context();
    if (&context != exec.context || context.id != exec.context_id) return CUDA_ERROR_INVALID_CONTEXT;
    bool workspace;
    if (CUresult wrong = CheckSteps(exec, submission, &workspace)) return wrong;
    if (workspace) {
      Ref<Stream> target = HandleTable<Stream>::Share(&submission.stream());
      submission.Release();
      if (CUresult failed = MakeWorkspace(context, *target)) return failed;
      continue;
    }
    // Launches of one graph follow one another.
    if (exec.last_stream && exec.last_stream.get() != &submission.stream() &&
        !exec.last_stream->Done(exec.last_number)) {
      submission.PushWait(*exec.last_stream, exec.last_number);
    }
    const auto& steps = exec.program->steps;
    for (size_t first = 0; first <= steps.size();) {
      size_t last = first;
      while (last < steps.size() && !Apart(steps[last])) ++last;
      if (last > first) {
        submission.Push([program = std::shared_ptr<const GraphProgram>(exec.program), first, last,
                         &context](Stream& stream) {
          program->Run(first, last, context, stream);
          return Progress::kDone;
        });
      }
      if (last < steps.size() && !exec.program->disabled[last]) PushApart(submission, steps[last]);
      first = last + 1;
    }
    for (GraphNode* node : exec.nodes) {
      if (auto* alloc = std::get_if<graph::AllocWork>(&node->work))
        context.driver.graphs.SetAllocated(*alloc->memory, true);
      if (auto* free = std::get_if<graph::FreeWork>(&node->work))
        context.driver.graphs.SetAllocated(*free->memory, false);
    }
    exec.launched = true;
    exec.last_stream = HandleTable<Stream>::Share(&submission.stream());
    exec.last_number = submission.stream().submitted();
    return CUDA_SUCCESS;
  }
}

CUresult ChangeStep(Context& context, GraphExec& exec, size_t index, graph::Work work) {
  if (work.index() != exec.nodes[index]->work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (&context != exec.context || context.id != exec.context_id) return CUDA_ERROR_INVALID_CONTEXT;
  Step step;
  if (CUresult failed = Compile(context, work, &step)) return failed;
  exec.Own().steps[index] = std::move(step);
  exec.nodes[index]->work = std::move(work);
  return CUDA_SUCCESS;
}

CUresult UpdateExec(Context& context, GraphExec& exec, const Graph& part, const Graph& graph,
                    CUgraphExecUpdateResultInfo* info) {
  auto fail = [&](CUgraphExecUpdateResult result, GraphNode* node, GraphNode* from) {
    *info = {result, node ? node->handle() : nullptr, from ? from->handle() : nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  if (&context != exec.context || context.id != exec.context_id) return CUDA_ERROR_INVALID_CONTEXT;
  std::vector<std::pair<GraphNode*, GraphNode*>> pairs;
  if (auto different = graph::Compare(part, graph, &pairs))
    return fail(different->result, different->node, different->from);
  std::vector<Step> steps(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto [was, node] = pairs[i];
    bool moved = false;  // memory nodes stay with their memory
    if (auto* alloc = std::get_if<graph::AllocWork>(&node->work))
      moved = alloc->memory != std::get<graph::AllocWork>(was->work).memory;
    if (auto* free = std::get_if<graph::FreeWork>(&node->work))
      moved = free->memory != std::get<graph::FreeWork>(was->work).memory;
    if (moved) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, node, nullptr);
    if (CUresult failed = Compile(context, node->work, &steps[i])) {
      return fail(failed == CUDA_ERROR_NOT_SUPPORTED ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
                                                     : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                  node, nullptr);
    }
  }
  GraphProgram& program = exec.Own();
  for (size_t i = 0; i < pairs.size(); ++i) {
    program.steps[exec.by_origin.at(pairs[i].first->origin)] = std::move(steps[i]);
    pairs[i].first->work = pairs[i].second->work;
  }
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
