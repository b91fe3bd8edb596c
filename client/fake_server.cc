#include "client/fake_server.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "client/process.h"
#include "cuda/driver_api.h"
#include "protocol/decode.h"
#include "protocol/session_generated.h"
#include "protocol/session_socket.h"
#include "protocol/slot.h"
#include "protocol/staging.h"

namespace cuplex::client {
namespace {

std::span<const std::byte> BytesOf(const flatbuffers::FlatBufferBuilder& b) {
  return {reinterpret_cast<const std::byte*>(b.GetBufferPointer()), b.GetSize()};
}

flatbuffers::Offset<wire::Device> WriteDevice(flatbuffers::FlatBufferBuilder& b, int n, uint64_t arena) {
  const std::vector<wire::DeviceAttribute> attributes = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 512},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 1 << 30},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 7},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
  };
  const std::vector<uint8_t> uuid = {1, 2,  3,  4,  5,  6,  7,  8,
                                     9, 10, 11, 12, 13, 14, 15, static_cast<uint8_t>(n)};
  auto name = b.CreateString("Fake GPU " + std::to_string(n));
  auto place = b.CreateString("0000:0" + std::to_string(n) + ":00.0");
  auto ids = b.CreateVector(uuid);
  auto list = b.CreateVectorOfStructs(attributes);
  return wire::CreateDevice(b, name, ids, place, 300ull << 20, 12, 1, 0, -5, list, arena,
                            FakeServer::kArenaBytes);
}

std::string TextOf(std::span<const std::byte> s) {
  return {reinterpret_cast<const char*>(s.data()), s.size()};
}

}  // namespace

FakeServer::FakeServer(FakeSettings settings)
    : settings_(std::move(settings)),
      base_(CUPLEX_DEFAULT_WINDOW_BASE + (uint64_t{1} << 38)),
      memory_(std::make_unique_for_overwrite<std::byte[]>(kMemoryBytes)) {
  facts.max_threads_per_block = 512;
  facts.max_dynamic_shared_bytes = 4096;
  char folder[] = "/tmp/cuplex-client-XXXXXX";
  folder_ = mkdtemp(folder);
  path_ = folder_ + "/socket";
  held_.store(settings_.held);
  listening_ = *ListenSession(path_, 0600);
  thread_ = std::thread([this] { Accept(); });
}

FakeServer::~FakeServer() {
  Die();
  shutdown(listening_.get(), SHUT_RDWR);
  thread_.join();
  std::filesystem::remove_all(folder_);
}

void FakeServer::Die() {
  stop_.store(true);
  std::lock_guard lock(socket_mutex_);
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
}

void FakeServer::Accept() {
  auto socket = AcceptSession(listening_.get());
  if (!socket.ok()) return;
  {
    std::lock_guard lock(socket_mutex_);
    socket_ = *std::move(socket);
  }
  if (Welcome()) Serve();
}

