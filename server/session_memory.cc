// The calls of a session that concern memory: allocating, freeing, pinned host memory.
#include <algorithm>
#include <utility>

#include <sys/mman.h>

#include "base/log.h"
#include "protocol/host_flags.h"
#include "protocol/session_generated.h"
#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr uint64_t kPage = 4096;
/// A client finds its pinned memory at addresses of this alignment, as if huge pages were used.
constexpr uint64_t kHostAlignment = 64 << 10;

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

}  // namespace

// ------------------------------------------------------------------------------------------- device memory

Outcome Session::cuMemAlloc_v2(const CallFrame& frame, const wire::cuMemAlloc_v2Args& args,
                               wire::cuMemAlloc_v2Reply*) {
  CUresult why;
  if (!Live(frame.context, &why)) return why;
  if (args.bytesize() == 0) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  if (memory_.size() >= kMostAllocations) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  Allocate(frame.slot, frame.context, args.bytesize());
  return Outcome::Later();
}

void Session::Allocate(uint32_t slot, uint32_t number, uint64_t bytes) {
  wire::cuMemAlloc_v2Reply reply{};
  CUresult why;
  Context* context = Live(number, &why);
  if (!context) return Answer(slot, why, reply);
  Holding& holding = context->holding();
  const uint64_t granule = house_.devices[holding.device].granule;
  uint64_t mapped = granule;
  if (bytes < granule) {
    const uint64_t small = RoundUp(bytes, kSmallAlignment);
    for (auto& [base, chunk] : chunks_) {
      if (chunk->context != number) continue;
      auto at = chunk->space.Take(small, kSmallAlignment);
      if (!at) continue;
      memory_.Add({Allocation::Kind::kChunk, *at, bytes, number, {}, chunk.get(), small});
      reply.mutate_dptr(*at);
      return Answer(slot, CUDA_SUCCESS, reply);
    }
  } else {
    mapped = bytes <= kMostBytes ? RoundUp(bytes, granule) : kMostBytes;
  }
  // What the program has freed is its own again, also where the device has not let go of it yet.
  if (mapped > holding.free() && frees_) {
    after_frees_.push_back([this, slot, number, bytes] { Allocate(slot, number, bytes); });
    return;
  }
  if (AwaitBudget(holding, mapped, [this, slot, number, bytes](bool enough) {
        enough ? Allocate(slot, number, bytes)
               : Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, wire::cuMemAlloc_v2Reply{});
      }))
    return;
  if (!holding.Charge(mapped)) return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, reply);
  MapForAllocation(slot, number, bytes, mapped);
}

bool Session::AwaitBudget(Holding& holding, uint64_t bytes, std::function<void(bool)> then) {
  const uint64_t wait_ns = tenant_.terms.oom_wait_ns;
  if (!wait_ns || bytes <= holding.free() || bytes > holding.limit()) return false;
  house_.budget_waits.Add({this, &holding, bytes, house_.clock.NowNs() + static_cast<int64_t>(wait_ns),
                           [&holding, then = std::move(then)](bool enough) {
                             if (!enough) holding.counters().out_of_memory.Add();
                             then(enough);
                           }});
  return true;
}

