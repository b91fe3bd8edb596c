// FakeServer: the other end of the wire, for tests: it takes calls through the protocol's own reader and
// decoder, remembers what it saw, and keeps "device" memory in a plain array. It knows nothing of the client.
//
// Construct, then point CUPLEX_SOCKET at path() (Attach does). Members that say what was seen are read by the
// test's thread after a call that waits for the server, or through Seen(), which locks.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "protocol/function_facts.h"
#include "protocol/ring.h"
#include "protocol/segment.h"
#include "protocol/uniform_call_handler.h"

namespace cuplex::client {

struct FakeSettings {
  int refusal = 0;  // code of a refusal in place of a welcome
  std::string sentence = {};
  int devices = 1;
  SegmentGeometry sizes = {};
  bool held = false;  // takes no call until Go()
};

struct SeenLaunch {
  uint64_t function;
  uint64_t stream;
  uint32_t grid[3], block[3];
  uint32_t shared_bytes, flags, context;
  std::vector<std::byte> parameters;
};

struct SeenCopy {
  uint64_t dst, src, bytes, stream;
  uint32_t staged;
};

class FakeServer final : public UniformCallHandler {
 public:
  static constexpr uint64_t kArenaBytes = 4ull << 30;
  static constexpr uint64_t kMemoryBytes = 32ull << 20;  // of the arena, from its start
  static constexpr uint64_t kHostWindowBytes = 1ull << 30;
  uint64_t arena_base(int device = 0) const { return base_ + device * kArenaBytes; }
  uint64_t host_window_base() const { return base_ + (8ull << 30); }

  explicit FakeServer(FakeSettings settings = {});
  ~FakeServer() override;

  const std::string& path() const { return path_; }
  /// Takes calls, where it was made to hold them.
  void Go() { held_.store(false); }
  /// Hangs up and takes no further call.
  void Die();

  SegmentHeader* header() { return segment_.header(); }
  /// "Device" memory. A test that looks at it takes Seen() first, as the server's thread writes it.
  std::byte* Memory(uint64_t address) { return memory_.get() + (address - arena_base()); }
  template <typename F>
  auto Seen(F f) {
    std::lock_guard lock(mutex);
    return f();
  }

  std::mutex mutex;  // over what follows
  std::vector<std::string> calls;
  std::vector<SeenLaunch> launches;
  std::vector<SeenCopy> copies;
  std::vector<wire::wireFillArgs> fills;
  std::vector<uint64_t> freed;
  std::map<uint64_t, std::string> images;  // by the low half of their hash, as written
  std::map<uint64_t, uint32_t> streams;    // flags, by handle
  std::vector<uint64_t> host_functions_done;
  std::vector<FunctionParameter> parameters;  // of every function it is asked for
  FunctionFacts facts;
  CUresult load_answer = CUDA_SUCCESS;
  std::string linked;  // what every link gives, and from where it is read
  std::string link_request;
  std::vector<uint64_t> links;  // made and not destroyed
  CUresult copy_answer = CUDA_SUCCESS;
  std::function<void()> on_synchronize;  // runs on the server's thread