bool FakeServer::Welcome() {
  auto hello = ReceivePacket(socket_.get(), 10'000);
  if (!hello.ok()) return false;
  const wire::Hello* h = wire::GetSessionMessage(hello->bytes.data())->body_as_Hello();
  if (!h || h->protocol_newest() != kProtocolVersion) return false;
  flatbuffers::FlatBufferBuilder b;
  if (settings_.refusal) {
    auto refusal = wire::CreateRefusal(b, settings_.refusal, b.CreateString(settings_.sentence));
    wire::FinishSessionMessageBuffer(
        b, wire::CreateSessionMessage(b, wire::SessionBody::Refusal, refusal.Union()));
    (void)SendPacket(socket_.get(), BytesOf(b), {});
    std::lock_guard lock(socket_mutex_);
    socket_.reset();
    return false;
  }
  segment_ = *Segment::Create(settings_.sizes);
  doorbell_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const SegmentGeometry& g = segment_.geometry();
  std::vector<flatbuffers::Offset<wire::Device>> devices;
  for (int n = 0; n < settings_.devices; ++n) devices.push_back(WriteDevice(b, n, arena_base(n)));
  auto version = b.CreateString("test");
  auto tenant = b.CreateString("tenant");
  auto list = b.CreateVector(devices);
  auto welcome = wire::CreateWelcome(b, kProtocolVersion, version, tenant, 12090, g.slot_count, g.slot_bytes,
                                     g.block_count, g.block_bytes, g.ring_bytes, host_window_base(),
                                     kHostWindowBytes, list);
  wire::FinishSessionMessageBuffer(
      b, wire::CreateSessionMessage(b, wire::SessionBody::Welcome, welcome.Union()));
  const int fds[] = {segment_.fd(), doorbell_.get()};
  return SendPacket(socket_.get(), BytesOf(b), fds).ok();
}

void FakeServer::Serve() {
  RingReader reader(segment_);
  while (!stop_.load()) {
    if (!held_.load() && !reader.Sleep()) {
      TakeCalls(reader);
      continue;
    }
    pollfd p[] = {{doorbell_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    poll(p, 2, held_.load() ? 1 : -1);
    uint64_t rung;
    [[maybe_unused]] ssize_t n = read(doorbell_.get(), &rung, sizeof(rung));
    if (p[1].revents) return;  // the client hung up, or Die was called
    reader.Wake();
  }
}

void FakeServer::TakeCalls(RingReader& reader) {
  while (!stop_.load()) {
    auto next = reader.Next();
    ASSERT_TRUE(next.ok()) << next.error().sentence;
    if (!*next) return;
    FrameHeader header;
    std::memcpy(&header, (*next)->data(), sizeof(header));
    auto frame = CheckHeader(header, segment_.geometry().slot_count);
    ASSERT_TRUE(frame.ok()) << frame.error().sentence;
    std::unique_lock lock(mutex);
    calls.push_back(frame->row->name);
    CallReply reply;
    const Status decoded = DecodeCall(*frame, (*next)->subspan(sizeof(header)), *this, &reply);
    lock.unlock();
    ASSERT_TRUE(decoded.ok()) << decoded.error().sentence;
    reader.Release();
    if (stop_.load()) return;
    if (frame->slot != kNoSlot)
      CompleteSlot(segment_, frame->slot, reply.outcome.result, std::as_bytes(std::span(reply.payload)));
    else if (reply.outcome.result)
      segment_.header()->deferred_error.store(reply.outcome.result);
  }
}

std::byte* FakeServer::At(uint64_t address, bool staged) {
  if (staged) return segment_.staging() + address;
  if (address - arena_base() < kMemoryBytes) return Memory(address);
  return reinterpret_cast<std::byte*>(address);  // the host window: the client lives in this very process
}

void FakeServer::EndStaged(uint64_t offset, bool target) {
  const uint32_t block = static_cast<uint32_t>(offset / segment_.geometry().block_bytes);
  FinishBlock(segment_, block, target ? StagingBlock::kDone : StagingBlock::kFree, copy_answer);
}

// clang-format off
Outcome FakeServer::wireContextCreate(const CallFrame&, const wire::wireContextCreateArgs&, wire::wireContextCreateReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireContextDestroy(const CallFrame&, const wire::wireContextDestroyArgs&, wire::wireContextDestroyReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::cuCtxSetLimit(const CallFrame&, const wire::cuCtxSetLimitArgs&, wire::cuCtxSetLimitReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireModuleUnload(const CallFrame&, const wire::wireModuleUnloadArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::cuFuncSetAttribute(const CallFrame&, const wire::cuFuncSetAttributeArgs&, wire::cuFuncSetAttributeReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::cuStreamSynchronize(const CallFrame&, const wire::cuStreamSynchronizeArgs&, wire::cuStreamSynchronizeReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::cuStreamQuery(const CallFrame&, const wire::cuStreamQueryArgs&, wire::cuStreamQueryReply*) { return CUDA_ERROR_NOT_READY; }
Outcome FakeServer::cuStreamWaitEvent(const CallFrame&, const wire::cuStreamWaitEventArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::wireEventCreate(const CallFrame&, const wire::wireEventCreateArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::cuEventDestroy_v2(const CallFrame&, const wire::cuEventDestroy_v2Args&) { return CUDA_SUCCESS; }
Outcome FakeServer::cuEventRecord(const CallFrame&, const wire::cuEventRecordArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::cuEventQuery(const CallFrame&, const wire::cuEventQueryArgs&, wire::cuEventQueryReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::cuEventSynchronize(const CallFrame&, const wire::cuEventSynchronizeArgs&, wire::cuEventSynchronizeReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireTakeText(const CallFrame&, const wire::wireTakeTextArgs&, wire::wireTakeTextReply*, std::string*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireArrayCreate(const CallFrame&, const wire::wireArrayCreateArgs&, wire::wireArrayCreateReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireArrayDestroy(const CallFrame&, const wire::wireArrayDestroyArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::wireArrayLevel(const CallFrame&, const wire::wireArrayLevelArgs&, wire::wireArrayLevelReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireCopyArray(const CallFrame&, const wire::wireCopyArrayArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::wireTextureCreate(const CallFrame&, const wire::wireTextureCreateArgs&, std::span<const std::byte>, wire::wireTextureCreateReply*) { return CUDA_SUCCESS; }
Outcome FakeServer::wireTextureDestroy(const CallFrame&, const wire::wireTextureDestroyArgs&) { return CUDA_SUCCESS; }
Outcome FakeServer::wireReferenceBind(const CallFrame&, const wire::wireReferenceBindArgs&, std::span<const std::byte>, wire::wireReferenceBindReply*) { return CUDA_SUCCESS; }
// clang-format on

Outcome FakeServer::cuCtxSynchronize(const CallFrame&, const wire::cuCtxSynchronizeArgs&,
                                     wire::cuCtxSynchronizeReply*) {
  if (on_synchronize) on_synchronize();
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuCtxGetLimit(const CallFrame&, const wire::cuCtxGetLimitArgs& args,
                                  wire::cuCtxGetLimitReply* reply) {
  reply->mutate_pvalue(1000 + args.limit());
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireImageOffer(const CallFrame&, const wire::wireImageOfferArgs& args,
                                   wire::wireImageOfferReply* reply) {
  reply->mutate_known(images.contains(args.hash_low()) &&
                      images[args.hash_low()].size() == args.image_bytes());
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireImageWrite(const CallFrame&, const wire::wireImageWriteArgs& args,
                                   std::span<const std::byte> data) {
  std::string& image = images[args.hash_low()];
  if (image.size() != args.offset() || data.size() > 64 * 1024) return CUDA_ERROR_INVALID_VALUE;
  image += TextOf(data);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireModuleLoad(const CallFrame&, const wire::wireModuleLoadArgs& args,
                                   wire::wireModuleLoadReply* reply, std::string* text) {
  if (load_answer) *text = "line 7: a sentence";
  reply->mutate_function_count(2);
  return images.contains(args.hash_low()) ? load_answer : CUDA_ERROR_INVALID_IMAGE;
}

Outcome FakeServer::wireLink(const CallFrame&, const wire::wireLinkArgs& args, wire::wireLinkReply* reply,
                             std::string* text) {
  link_request = images[args.hash_low()];
  *text = load_answer ? "a.ptx: a sentence" : "all is well";
  reply->mutate_info_bytes(load_answer ? 0 : static_cast<uint32_t>(text->size()));
  if (load_answer) return load_answer;
  links.push_back(args.link());
  reply->mutate_image_bytes(linked.size());
  reply->mutate_wall_time(0x40200000);  // 2.5f
  reply->mutate_threads(96);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireLinkRead(const CallFrame&, const wire::wireLinkReadArgs& args,
                                 wire::wireLinkReadReply*, std::string* data) {
  if (!std::ranges::count(links, args.link()) || args.offset() > linked.size())
    return CUDA_ERROR_INVALID_VALUE;
  *data = linked.substr(args.offset(), args.data_bytes());
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireLinkDestroy(const CallFrame&, const wire::wireLinkDestroyArgs& args) {
  return std::erase(links, args.link()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Outcome FakeServer::wireModuleFunction(const CallFrame&, const wire::wireModuleFunctionArgs&,
                                       std::span<const std::byte> name, wire::wireModuleFunctionReply*,
                                       std::string* out) {
  if (TextOf(name) == "absent") return CUDA_ERROR_NOT_FOUND;
  facts.parameter_count = static_cast<uint32_t>(parameters.size());
  facts.parameter_bytes = parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  out->assign(reinterpret_cast<const char*>(&facts), sizeof(facts));
  out->append(reinterpret_cast<const char*>(parameters.data()),
              parameters.size() * sizeof(FunctionParameter));
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireModuleGlobal(const CallFrame&, const wire::wireModuleGlobalArgs&,
                                     std::span<const std::byte>, wire::wireModuleGlobalReply* reply) {
  reply->mutate_address(arena_base() + kMemoryBytes - 4096);
  reply->mutate_size(40);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireModuleFunctionName(const CallFrame&, const wire::wireModuleFunctionNameArgs& args,
                                           wire::wireModuleFunctionNameReply*, std::string* name) {
  *name = "function" + std::to_string(args.index());
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    const CallFrame&, const wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsArgs& args,
    wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsReply* reply) {
  reply->mutate_num_blocks(900 / args.block_size());  // a processor that holds 900 threads
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuMemAlloc_v2(const CallFrame&, const wire::cuMemAlloc_v2Args& args,
                                  wire::cuMemAlloc_v2Reply* reply) {
  const uint64_t bytes = (args.bytesize() + 511) & ~511ull;
  if (bytes > kMemoryBytes - 4096 - next_memory_) return CUDA_ERROR_OUT_OF_MEMORY;
  reply->mutate_dptr(arena_base() + next_memory_);
  next_memory_ += bytes;
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuMemFree_v2(const CallFrame&, const wire::cuMemFree_v2Args& args) {
  freed.push_back(args.dptr());
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuMemGetInfo_v2(const CallFrame&, const wire::cuMemGetInfo_v2Args&,
                                    wire::cuMemGetInfo_v2Reply* reply) {
  reply->mutate_free(111);
  reply->mutate_total(222);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireHostAlloc(const CallFrame&, const wire::wireHostAllocArgs& args,
                                  wire::wireHostAllocReply* reply) {
  const uint64_t bytes = (args.bytes() + 4095) & ~4095ull;
  const uint64_t address = host_window_base() + next_host_;
  next_host_ += bytes;
  UniqueFd fd = *MakeSealedMemory("fake-host", bytes);
  flatbuffers::FlatBufferBuilder b;
  auto memory = wire::CreateHostMemory(b, address, bytes);
  wire::FinishSessionMessageBuffer(
      b, wire::CreateSessionMessage(b, wire::SessionBody::HostMemory, memory.Union()));
  const int fds[] = {fd.get()};
  if (!SendPacket(socket_.get(), BytesOf(b), fds).ok()) return CUDA_ERROR_UNKNOWN;
  reply->mutate_address(address);
  reply->mutate_mapped_bytes(bytes);
  host_memory_[address] = std::move(fd);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireHostFree(const CallFrame&, const wire::wireHostFreeArgs& args,
                                 wire::wireHostFreeReply*) {
  return host_memory_.erase(args.address()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Outcome FakeServer::wireCopy(const CallFrame&, const wire::wireCopyArgs& args) {
  copies.push_back({args.dst(), args.src(), args.bytes(), args.stream(), args.staged()});
  if (!copy_answer)
    std::memmove(At(args.dst(), args.staged() & 2), At(args.src(), args.staged() & 1), args.bytes());
  if (args.staged() & 1) EndStaged(args.src(), false);
  if (args.staged() & 2) EndStaged(args.dst(), true);
  return args.staged() & 2 ? CUDA_SUCCESS : copy_answer;  // who waits for a block learns of it there
}

Outcome FakeServer::wireCopyBox(const CallFrame&, const wire::wireCopyBoxArgs& a) {
  for (uint64_t z = 0; z < a.depth(); ++z)
    for (uint64_t y = 0; y < a.height(); ++y)
      std::memmove(At(a.dst() + z * a.dst_slice() + y * a.dst_pitch(), a.staged() & 2),
                   At(a.src() + z * a.src_slice() + y * a.src_pitch(), a.staged() & 1), a.width());
  if (a.staged() & 1) EndStaged(a.src(), false);
  if (a.staged() & 2) EndStaged(a.dst(), true);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireFill(const CallFrame&, const wire::wireFillArgs& args) {
  fills.push_back(args);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireFreeAsync(const CallFrame&, const wire::wireFreeAsyncArgs& args) {
  freed.push_back(args.address());
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireStreamCreate(const CallFrame&, const wire::wireStreamCreateArgs& args) {
  return streams.emplace(args.stream(), args.flags()).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Outcome FakeServer::cuStreamDestroy_v2(const CallFrame&, const wire::cuStreamDestroy_v2Args& args) {
  return streams.erase(args.h_stream()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Outcome FakeServer::wireHostFunc(const CallFrame&, const wire::wireHostFuncArgs& args) {
  SegmentHeader* h = segment_.header();
  const uint64_t tail = h->inbox_tail.load();
  h->inbox[tail % kInboxCount].store(args.cookie());
  h->inbox_tail.store(tail + 1);
  h->inbox_bell.fetch_add(1);
  FutexWake(&h->inbox_bell, 1);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireHostFuncDone(const CallFrame&, const wire::wireHostFuncDoneArgs& args) {
  host_functions_done.push_back(args.cookie());
  return CUDA_SUCCESS;
}

Outcome FakeServer::cuEventElapsedTime_v2(const CallFrame&, const wire::cuEventElapsedTime_v2Args&,
                                          wire::cuEventElapsedTime_v2Reply* reply) {
  reply->mutate_p_milliseconds(2.5f);
  return CUDA_SUCCESS;
}

Outcome FakeServer::wireLaunch(const CallFrame& frame, const wire::wireLaunchArgs& a,
                               std::span<const std::byte> bytes) {
  launches.push_back({a.function(),
                      a.stream(),
                      {a.grid_x(), a.grid_y(), a.grid_z()},
                      {a.block_x(), a.block_y(), a.block_z()},
                      a.shared_bytes(),
                      a.flags(),
                      frame.context,
                      {bytes.begin(), bytes.end()}});
  return CUDA_SUCCESS;
}

CUcontext Attach(FakeServer& server) {
  setenv("CUPLEX_SOCKET", server.path().c_str(), 1);
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return context;
}

}  // namespace cuplex::client