void Session::MapForAllocation(uint32_t slot, uint32_t number, uint64_t bytes, uint64_t mapped) {
  const size_t d = contexts_.at(number).device;
  const Device& device = house_.devices[d];
  Holding& holding = *tenant_.holdings[d];
  auto base = holding.arena->space().Take(mapped, device.granule);
  if (!base) {
    holding.Refund(mapped);
    holding.counters().out_of_memory.Add();
    return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, wire::cuMemAlloc_v2Reply{});
  }
  auto made = std::make_shared<Result<Piece>>(Piece{});
  auto kept = std::make_shared<bool>(false);
  Post(
      false,
      [made, kept, base = *base, mapped, &device, &cu = house_.cu, zero = house_.zero_in[d]] {
        *made = MapPiece(cu, device, base, mapped, zero, kept.get());
      },
      [this, made, kept, slot, number, bytes, mapped, base = *base, &holding, &device] {
        wire::cuMemAlloc_v2Reply reply{};
        if (!made->ok()) {
          Log().warn("No memory for process {} ({}): {}", client_.peer.pid, tenant_.name,
                     made->error().sentence);
          ReturnPiece(holding, {base, mapped, 0}, !*kept);
          if (CodeOf(made->error()) == CUDA_ERROR_OUT_OF_MEMORY) holding.counters().out_of_memory.Add();
          return Answer(slot, CodeOf(made->error()), reply);
        }
        CUresult why;
        if (ending_ || !Live(number, &why)) {
          if (!ending_) Answer(slot, why, reply);
          return Free({Allocation::Kind::kPiece, base, bytes, number, **made, nullptr, 0});
        }
        if (bytes >= device.granule) {
          memory_.Add({Allocation::Kind::kPiece, base, bytes, number, **made, nullptr, 0});
        } else {
          auto chunk = std::make_unique<Chunk>(Chunk{**made, AddressSpace(base, mapped), number});
          const uint64_t small = RoundUp(bytes, kSmallAlignment);
          chunk->space.Take(small, kSmallAlignment);
          memory_.Add({Allocation::Kind::kChunk, base, bytes, number, {}, chunk.get(), small});
          chunks_.emplace(base, std::move(chunk));
        }
        reply.mutate_dptr(base);
        Answer(slot, CUDA_SUCCESS, reply);
      });
}

Outcome Session::cuMemFree_v2(const CallFrame& frame, const wire::cuMemFree_v2Args& args) {
  return args.dptr() == 0 ? CUDA_SUCCESS : Dispose(args.dptr(), nullptr);
}

Outcome Session::wireFreeAsync(const CallFrame& frame, const wire::wireFreeAsyncArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  return stream ? Dispose(args.address(), stream) : why;
}

CUresult Session::Dispose(uint64_t address, VirtualStream* stream) {
  Allocation* found = memory_.At(address);
  if (!found || (found->kind != Allocation::Kind::kPiece && found->kind != Allocation::Kind::kChunk))
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  // From here on the program cannot name it any more; the memory goes when nothing on the device can use it.
  const Allocation allocation = *memory_.Take(address);
  ++frees_;
  auto done = [this, allocation](CUresult code) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
      memory_.Add(allocation);  // goes with its context
    } else {
      Free(allocation);
    }
    FreeDone();
  };
  if (stream) {
    stream->context->WhenDone(*stream, std::move(done));
  } else {
    contexts_.at(allocation.context).context->WhenAllDone(std::move(done));
  }
  return CUDA_SUCCESS;
}

void Session::Free(Allocation allocation) {
  Piece piece = allocation.piece;
  auto owner = contexts_.find(allocation.context);
  size_t d = tenant_.sees.front();
  if (owner != contexts_.end()) {
    d = owner->second.device;
  } else {  // its context has ended meanwhile: the arena tells the device
    for (size_t each : tenant_.sees) {
      const Arena* arena = tenant_.holdings[each]->arena.get();
      if (arena && allocation.base - arena->base() < arena->bytes()) d = each;
    }
  }
  if (allocation.kind == Allocation::Kind::kChunk) {
    Chunk* chunk = allocation.chunk;
    chunk->space.Give(allocation.base, allocation.chunk_bytes);
    if (!chunk->space.Empty()) return;
    piece = chunk->piece;
    chunks_.erase(piece.base);
  }
  ++frees_;
  auto returned = std::make_shared<bool>(false);
  Post(
      false,
      [returned, piece, &cu = house_.cu] {
        Status status = UnmapPiece(cu, piece);
        if (!status.ok()) Log().error("Memory is lost: {}", status.error().sentence);
        *returned = status.ok();
      },
      [this, returned, piece, d] {
        ReturnPiece(*tenant_.holdings[d], piece, *returned);
        FreeDone();
      });
}

void Session::ReturnPiece(Holding& holding, const Piece& piece, bool returned) {
  if (!returned) {
    holding.lost += piece.bytes;
    return;
  }
  holding.arena->space().Give(piece.base, piece.bytes);
  holding.Refund(piece.bytes);
}

