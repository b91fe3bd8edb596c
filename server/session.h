// Session: one client process, everything it owns, and what the server does for each of its calls. Reactor's
// thread.
//
// The session is a part of the ledger: contexts, memory, modules, functions, streams and events are all here,
// each known to this client alone. When the client hangs up, End gives all of it back, in the order in which
// it can be taken from the driver: contexts first (which ends whatever still runs in them), then memory.
//
// Slow driver calls run as jobs; their reply comes later, and the ring is read on meanwhile. session.cc has
// the life of a session, session_*.cc its calls by subject.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/unique_fd.h"
#include "cuda/array_layout.h"
#include "protocol/call_handler.h"
#include "protocol/handle.h"
#include "protocol/ring.h"
#include "protocol/segment.h"
#include "protocol/session_socket.h"
#include "protocol/slot.h"
#include "protocol/texture_request.h"
#include "server/context.h"
#include "server/graph.h"
#include "server/house.h"
#include "server/link.h"
#include "server/memory.h"

namespace cuplex::server {

/// What one client may have at once; beyond, its calls answer CUDA_ERROR_OUT_OF_MEMORY.
inline constexpr size_t kMostContexts = 64;
inline constexpr size_t kMostStreams = 4096;
inline constexpr size_t kMostEvents = 65536;
inline constexpr size_t kMostModules = 4096;
inline constexpr size_t kMostFunctions = 65536;
inline constexpr size_t kMostLinks = 64;  // images that were linked and not fetched, and links at work
inline constexpr size_t kMostAllocations = 1 << 20;
inline constexpr size_t kMostArrays = 65536;
inline constexpr size_t kMostTextures = 32768;
inline constexpr size_t kMostGraphs = 16384;
/// Nodes of all graphs of a client, those counted that only queued launches keep; and the bytes that describe
/// them.
inline constexpr size_t kMostGraphNodes = 1 << 17;
inline constexpr size_t kMostGraphBytes = 64 << 20;
/// Operations not given to the driver at which its ring is left alone for a while, and, where it must be read
/// because a host function is out, at which further ones are refused.
inline constexpr size_t kManyQueued = 4096;
inline constexpr size_t kMostQueued = 65536;

class Session final : public CallHandler, public ContextOwner {
 public:
  struct Client {
    PeerCredentials peer;
    std::string program;  // as it says; for people
  };
  /// `ended` is called once, when everything has been given back; the session may be destroyed after it has
  /// returned to the reactor.
  Session(House& house, Tenant& tenant, Client client, Segment segment, UniqueFd socket,
          AddressSpace host_window, std::function<void(Session&)> ended);
  ~Session() override;

  Tenant& tenant() { return tenant_; }
  const Client& client() const { return client_; }
  const Segment& segment() const { return segment_; }
  int socket() const { return socket_.get(); }
  uint64_t host_window() const { return host_space_.base(); }
  RingReader& ring() { return ring_; }

  /// Takes at most `most` frames from the ring; returns how many. Nonsense ends the session.
  int Drain(int most);
  /// One frame, header included. Errors are the client's fault; the session should end.
  Status Handle(std::span<const std::byte> frame);
  /// Gives host functions that did not fit the inbox.
  void FillInbox();

  /// Gives everything back; `ended` is called when it is done. More than once: nothing more happens.
  void End();
  bool ending() const { return ending_; }

  uint64_t memory_used() const;
  size_t queued() const;
  /// Those that are made, for tests.
  std::vector<const Context*> contexts() const;
  /// Whether what its client asks for without waiting may lie until a device comes to an end of what it has:
  /// more of the session's waits for that already. No shorter than `least_ns` from `now_ns` on.
  bool MayWait(int64_t now_ns, int64_t least_ns) const;
  /// Nothing of it is with the driver, and nothing is owned. For tests.
  bool Empty() const;

  // ------------------------------------------------------------------------------------ ContextOwner
  void Deferred(CUresult code) override;
  void Faulted(Context& context, CUresult code) override;
  void WantSliced(Context& context, Function& function) override;
  void Overran(Context& context) override;
  void GiveHostFunc(uint64_t cookie) override;
  std::byte* Block(uint32_t block) override;
  void BlockDone(uint32_t block, bool filled, CUresult code) override;

