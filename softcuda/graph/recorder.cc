#include "softcuda/graph/recorder.h"

namespace cuplex::softcuda {

CUresult CapturedStream::Append(graph::Work work) {
  Graphs& graphs = context.driver.graphs;
  std::lock_guard guard(graphs.lock);
  graph::Capture* capture = graphs.captures.Of(stream->id);
  if (!capture) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;  // it has ended meanwhile
  graph::GraphNode* node = graphs.captures.Append(*capture, stream->id, std::move(work));
  if (!node) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs.Learn(*node);
  return CUDA_SUCCESS;
}

CUresult ReadKernelWork(Context& context, CUfunction handle, const Shape& shape, void** params, void** extra,
                        bool cooperative, graph::KernelWork* out) {
  if (CUresult wrong = CheckShape(shape)) return wrong;
  Ref<Function> function;
  if (CUresult failed = FindFunction(context, handle, &function)) return failed;
  if (CUresult wrong = CheckAgainst(*function, shape)) return wrong;
  if (cooperative) {
    if (CUresult wrong = CheckCooperative(context.device, context.partition, *function, shape)) return wrong;
  }
  out->function = handle;
  out->context = reinterpret_cast<CUcontext>(&context);
  out->grid = shape.grid;
  out->block = shape.block;
  out->shared_bytes = shape.dynamic_shared;
  out->parameters.resize(function->info.param_bytes);
  for (const auto& p : function->info.params) out->layout.push_back({uint32_t(p.offset), uint32_t(p.size)});
  if (cooperative) out->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  return ReadParams(function->info, params, extra, out->parameters.data());
}

CUresult CaptureKernel(CapturedStream& to, CUfunction handle, const Shape& shape, void** params, void** extra,
                       bool cooperative) {
  graph::KernelWork work;
  if (CUresult wrong = ReadKernelWork(to.context, handle, shape, params, extra, cooperative, &work))
    return wrong;
  return to.Append(std::move(work));
}

CUresult CaptureRecord(CapturedStream& to, Event& event, unsigned flags) {
  if (flags & CU_EVENT_RECORD_EXTERNAL)
    return to.Append(graph::RecordWork{reinterpret_cast<CUevent>(&event)});
  Graphs& graphs = to.context.driver.graphs;
  std::lock_guard guard(graphs.lock);
  graph::Capture* capture = graphs.captures.Of(to.stream->id);
  if (!capture || capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs.captures.Record(*capture, to.stream->id, IdOf(&event));
  event.captured.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult CaptureWait(CapturedStream& to, Event& event, unsigned flags, bool* taken) {
  Graphs& graphs = to.context.driver.graphs;
  *taken = true;
  if (flags & CU_EVENT_WAIT_EXTERNAL) {
    if (to.stream->captured.load()) return to.Append(graph::WaitWork{reinterpret_cast<CUevent>(&event)});
  }
  std::lock_guard guard(graphs.lock);
  if (!event.captured.load()) graphs.captures.Forget(IdOf(&event));
  graphs.Introduce(to.stream.get());
  const CUresult result =
      graphs.captures.Wait(to.stream->id, IdOf(&event), to.stream->kind == Stream::Kind::kLegacy, taken);
  if (!graphs.captures.Of(to.stream->id)) graphs.Dismiss(to.stream.get());
  // What it was captured in is over.
  if (!*taken) event.captured.store(false);
  return result;
}

CUresult MakeGraphMemory(Context& context, Graphs& graphs, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                         graph::AllocWork* out) {
  const CUmemPoolProps& props = params->poolProps;
  if (!params->bytesize || props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props.location.type != CU_MEM_LOCATION_TYPE_DEVICE || props.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      (params->accessDescCount && !params->accessDescs)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props.location.id != context.device.ordinal) return CUDA_ERROR_NOT_SUPPORTED;
  constexpr unsigned kKinds = 1u << static_cast<unsigned>(Block::Kind::kModule);
  Block want;
  want.kind = Block::Kind::kModule;
  want.size = params->bytesize;
  want.device = &context.device;
  want.context = &context;
  uintptr_t base;
  MemoryMap& map = context.driver.memory;
  if (CUresult failed = map.Allocate(std::move(want), &base)) return failed;
  out->memory = std::make_shared<graph::Memory>();
  out->memory->address = base;
  out->memory->bytes = params->bytesize;
  out->memory->device = context.device.ordinal;
  // Its context may have died, and the address be another block's.
  out->memory->release = [&graphs, &memory = *out->memory, &map, base, id = map.BlockAt(base)->id] {
    graphs.Release(memory.device, memory.bytes, memory.allocated);
    if (auto now = map.BlockAt(base); now && now->id == id) (void)map.Free(base, kKinds);
  };
  graphs.Hold(*out->memory);
  graphs.Learn(out->memory);
  params->dptr = base;
  out->params = *params;
  out->access.assign(params->accessDescs, params->accessDescs + params->accessDescCount);
  return CUDA_SUCCESS;
}

CUresult CaptureAlloc(CapturedStream& to, size_t bytes, CUdeviceptr* address) {
  Graphs& graphs = to.context.driver.graphs;
  std::lock_guard guard(graphs.lock);
  graph::Capture* capture = graphs.captures.Of(to.stream->id);
  if (!capture || capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, to.context.device.ordinal};
  params.bytesize = bytes;
  graph::AllocWork work;
  if (CUresult failed = MakeGraphMemory(to.context, graphs, &params, &work)) return failed;
  graphs.Learn(*graphs.captures.Append(*capture, to.stream->id, std::move(work)));
  *address = params.dptr;
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