void Session::FreeDone() {
  if (--frees_) return;
  auto waiting = std::move(after_frees_);
  after_frees_.clear();
  for (auto& each : waiting) each();
}

Outcome Session::cuMemGetInfo_v2(const CallFrame& frame, const wire::cuMemGetInfo_v2Args&,
                                 wire::cuMemGetInfo_v2Reply*) {
  CUresult why;
  if (!Live(frame.context, &why)) return why;
  if (frees_) {
    after_frees_.push_back([this, slot = frame.slot, number = frame.context] { AnswerMemory(slot, number); });
  } else {
    AnswerMemory(frame.slot, frame.context);
  }
  return Outcome::Later();
}

void Session::AnswerMemory(uint32_t slot, uint32_t number) {
  wire::cuMemGetInfo_v2Reply reply{};
  CUresult why;
  Context* context = Live(number, &why);
  if (!context) return Answer(slot, why, reply);
  const Holding& holding = context->holding();
  size_t free = 0, total = 0;
  CUresult code = context->Enter();
  if (!code) code = house_.cu.cuMemGetInfo_v2(&free, &total);
  if (code) return Answer(slot, code, reply);
  // Whole granules, so that what is said to be free can be had in one piece; never more than the device has.
  const uint64_t granule = house_.devices[holding.device].granule;
  reply.mutate_free(std::min<uint64_t>(holding.free(), free) / granule * granule);
  reply.mutate_total(holding.limit());
  Answer(slot, CUDA_SUCCESS, reply);
}

// ------------------------------------------------------------------------------------------- host memory

Outcome Session::wireHostAlloc(const CallFrame& frame, const wire::wireHostAllocArgs& args,
                               wire::wireHostAllocReply*) {
  CUresult why;
  if (!Live(frame.context, &why)) return why;
  if (args.bytes() == 0) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  if (memory_.size() >= kMostAllocations) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  Allocation wanted;
  wanted.kind = args.flags() & kHostManaged ? Allocation::Kind::kManaged : Allocation::Kind::kHost;
  wanted.bytes = args.bytes();
  wanted.context = frame.context;
  wanted.piece.bytes = RoundUp(std::min(args.bytes(), kMostBytes), kPage);
  AllocateHost(frame.slot, wanted);
  return Outcome::Later();
}

bool Session::ChargeHost(const Allocation& allocation) {
  if (allocation.kind == Allocation::Kind::kManaged)
    return tenant_.holdings[contexts_.at(allocation.context).device]->Charge(allocation.piece.bytes);
  if (allocation.piece.bytes > tenant_.host_limit() - std::min(tenant_.host_limit(), tenant_.host_used)) {
    tenant_.counters->Refuse(metrics::Refusal::kLimit);
    return false;
  }
  tenant_.host_used += allocation.piece.bytes;
  return true;
}

void Session::ReturnHost(const Allocation& allocation, size_t device) {
  host_space_.Give(allocation.piece.base, allocation.piece.bytes);
  if (allocation.kind == Allocation::Kind::kManaged) {
    tenant_.holdings[device]->Refund(allocation.piece.bytes);
  } else {
    tenant_.host_used -= allocation.piece.bytes;
  }
}