  // ------------------------------------------------------------------------------------- CallHandler
#define CALL(name, ...) \
  Outcome name(const CallFrame& frame, const wire::name##Args& args __VA_OPT__(, ) __VA_ARGS__) override
#define REPLYING(name, ...) CALL(name, wire::name##Reply* reply __VA_OPT__(, ) __VA_ARGS__)
  REPLYING(wireContextCreate);
  REPLYING(wireContextDestroy);
  REPLYING(cuCtxSynchronize);
  REPLYING(cuCtxSetLimit);
  REPLYING(cuCtxGetLimit);
  REPLYING(wireTakeText, std::string* text);
  REPLYING(wireImageOffer);
  CALL(wireImageWrite, std::span<const std::byte> data);
  REPLYING(wireModuleLoad, std::string* text);
  CALL(wireModuleUnload);
  Outcome wireModuleFunction(const CallFrame& frame, const wire::wireModuleFunctionArgs& args,
                             std::span<const std::byte> name, wire::wireModuleFunctionReply* reply,
                             std::string* facts) override;
  Outcome wireModuleGlobal(const CallFrame& frame, const wire::wireModuleGlobalArgs& args,
                           std::span<const std::byte> name, wire::wireModuleGlobalReply* reply) override;
  REPLYING(wireModuleFunctionName, std::string* name);
  REPLYING(wireLink, std::string* text);
  REPLYING(wireLinkRead, std::string* data);
  CALL(wireLinkDestroy);
  REPLYING(cuFuncSetAttribute);
  REPLYING(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  REPLYING(cuMemAlloc_v2);
  CALL(cuMemFree_v2);
  REPLYING(cuMemGetInfo_v2);
  REPLYING(wireHostAlloc);
  REPLYING(wireHostFree);
  CALL(wireCopy);
  CALL(wireCopyBox);
  CALL(wireFill);
  CALL(wireFreeAsync);
  CALL(wireStreamCreate);
  CALL(cuStreamDestroy_v2);
  REPLYING(cuStreamSynchronize);
  REPLYING(cuStreamQuery);
  CALL(cuStreamWaitEvent);
  CALL(wireHostFunc);
  CALL(wireHostFuncDone);
  CALL(wireEventCreate);
  CALL(cuEventDestroy_v2);
  CALL(cuEventRecord);
  REPLYING(cuEventQuery);
  REPLYING(cuEventSynchronize);
  REPLYING(cuEventElapsedTime_v2);
  CALL(wireLaunch, std::span<const std::byte> parameters);
  REPLYING(wireArrayCreate);
  CALL(wireArrayDestroy);
  REPLYING(wireArrayLevel);
  CALL(wireCopyArray);
  Outcome wireTextureCreate(const CallFrame& frame, const wire::wireTextureCreateArgs& args,
                            std::span<const std::byte> request, wire::wireTextureCreateReply* reply) override;
  CALL(wireTextureDestroy);
  Outcome wireReferenceBind(const CallFrame& frame, const wire::wireReferenceBindArgs& args,
                            std::span<const std::byte> request, wire::wireReferenceBindReply* reply) override;
  CALL(wireGraphNodes, std::span<const std::byte> nodes);
  REPLYING(wireGraphReady);
  CALL(wireGraphLaunch);
  CALL(wireGraphDestroy);
#undef REPLYING
#undef CALL

 private:
  struct OwnContext {
    std::unique_ptr<Context> context;  // null while it is being made
    size_t device = 0;
    bool ending = false;
    std::shared_ptr<TextBox> text;  // of its kernels
    /// Device memory that its limits take beyond what they did at first, charged: of the heap, of the stacks.
    std::array<std::optional<uint64_t>, 2> first_limit;
    std::array<uint64_t, 2> limit_charge{};
  };
  struct OwnStream {
    VirtualStream* stream = nullptr;
    uint32_t context = 0;
  };
  struct OwnEvent {
    uint32_t context = 0;
    uint32_t flags = 0;
    Mark* latest = nullptr;  // of the last record; with a reference
  };
  struct OwnModule {
    CUmodule handle = nullptr;
    uint32_t context = 0;
    uint64_t charged = 0;
    std::vector<CUfunction> functions;
    std::vector<uint64_t> found;    // in functions_
    std::vector<uint64_t> globals;  // in memory_
    ImageStore::Image image;
    std::vector<CUmodule> sliced;  // made of it
  };
  struct OwnArray {
    CUarray handle = nullptr;  // of a mipmapped one the other
    CUmipmappedArray mipmapped_handle = nullptr;
    bool mipmapped = false;
    uint32_t context = 0;
    uint64_t charged = 0;
    ArrayLayout layout;            // not of a level
    uint64_t level_of = 0;         // the mipmapped array that a level is of
    std::vector<uint64_t> levels;  // that have a handle
  };
  struct OwnFunction {
    std::unique_ptr<Function> function;
    uint32_t context = 0;
    uint64_t module = 0;
  };
  struct OwnGraph {
    uint32_t context = 0;
    std::vector<std::string> nodes;      // frames
    bool ready = false;                  // has had all its nodes once
    std::shared_ptr<const Graph> graph;  // null where nodes have changed since
    uint64_t checked = 0;                // Gone() when it was made
    uint64_t stream = 0;                 // of the last launch; 0 where nothing of one can be on its way
    Mark* before = nullptr;              // what the next launch must come after; with a reference
  };
  class GraphBuilder;

  // --------------------------------------------------------------------------------- finding things
  /// The context of a number, if it is alive; else an answer why not.
  Context* Live(uint32_t number, CUresult* why);
  VirtualStream* FindStream(const CallFrame& frame, uint64_t handle, CUresult* why);
  CUresult Refuse(metrics::Refusal reason, CUresult code);
  CUresult Refuse(metrics::Refusal reason, CUresult code, std::string_view sentence);
  CUresult Refuse(const Error& error);
  bool TooManyQueued();
  /// Brings the segment's sticky error up to date: a process whose contexts have all failed need not ask.
  void TellSticky();
  /// Says in the segment that kernels have printed, before something that waited for them is answered.
  void TellText();

  // ----------------------------------------------------------------------------------------- replies
  template <typename Reply>
  void Answer(uint32_t slot, CUresult code, const Reply& reply, std::span<const char> tail = {});
  Outcome AnswerWhen(uint32_t slot, size_t reply_bytes,
                     const std::function<void(std::function<void(CUresult)>)>& when);

  // ------------------------------------------------------------------------------------ jobs and ends
  void Post(bool in_context, Jobs::Step work, Jobs::Step done);
  void GoOnEnding();
  /// Destroys these contexts and gives back what belongs to them; `done` is called at the end.
  void EndContexts(std::vector<uint32_t> numbers, std::function<void(CUresult)> done);
  void DestroyContexts(std::vector<uint32_t> numbers, std::function<void(CUresult)> done);

  // ------------------------------------------------------------------------------------------ memory
  void Allocate(uint32_t slot, uint32_t context, uint64_t bytes);
  void MapForAllocation(uint32_t slot, uint32_t context, uint64_t bytes, uint64_t mapped);
  void AnswerMemory(uint32_t slot, uint32_t context);
  void Free(Allocation allocation);
  void ReturnPiece(Holding& holding, const Piece& piece, bool returned);
  void FreeDone();
  /// True where the tenant waits for memory and `bytes` may come to be free: `then` is called when they are,
  /// or when the time is over.
  bool AwaitBudget(Holding& holding, uint64_t bytes, std::function<void(bool enough)> then);
  CUresult Dispose(uint64_t address, VirtualStream* stream);
  /// The box that the arguments of wireCopyBox or wireCopyArray describe, unchecked.
  template <typename Args>
  static Operation::Copy BoxOf(const Args& args) {
    Operation::Copy copy{};
    copy.dst = args.dst();
    copy.dst_pitch = args.dst_pitch();
    copy.dst_slice = args.dst_slice();
    copy.src = args.src();
    copy.src_pitch = args.src_pitch();
    copy.src_slice = args.src_slice();
    copy.bytes = args.width();
    copy.height = args.height();
    copy.depth = args.depth();
    return copy;
  }
  /// Bytes from the first to behind the last of a box; nullopt where that passes 2^63 or a pitch is below its
  /// row.
  static std::optional<uint64_t> CopyExtent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch,
                                            uint64_t slice);
  bool CheckCopy(Operation::Copy& copy, uint32_t staged, uint64_t dst_bytes, uint64_t src_bytes);
  CUresult GiveCopy(const CallFrame& frame, OperationKind kind, const Operation::Copy& copy, uint64_t handle,
                    bool good);
  // What calls describe, checked: for a stream, or for a node of a graph.
  Function* LaunchOf(const wire::wireLaunchArgs& args, std::span<const std::byte> parameters,
                     const Context* context, CUresult* why);
  static void SetLaunch(Operation& operation, Function& function, const wire::wireLaunchArgs& args,
                        std::span<const std::byte> parameters);
  CUresult FillOf(const wire::wireFillArgs& args, Operation::Fill* fill);
  bool CopyOf(const wire::wireCopyArgs& args, Operation::Copy* copy);
  bool CopyOf(const wire::wireCopyBoxArgs& args, Operation::Copy* copy);
  bool CopyOf(const wire::wireCopyArrayArgs& args, const Context* context, Operation::Copy* copy);
  void AllocateHost(uint32_t slot, Allocation wanted);
  /// Takes host memory from the budget that it is charged to.
  bool ChargeHost(const Allocation& allocation);
  /// Gives its addresses and its budget back.
  void ReturnHost(const Allocation& allocation, size_t device);
  /// Passes pinned memory to the client, over its socket.
  bool SendHostMemory(const Allocation& allocation, int fd);

  // ----------------------------------------------------------------------------------------- modules
  void LoadModule(uint32_t slot, uint32_t text_bytes, uint32_t number, uint64_t handle,
                  ImageStore::Image image, std::optional<uint64_t> known);
  void AnswerModule(uint32_t slot, CUresult code, uint32_t functions, std::string text, uint32_t text_bytes);
  void UnloadJob(uint32_t number, CUmodule handle, uint64_t charged, Holding& holding);
  void AnswerLink(uint32_t slot, const Linked& linked, uint64_t image_bytes, uint32_t text_bytes);
  void DropLinks();

  // ------------------------------------------------------------------------- arrays, textures, surfaces
  void MakeArray(uint32_t slot, uint64_t handle, const CUDA_ARRAY3D_DESCRIPTOR& wanted, OwnArray array);
  void DestroyArrayJob(const OwnArray& array, Holding& holding);
  /// The driver's array, where it is one of that context; not of a mipmapped one.
  CUarray FindArray(uint64_t handle, const Context* context);
  /// The driver's descriptor of what a request names, all of it the client's own.
  CUresult ResourceOf(const TextureRequest& request, uint32_t context, CUDA_RESOURCE_DESC* out);

  // ------------------------------------------------------------------------------------------ graphs
  /// Grows whenever something goes that a graph may name.
  uint64_t Gone() const { return memory_.taken() + gone_; }
  /// Makes a graph of its nodes; `node` is the first that is wrong.
  CUresult BuildGraph(OwnGraph& own, uint32_t* node);
  void EraseGraph(uint64_t handle);
  /// The graph's next launch is in another stream: it must come after what this one has up to here.
  void Leave(OwnGraph& own, VirtualStream& stream);
  /// The same for every graph whose last launch is in a stream that ends.
  void LeaveStream(uint64_t handle, VirtualStream& stream);

  House& house_;
  Tenant& tenant_;
  const Client client_;
  Segment segment_;
  UniqueFd socket_;
  RingReader ring_;
  std::function<void(Session&)> ended_;

  std::map<uint32_t, OwnContext> contexts_;
  std::vector<std::shared_ptr<TextBox>> texts_;  // of contexts; of ended ones until they are empty
  MemoryRanges memory_;
  std::map<uint64_t, std::unique_ptr<Chunk>> chunks_;
  AddressSpace host_space_;
  HandleTable<OwnStream> streams_;
  HandleTable<OwnEvent> events_;
  HandleTable<std::unique_ptr<OwnModule>> modules_;
  HandleTable<OwnFunction> functions_;
  HandleTable<std::string> links_;  // images, counted in the tenant's link_bytes
  HandleTable<std::unique_ptr<OwnArray>> arrays_;
  std::set<std::tuple<uint32_t, bool, uint64_t>> textures_;  // context, surface, the driver's handle
  HandleTable<std::unique_ptr<OwnGraph>> graphs_;
  uint64_t gone_ = 0;       // functions and arrays that are no more
  size_t graph_nodes_ = 0;  // described
  size_t graph_bytes_ = 0;
  std::shared_ptr<size_t> graph_operations_ = std::make_shared<size_t>(0);  // made of them
  ImageUploads uploads_;

  int jobs_ = 0;          // posted and not done
  int context_jobs_ = 0;  // of these, those that use one of the session's contexts
  int frees_ = 0;         // frees whose memory is not back in the budget
  size_t modules_loading_ = 0;
  size_t links_at_work_ = 0;
  std::vector<std::function<void()>> after_frees_;        // wait for frees_ == 0
  std::deque<std::function<void()>> after_context_jobs_;  // wait for context_jobs_ == 0
  std::deque<uint64_t> inbox_backlog_;
  uint64_t inbox_tail_ = 0;
  int host_funcs_out_ = 0;
  bool ending_ = false;
  bool contexts_ended_ = false;
};

template <typename Reply>
void Session::Answer(uint32_t slot, CUresult code, const Reply& reply, std::span<const char> tail) {
  std::string payload(reinterpret_cast<const char*>(&reply), sizeof(reply));
  payload.append(tail.data(), tail.size());
  CompleteSlot(segment_, slot, code, std::as_bytes(std::span(payload)));
}

}  // namespace cuplex::server