  /// What no test looks at goes well.
  Outcome Any(const CallFrame&, std::span<const std::byte>, std::span<const std::byte>,
              std::string*) override {
    return CUDA_SUCCESS;
  }
  // clang-format off
  Outcome wireContextCreate(const CallFrame&, const wire::wireContextCreateArgs&, wire::wireContextCreateReply*) override;
  Outcome wireContextDestroy(const CallFrame&, const wire::wireContextDestroyArgs&, wire::wireContextDestroyReply*) override;
  Outcome cuCtxSynchronize(const CallFrame&, const wire::cuCtxSynchronizeArgs&, wire::cuCtxSynchronizeReply*) override;
  Outcome cuCtxSetLimit(const CallFrame&, const wire::cuCtxSetLimitArgs&, wire::cuCtxSetLimitReply*) override;
  Outcome cuCtxGetLimit(const CallFrame&, const wire::cuCtxGetLimitArgs&, wire::cuCtxGetLimitReply*) override;
  Outcome wireImageOffer(const CallFrame&, const wire::wireImageOfferArgs&, wire::wireImageOfferReply*) override;
  Outcome wireImageWrite(const CallFrame&, const wire::wireImageWriteArgs&, std::span<const std::byte>) override;
  Outcome wireModuleLoad(const CallFrame&, const wire::wireModuleLoadArgs&, wire::wireModuleLoadReply*, std::string*) override;
  Outcome wireModuleUnload(const CallFrame&, const wire::wireModuleUnloadArgs&) override;
  Outcome wireModuleFunction(const CallFrame&, const wire::wireModuleFunctionArgs&, std::span<const std::byte>, wire::wireModuleFunctionReply*, std::string*) override;
  Outcome wireModuleGlobal(const CallFrame&, const wire::wireModuleGlobalArgs&, std::span<const std::byte>, wire::wireModuleGlobalReply*) override;
  Outcome wireModuleFunctionName(const CallFrame&, const wire::wireModuleFunctionNameArgs&, wire::wireModuleFunctionNameReply*, std::string*) override;
  Outcome wireLink(const CallFrame&, const wire::wireLinkArgs&, wire::wireLinkReply*, std::string*) override;
  Outcome wireLinkRead(const CallFrame&, const wire::wireLinkReadArgs&, wire::wireLinkReadReply*, std::string*) override;
  Outcome wireLinkDestroy(const CallFrame&, const wire::wireLinkDestroyArgs&) override;
  Outcome cuFuncSetAttribute(const CallFrame&, const wire::cuFuncSetAttributeArgs&, wire::cuFuncSetAttributeReply*) override;
  Outcome cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(const CallFrame&, const wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsArgs&, wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsReply*) override;
  Outcome cuMemAlloc_v2(const CallFrame&, const wire::cuMemAlloc_v2Args&, wire::cuMemAlloc_v2Reply*) override;
  Outcome cuMemFree_v2(const CallFrame&, const wire::cuMemFree_v2Args&) override;
  Outcome cuMemGetInfo_v2(const CallFrame&, const wire::cuMemGetInfo_v2Args&, wire::cuMemGetInfo_v2Reply*) override;
  Outcome wireHostAlloc(const CallFrame&, const wire::wireHostAllocArgs&, wire::wireHostAllocReply*) override;
  Outcome wireHostFree(const CallFrame&, const wire::wireHostFreeArgs&, wire::wireHostFreeReply*) override;
  Outcome wireCopy(const CallFrame&, const wire::wireCopyArgs&) override;
  Outcome wireCopyBox(const CallFrame&, const wire::wireCopyBoxArgs&) override;
  Outcome wireFill(const CallFrame&, const wire::wireFillArgs&) override;
  Outcome wireFreeAsync(const CallFrame&, const wire::wireFreeAsyncArgs&) override;
  Outcome wireStreamCreate(const CallFrame&, const wire::wireStreamCreateArgs&) override;
  Outcome cuStreamDestroy_v2(const CallFrame&, const wire::cuStreamDestroy_v2Args&) override;
  Outcome cuStreamSynchronize(const CallFrame&, const wire::cuStreamSynchronizeArgs&, wire::cuStreamSynchronizeReply*) override;
  Outcome cuStreamQuery(const CallFrame&, const wire::cuStreamQueryArgs&, wire::cuStreamQueryReply*) override;
  Outcome cuStreamWaitEvent(const CallFrame&, const wire::cuStreamWaitEventArgs&) override;
  Outcome wireHostFunc(const CallFrame&, const wire::wireHostFuncArgs&) override;
  Outcome wireHostFuncDone(const CallFrame&, const wire::wireHostFuncDoneArgs&) override;
  Outcome wireEventCreate(const CallFrame&, const wire::wireEventCreateArgs&) override;
  Outcome cuEventDestroy_v2(const CallFrame&, const wire::cuEventDestroy_v2Args&) override;
  Outcome cuEventRecord(const CallFrame&, const wire::cuEventRecordArgs&) override;
  Outcome cuEventQuery(const CallFrame&, const wire::cuEventQueryArgs&, wire::cuEventQueryReply*) override;
  Outcome cuEventSynchronize(const CallFrame&, const wire::cuEventSynchronizeArgs&, wire::cuEventSynchronizeReply*) override;
  Outcome cuEventElapsedTime_v2(const CallFrame&, const wire::cuEventElapsedTime_v2Args&, wire::cuEventElapsedTime_v2Reply*) override;
  Outcome wireTakeText(const CallFrame&, const wire::wireTakeTextArgs&, wire::wireTakeTextReply*, std::string*) override;
  Outcome wireArrayCreate(const CallFrame&, const wire::wireArrayCreateArgs&, wire::wireArrayCreateReply*) override;
  Outcome wireArrayDestroy(const CallFrame&, const wire::wireArrayDestroyArgs&) override;
  Outcome wireArrayLevel(const CallFrame&, const wire::wireArrayLevelArgs&, wire::wireArrayLevelReply*) override;
  Outcome wireCopyArray(const CallFrame&, const wire::wireCopyArrayArgs&) override;
  Outcome wireTextureCreate(const CallFrame&, const wire::wireTextureCreateArgs&, std::span<const std::byte>, wire::wireTextureCreateReply*) override;
  Outcome wireTextureDestroy(const CallFrame&, const wire::wireTextureDestroyArgs&) override;
  Outcome wireReferenceBind(const CallFrame&, const wire::wireReferenceBindArgs&, std::span<const std::byte>, wire::wireReferenceBindReply*) override;
  Outcome wireLaunch(const CallFrame&, const wire::wireLaunchArgs&, std::span<const std::byte>) override;
  // clang-format on

 private:
  void Accept();
  bool Welcome();
  void Serve();
  void TakeCalls(RingReader& reader);
  /// The bytes behind an address of the wire.
  std::byte* At(uint64_t address, bool staged);
  void EndStaged(uint64_t offset, bool target);

  FakeSettings settings_;
  uint64_t base_;
  std::string folder_, path_;
  std::mutex socket_mutex_;  // over making, closing and shutting down the socket
  UniqueFd listening_, socket_, doorbell_;
  Segment segment_;
  std::unique_ptr<std::byte[]> memory_;
  uint64_t next_memory_ = 0, next_host_ = 0;
  std::map<uint64_t, UniqueFd> host_memory_;
  std::atomic<bool> held_{false}, stop_{false};
  std::thread thread_;
};

/// Makes `server` the one this process attaches to, and attaches: cuInit, and the first device's primary
/// context as current.
CUcontext Attach(FakeServer& server);

}  // namespace cuplex::client