void Session::AllocateHost(uint32_t slot, Allocation wanted) {
  const wire::wireHostAllocReply none{};
  CUresult why;
  Context* context = Live(wanted.context, &why);
  if (!context) return Answer(slot, why, none);
  const uint64_t mapped = wanted.piece.bytes;
  if (wanted.kind == Allocation::Kind::kManaged && mapped > context->holding().free() && frees_) {
    after_frees_.push_back([this, slot, wanted] { AllocateHost(slot, wanted); });
    return;
  }
  if (wanted.kind == Allocation::Kind::kManaged &&
      AwaitBudget(context->holding(), mapped, [this, slot, wanted](bool enough) {
        enough ? AllocateHost(slot, wanted)
               : Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, wire::wireHostAllocReply{});
      }))
    return;
  if (!ChargeHost(wanted)) return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, none);
  const size_t device = context->holding().device;
  auto base = host_space_.Take(mapped, kHostAlignment);
  if (!base) {
    if (wanted.kind == Allocation::Kind::kManaged) {
      context->holding().Refund(mapped);
    } else {
      tenant_.host_used -= mapped;
    }
    return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, none);
  }
  wanted.base = wanted.piece.base = *base;
  auto memory = MakeSealedMemory("cuplex-host", mapped);
  void* at = MAP_FAILED;
  if (memory.ok())
    at = mmap(reinterpret_cast<void*>(*base), mapped, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED_NOREPLACE, memory->get(), 0);
  if (at == MAP_FAILED) {
    ReturnHost(wanted, device);
    return Answer(slot, CUDA_ERROR_OUT_OF_MEMORY, none);
  }
  auto file = std::make_shared<UniqueFd>(std::move(*memory));
  auto code = std::make_shared<CUresult>(CUDA_SUCCESS);
  Post(
      true,
      [code, at, mapped, driver = context->driver(), &cu = house_.cu] {
        *code = cu.cuCtxSetCurrent(driver);
        if (!*code)
          *code =
              cu.cuMemHostRegister_v2(at, mapped, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
        Context::Leave(cu);
      },
      [this, code, file, wanted, device, slot] {
        CUresult why = *code;
        if (!why && (ending_ || Live(wanted.context, &why)) && !SendHostMemory(wanted, file->get()))
          why = CUDA_ERROR_OPERATING_SYSTEM;
        // What is registered goes with its context at the latest, also where the reply fails.
        if (!*code && contexts_.contains(wanted.context)) {
          memory_.Add(wanted);
        } else {
          munmap(reinterpret_cast<void*>(wanted.base), wanted.piece.bytes);
          ReturnHost(wanted, device);
        }
        wire::wireHostAllocReply reply{};
        reply.mutate_address(wanted.base);
        reply.mutate_mapped_bytes(wanted.piece.bytes);
        Answer(slot, why, reply);
      });
}

bool Session::SendHostMemory(const Allocation& allocation, int fd) {
  flatbuffers::FlatBufferBuilder builder;
  auto body = wire::CreateHostMemory(builder, allocation.base, allocation.piece.bytes);
  wire::FinishSessionMessageBuffer(
      builder, wire::CreateSessionMessage(builder, wire::SessionBody::HostMemory, body.Union()));
  const int fds[] = {fd};
  Status sent =
      SendPacket(socket_.get(),
                 {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()}, fds);
  if (!sent.ok())
    Log().debug("Pinned memory does not reach process {}: {}", client_.peer.pid, sent.error().sentence);
  return sent.ok();
}

Outcome Session::wireHostFree(const CallFrame& frame, const wire::wireHostFreeArgs& args,
                              wire::wireHostFreeReply*) {
  Allocation* found = memory_.At(args.address());
  if (!found || !found->on_host()) return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  const Allocation allocation = *memory_.Take(args.address());
  auto done = [this, allocation, slot = frame.slot](CUresult code) {
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
      memory_.Add(allocation);
      return Answer(slot, CUDA_SUCCESS, wire::wireHostFreeReply{});
    }
    Post(
        true,
        [allocation, driver = contexts_.at(allocation.context).context->driver(), &cu = house_.cu] {
          if (cu.cuCtxSetCurrent(driver) == CUDA_SUCCESS)
            (void)cu.cuMemHostUnregister(reinterpret_cast<void*>(allocation.base));
          Context::Leave(cu);
          munmap(reinterpret_cast<void*>(allocation.base), allocation.piece.bytes);
        },
        [this, allocation, slot, device = contexts_.at(allocation.context).device] {
          ReturnHost(allocation, device);
          Answer(slot, CUDA_SUCCESS, wire::wireHostFreeReply{});
        });
  };
  contexts_.at(allocation.context).context->WhenAllDone(std::move(done));
  return Outcome::Later();
}

}  // namespace cuplex::server
