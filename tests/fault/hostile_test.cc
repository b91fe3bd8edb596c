// A client that lies. Run by tests/e2e/through_server.py, in front of a real server: each case says what no
// honest client would, and afterwards the server is alive, a neighbour's memory is untouched, and a new
// client is served.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/session_generated.h"
#include "protocol/session_socket.h"
#include "protocol/staging.h"
#include "tests/fault/hostile.h"

namespace cuplex::fault {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// ---------------------------------------------------------------------------------------------------- the
// handshake

/// What the server says to these bytes before it hangs up: a refusal's sentence, "" where it hangs up without
/// a word.
std::string SaidTo(std::span<const std::byte> bytes, std::span<const int> fds = {}) {
  auto socket = ConnectSession(SocketOf("tenant"));
  if (!socket.ok()) return "no connection: " + socket.error().sentence;
  (void)SendPacket(socket->get(), bytes, fds);
  std::string said;
  while (true) {
    auto packet = ReceivePacket(socket->get(), 10'000);
    if (!packet.ok())
      return packet.error().blame == Blame::kGone ? said : "no end: " + packet.error().sentence;
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(packet->bytes.data()),
                                   packet->bytes.size());
    if (!wire::VerifySessionMessageBuffer(verifier)) return "no message of a session";
    const auto* refusal = wire::GetSessionMessage(packet->bytes.data())->body_as_Refusal();
    if (!refusal) return "no refusal";
    said = refusal->sentence()->str();
  }
}

TEST_F(Hostile, JunkInsteadOfAHello) {
  std::mt19937 random(1);
  for (size_t length : {1, 4, 7, 8, 12, 40, 1000, 65536}) {
    std::vector<std::byte> junk(length);
    for (auto& b : junk) b = static_cast<std::byte>(random());
    EXPECT_THAT(SaidTo(junk), HasSubstr("Hello")) << length;
    std::fill(junk.begin(), junk.end(), std::byte{0});
    EXPECT_THAT(SaidTo(junk), HasSubstr("Hello")) << length;
  }
}

TEST_F(Hostile, HalfAHelloAndMangledOnes) {
  const auto whole = HelloBytes(1, 1);
  for (size_t length = 4; length < whole.size(); length += 4)
    EXPECT_THAT(SaidTo(std::span(whole).first(length)),
                Not(testing::AnyOf(HasSubstr("no refusal"), HasSubstr("no end"))));
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    auto mangled = whole;
    for (int n = 0; n < 3; ++n) mangled[random() % mangled.size()] = static_cast<std::byte>(random());
    auto socket = ConnectSession(Path());
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(SendPacket(socket->get(), mangled, {}).ok());
    EXPECT_TRUE(
        ReceivePacket(socket->get(), 10'000).ok());  // a Welcome where it still is a Hello, else a Refusal
  }
}

TEST_F(Hostile, VersionsThatNobodySpeaks) {
  EXPECT_THAT(SaidTo(HelloBytes(200, 255)),
              testing::AllOf(HasSubstr("200"), HasSubstr("255"), HasSubstr("version")));
  EXPECT_THAT(SaidTo(HelloBytes(0, 0)), HasSubstr("version"));
  EXPECT_THAT(SaidTo(HelloBytes(255, 0)), HasSubstr("version"));
  EXPECT_TRUE(RawSession::Attach(Path()).ok());
}

TEST_F(Hostile, DescriptorsNobodyAskedFor) {
  const int null = 2;
  const std::vector<int> four(4, null);
  for (int i = 0; i < 50; ++i) (void)SaidTo(std::as_bytes(std::span("junk")), four);
  // More than a packet may carry, by hand.
  for (int i = 0; i < 50; ++i) {
    auto socket = ConnectSession(Path());
    ASSERT_TRUE(socket.ok());
    std::vector<int> many(60, null);
    const auto hello = HelloBytes(200, 200);
    iovec part{const_cast<std::byte*>(hello.data()), hello.size()};
    std::vector<char> control(CMSG_SPACE(many.size() * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(many.size() * sizeof(int));
    memcpy(CMSG_DATA(header), many.data(), many.size() * sizeof(int));
    ASSERT_GT(sendmsg(socket->get(), &message, MSG_NOSIGNAL), 0);
    while (ReceivePacket(socket->get(), 10'000).ok()) {
    }
  }
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (Descriptors() > descriptors_ && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_LE(Descriptors(), descriptors_);
}

TEST_F(Hostile, SilenceIsHungUpOn) {
  auto socket = ConnectSession(Path());
  ASSERT_TRUE(socket.ok());
  const auto packet = ReceivePacket(socket->get(), 15'000);  // a farewell, or the end
  const bool told = packet.ok() && !ReceivePacket(socket->get(), 1000).ok();
  EXPECT_TRUE(told || (!packet.ok() && packet.error().blame == Blame::kGone));
}

TEST_F(Hostile, TalkAfterTheHello) {
  RawSession client = Client();
  for (int i = 0; i < 20; ++i) (void)SendPacket(client.socket(), HelloBytes(1, 1), {});
  const std::vector<std::byte> junk(60'000, std::byte{7});
  for (int i = 0; i < 20; ++i) (void)SendPacket(client.socket(), junk, {});
  // It may hang up or not listen; that it goes on serving others is what TearDown asks.
}

// ---------------------------------------------------------------------------------------------------------
// the ring

TEST_F(Hostile, LengthsThatCannotBe) {
  const auto good = RawSession::Frame(Op::cuCtxSynchronize, 0, kContext, wire::cuCtxSynchronizeArgs());
  for (uint32_t length :
       {0u, 1u, 8u, 15u, 17u, 20u, kMaxFrameBytes + 8, 0x7ffffff8u, 0xfffffff8u, 0xffffffffu}) {
    SCOPED_TRACE(length);
    RawSession client = Client();
    auto frame = good;
    memcpy(frame.data(), &length, 4);
    client.Submit(frame);
    EXPECT_TRUE(client.EndsWithin(5s));
  }
}

TEST_F(Hostile, TailsThatCannotBe) {
  for (uint64_t tail :
       {uint64_t{1} << 20 | 8, kAll, uint64_t{1} << 63, uint64_t{1}, uint64_t{7}, uint64_t{0} - 4096}) {
    SCOPED_TRACE(tail);
    RawSession client = Attached(Path());
    client.SetTail(tail);
    EXPECT_TRUE(client.EndsWithin(5s));
  }
}

TEST_F(Hostile, HeadersThatCannotBe) {
  using Change = std::function<void(FrameHeader&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"version 0", [](FrameHeader& h) { h.version = 0; }},
      {"version 255", [](FrameHeader& h) { h.version = 255; }},
      {"flags", [](FrameHeader& h) { h.flags = 1; }},
      {"call 0", [](FrameHeader& h) { h.op = 0; }},
      {"call 0xffff", [](FrameHeader& h) { h.op = 0xffff; }},
      {"a slot too high", [](FrameHeader& h) { h.slot = 64; }},
      {"a slot far too high", [](FrameHeader& h) { h.slot = 0x7fffffff; }},
      {"no slot where one is due", [](FrameHeader& h) { h.slot = kNoSlot; }},
      {"a slot for a one-way call",
       [](FrameHeader& h) { h.op = static_cast<uint16_t>(Op::wireStreamCreate); }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    RawSession client = Client();
    auto frame = RawSession::Frame(Op::cuCtxSynchronize, 0, kContext, std::vector<std::byte>(64), {});
    FrameHeader header;
    memcpy(&header, frame.data(), sizeof(header));
    change(header);
    memcpy(frame.data(), &header, sizeof(header));
    client.Submit(frame);
    EXPECT_TRUE(client.EndsWithin(5s));
  }
}

TEST_F(Hostile, ArgumentsThatEndTooSoon) {
  for (const Op op : {Op::wireCopy, Op::wireLaunch, Op::wireImageWrite}) {
    RawSession client = Client();
    client.Submit(RawSession::Frame(op, kNoSlot, kContext, std::vector<std::byte>(8), {}));
    EXPECT_TRUE(client.EndsWithin(5s)) << static_cast<int>(op);
  }
  // Spans that say they are longer than the frame.
  for (uint32_t said : {9u, 1000u, 0x7fffffffu, 0xffffffffu}) {
    RawSession client = Client();
    client.OneWay(Op::wireImageWrite, kContext, wire::wireImageWriteArgs(1, 2, 0, said),
                  std::vector<std::byte>(8));
    EXPECT_TRUE(client.EndsWithin(5s)) << said;
  }
}

TEST_F(Hostile, BytesThatChangeWhileTheyAreRead) {
  std::atomic<bool> stop = false;
  for (int round = 0; round < 20; ++round) {
    RawSession client = Client();
    const Segment& s = client.segment();
    std::thread flipping([&] {
      std::mt19937 random(3);
      while (!stop) {
        std::byte* at = s.ring() + random() % 4096;
        *reinterpret_cast<volatile std::byte*>(at) = static_cast<std::byte>(random());
        SlotAt(s, random() % 4)->state.store(random() % 5);
      }
    });
    for (int i = 0; i < 300 && !client.ended(); ++i)
      client.OneWay(Op::wireFill, kContext, wire::wireFillArgs(mine_, 0, 64, 1, kLegacyStream, 1, 1));
    stop = true;
    flipping.join();
    stop = false;
  }
}

// ---------------------------------------------------------------------------- well-formed, of what one does
// not own

TEST_F(Hostile, CopiesAndFillsOutsideOnesOwnMemory) {
  RawSession client = Client();
  static uint64_t of_this_process = 17;
  const uint64_t here = reinterpret_cast<uint64_t>(&of_this_process);
  const uint64_t staging = client.segment().staging_bytes();
  struct Bad {
    uint64_t dst, src, bytes;
    uint32_t staged;
  };
  const std::vector<Bad> copies = {
      {theirs_, mine_, 4096, 0},
      {mine_, theirs_, 4096, 0},
      {theirs_, 0, 4096, 1},
      {0, theirs_, 4096, 2},
      {mine_ + kMiB - 8, mine_, 4096, 0},
      {mine_ - 8, mine_, 16, 0},
      {mine_, mine_, kAll, 0},
      {mine_, kAll - 8, 4096, 0},
      {kAll - 8, mine_, 4096, 0},
      {mine_, 0, 4096, 0},
      {here, mine_, 8, 0},
      {mine_, here, 8, 0},
      {mine_, staging, 8, 1},
      {mine_, staging - 8, 16, 1},
      {mine_, kAll - 7, 16, 1},
      {mine_, 0, kMiB, 1},  // longer than a block
      {staging, mine_, 8, 2},
      {kAll - 7, mine_, 16, 2},
      {client.segment().geometry().block_bytes - 8, mine_, 16, 2},  // across two blocks
      {mine_, mine_, 8, 0xfffffffc},
      {client.arena() + client.arena_bytes() - 8, mine_, 16, 0},
  };
  for (const Bad& bad : copies) {
    SCOPED_TRACE(testing::Message() << std::hex << bad.dst << " " << bad.src << " " << bad.bytes << " "
                                    << bad.staged);
    StagingBlock* block = BlockAt(client.segment(), 0);
    block->state.store(StagingBlock::kInFlight);
    client.OneWay(Op::wireCopy, kContext,
                  wire::wireCopyArgs(bad.dst, bad.src, bad.bytes, kLegacyStream, bad.staged));
    if (client.EndsWithin(0ms) || client.Synchronize(kContext) == CUDA_ERROR_DEVICE_UNAVAILABLE) {
      client = Client();
      continue;
    }
    // A block that was to be filled says itself that it was not.
    const bool told_by_block =
        (bad.staged & 2) && block->state.load() == StagingBlock::kDone && block->result != 0;
    EXPECT_TRUE(client.TakeDeferred() != CUDA_SUCCESS || told_by_block);
  }
  EXPECT_EQ(of_this_process, 17u);
  struct BadFill {
    uint64_t dst, pitch, width, height;
    uint32_t element;
  };
  const std::vector<BadFill> fills = {
      {theirs_, 0, 64, 1, 1},         {mine_, 1, 64, 2, 4},
      {mine_, kAll / 2, 64, 3, 1},    {mine_, uint64_t{1} << 33, 8, uint64_t{1} << 31, 1},
      {mine_, 64, kAll, kAll, 4},     {mine_, 0, kAll / 2 + 1, 1, 2},
      {mine_, 0, 64, 1, 3},           {mine_, 0, 64, 1, 0},
      {mine_ + kMiB - 4, 0, 8, 1, 1}, {mine_ + kMiB - 64, 128, 64, 2, 1},
      {mine_ + 1, 0, 8, 1, 4},        {0, 0, 64, 1, 1},
  };
  for (const BadFill& bad : fills) {
    SCOPED_TRACE(testing::Message() << std::hex << bad.dst << " " << bad.pitch << " " << bad.width << " "
                                    << bad.height);
    client.OneWay(
        Op::wireFill, kContext,
        wire::wireFillArgs(bad.dst, bad.pitch, bad.width, bad.height, kLegacyStream, 1, bad.element));
    if (client.Synchronize(kContext) == CUDA_ERROR_DEVICE_UNAVAILABLE) {
      client = Client();
      continue;
    }
    EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS);
  }
  const std::vector<wire::wireCopyBoxArgs> boxes = {
      {mine_, kAll, kAll, mine_, kAll, kAll, 8, kAll, kAll, kLegacyStream, 0},
      {mine_, 64, 4096, theirs_, 64, 4096, 64, 4, 4, kLegacyStream, 0},
      {theirs_, 64, 4096, mine_, 64, 4096, 64, 4, 4, kLegacyStream, 0},
      {mine_, uint64_t{1} << 32, 0, mine_, 64, 0, 64, uint64_t{1} << 32, 1, kLegacyStream, 0},
      {mine_, 64, 0, mine_ + 65536, 64, 0, 128, 4, 1, kLegacyStream, 0},
      {mine_, 64, uint64_t{1} << 63, mine_, 64, uint64_t{1} << 63, 64, 2, 3, kLegacyStream, 0},
      {mine_, 64, 4096, 0, 1 << 20, 1 << 20, 64, 4, 4, kLegacyStream, 1},
  };
  for (const auto& box : boxes) {
    SCOPED_TRACE(&box - boxes.data());
    client.OneWay(Op::wireCopyBox, kContext, box);
    if (client.Synchronize(kContext) == CUDA_ERROR_DEVICE_UNAVAILABLE) {
      client = Client();
      continue;
    }
    EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS);
  }
}

TEST_F(Hostile, NumbersOfOthersNameNothing) {
  RawSession client = Client();
  const Handle stream = MakeHandle(20, 3), event = MakeHandle(21, 3);
  neighbour_.OneWay(Op::wireStreamCreate, kContext, wire::wireStreamCreateArgs(stream, 0, 0));
  neighbour_.OneWay(Op::wireEventCreate, kContext, wire::wireEventCreateArgs(event, 0));
  ASSERT_EQ(neighbour_.Call(Op::cuStreamQuery, kContext, wire::cuStreamQueryArgs(stream)), CUDA_SUCCESS);
  EXPECT_EQ(client.Call(Op::cuStreamQuery, kContext, wire::cuStreamQueryArgs(stream)),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(client.Call(Op::cuStreamSynchronize, kContext, wire::cuStreamSynchronizeArgs(stream)),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(client.Call(Op::cuEventQuery, kContext, wire::cuEventQueryArgs(event)),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(client.Call(Op::cuEventSynchronize, kContext, wire::cuEventSynchronizeArgs(event)),
            CUDA_ERROR_INVALID_HANDLE);
  client.OneWay(Op::cuStreamDestroy_v2, kContext, wire::cuStreamDestroy_v2Args(stream));
  client.OneWay(Op::cuEventRecord, kContext, wire::cuEventRecordArgs(event, kLegacyStream));
  client.OneWay(Op::cuMemFree_v2, kContext, wire::cuMemFree_v2Args(theirs_));
  client.OneWay(Op::wireFreeAsync, kContext, wire::wireFreeAsyncArgs(theirs_, kLegacyStream));
  client.OneWay(Op::wireHostFuncDone, kContext, wire::wireHostFuncDoneArgs(1));
  EXPECT_NE(client.Call(Op::wireHostFree, kContext, wire::wireHostFreeArgs(theirs_)), CUDA_SUCCESS);
  EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS);
  EXPECT_EQ(neighbour_.Call(Op::cuStreamQuery, kContext, wire::cuStreamQueryArgs(stream)), CUDA_SUCCESS);
  EXPECT_EQ(neighbour_.Call(Op::cuEventQuery, kContext, wire::cuEventQueryArgs(event)), CUDA_SUCCESS);
  // Contexts that are not there, and one on a device that is not.
  uint64_t at = 0;
  EXPECT_NE(client.Alloc(77, 4096, &at), CUDA_SUCCESS);
  EXPECT_NE(client.Alloc(0, 4096, &at), CUDA_SUCCESS);
  EXPECT_NE(client.Synchronize(0xffffffff), CUDA_SUCCESS);
  EXPECT_NE(client.Begin(kContext), CUDA_SUCCESS) << "twice";
  EXPECT_NE(client.Begin(0), CUDA_SUCCESS) << "0 is none";
  EXPECT_NE(client.Call(Op::wireContextCreate, 0, wire::wireContextCreateArgs(5, 99, 0)), CUDA_SUCCESS);
  EXPECT_NE(client.Call(Op::wireContextCreate, 0, wire::wireContextCreateArgs(6, -1, 0)), CUDA_SUCCESS);
}

TEST_F(Hostile, HandlesThatCannotBe) {
  RawSession client = Client();
  for (const Handle handle :
       {Handle{0}, Handle{1}, Handle{2}, MakeHandle(kMaxHandleId, 0), MakeHandle(0xffffffff, 7), kAll}) {
    client.OneWay(Op::wireStreamCreate, kContext, wire::wireStreamCreateArgs(handle, 0, 0));
    if (client.Synchronize(kContext) != CUDA_ERROR_DEVICE_UNAVAILABLE)
      EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS) << handle;
    else
      client = Client();
  }
  const Handle stream = MakeHandle(30, 0);
  client.OneWay(Op::wireStreamCreate, kContext, wire::wireStreamCreateArgs(stream, 0, 0));
  client.OneWay(Op::wireStreamCreate, kContext, wire::wireStreamCreateArgs(stream, 0, 0));
  EXPECT_EQ(client.Synchronize(kContext), CUDA_SUCCESS);
  EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS) << "twice";
}

TEST_F(Hostile, SizesThatCannotBe) {
  RawSession client = Client();
  uint64_t at = 0;
  for (uint64_t bytes : {kAll, uint64_t{1} << 63, kAll - 4095, uint64_t{1} << 47}) {
    EXPECT_EQ(client.Alloc(kContext, bytes, &at), CUDA_ERROR_OUT_OF_MEMORY) << bytes;
    EXPECT_NE(client.Call(Op::wireHostAlloc, kContext, wire::wireHostAllocArgs(bytes, 0)), CUDA_SUCCESS)
        << bytes;
    wire::wireImageOfferReply known;
    (void)client.Call(Op::wireImageOffer, kContext, wire::wireImageOfferArgs(1, 2, bytes), &known);
    EXPECT_NE(
        client.Call(Op::wireModuleLoad, kContext, wire::wireModuleLoadArgs(MakeHandle(40, 0), 1, 2, 100)),
        CUDA_SUCCESS);
  }
  EXPECT_EQ(client.Alloc(kContext, 4096, &at), CUDA_SUCCESS);
}

TEST_F(Hostile, ImagesThatWereNotOffered) {
  RawSession client = Client();
  const std::vector<std::byte> piece(1000, std::byte{'x'});
  client.OneWay(Op::wireImageWrite, kContext, wire::wireImageWriteArgs(5, 6, 0, 1000), piece);
  client.OneWay(Op::wireImageWrite, kContext, wire::wireImageWriteArgs(5, 6, kAll - 10, 1000), piece);
  if (client.ended()) client = Client();
  wire::wireImageOfferReply known;
  EXPECT_EQ(client.Call(Op::wireImageOffer, kContext, wire::wireImageOfferArgs(7, 8, 500), &known),
            CUDA_SUCCESS);
  client.OneWay(Op::wireImageWrite, kContext, wire::wireImageWriteArgs(7, 8, 0, 1000), piece);
  if (client.Synchronize(kContext) == CUDA_ERROR_DEVICE_UNAVAILABLE) client = Client();
  EXPECT_NE(client.Call(Op::wireModuleLoad, kContext, wire::wireModuleLoadArgs(MakeHandle(40, 0), 7, 8, 100)),
            CUDA_SUCCESS);
  // Bytes that are not what their hash says must not load for whoever offers the true ones.
  const std::string lie =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry lie()\n{\n\tret;\n}\n";
  EXPECT_EQ(
      client.Call(Op::wireImageOffer, kContext, wire::wireImageOfferArgs(9, 10, lie.size() + 1), &known),
      CUDA_SUCCESS);
  client.OneWay(Op::wireImageWrite, kContext,
                wire::wireImageWriteArgs(9, 10, 0, static_cast<uint32_t>(lie.size() + 1)),
                std::as_bytes(std::span(lie.c_str(), lie.size() + 1)));
  EXPECT_NE(
      client.Call(Op::wireModuleLoad, kContext, wire::wireModuleLoadArgs(MakeHandle(41, 0), 9, 10, 100)),
      CUDA_SUCCESS);
}

TEST_F(Hostile, LaunchesOfNothing) {
  RawSession client = Client();
  const std::vector<std::byte> parameters(64);
  for (const Handle function : {Handle{0}, MakeHandle(50, 0), kAll}) {
    wire::wireLaunchArgs args;
    args.mutate_function(function);
    args.mutate_grid_x(0xffffffff);
    args.mutate_grid_y(0xffffffff);
    args.mutate_grid_z(0xffffffff);
    args.mutate_block_x(0xffffffff);
    args.mutate_stream(kLegacyStream);
    args.mutate_parameter_bytes(64);
    client.OneWay(Op::wireLaunch, kContext, args, parameters);
    if (client.Synchronize(kContext) == CUDA_ERROR_DEVICE_UNAVAILABLE)
      client = Client();
    else
      EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS);
  }
}

TEST_F(Hostile, OneSlotForManyCalls) {
  RawSession client = Client();
  for (int i = 0; i < 2000 && !client.ended(); ++i)
    client.Submit(RawSession::Frame(Op::cuCtxSynchronize, 0, kContext, wire::cuCtxSynchronizeArgs()));
  for (int i = 0; i < 200 && !client.ended(); ++i)
    client.Submit(RawSession::Frame(Op::cuMemAlloc_v2, 1, kContext, wire::cuMemAlloc_v2Args(4096)));
}

TEST_F(Hostile, MoreOfEverythingThanThereIs) {
  RawSession client = Client();
  for (uint32_t i = 0; i < 20'000 && !client.ended(); ++i) {
    client.OneWay(Op::wireStreamCreate, kContext, wire::wireStreamCreateArgs(MakeHandle(100 + i, 0), 0, 0));
    client.OneWay(Op::wireEventCreate, kContext, wire::wireEventCreateArgs(MakeHandle(100 + i, 0), 0));
  }
  for (uint32_t i = 2; i < 200 && !client.ended(); ++i) (void)client.Begin(i);
  (void)client.Synchronize(kContext);
}

TEST_F(Hostile, HostFunctionsThatNeverReturn) {
  RawSession client = Client();
  for (uint64_t cookie = 0; cookie < 2000 && !client.ended(); ++cookie)
    client.OneWay(Op::wireHostFunc, kContext, wire::wireHostFuncArgs(kLegacyStream, cookie));
  // And goes, with its streams held for ever.
}

/// Frames of real calls with numbers drawn from what tends to break things.
TEST_F(Hostile, CallsAtRandom) {
  std::mt19937_64 random(4);
  const auto until = std::chrono::steady_clock::now() + 6s;
  const std::vector<Op> ops = {Op::wireContextCreate,
                               Op::wireContextDestroy,
                               Op::cuCtxSetLimit,
                               Op::cuCtxGetLimit,
                               Op::wireImageOffer,
                               Op::wireImageWrite,
                               Op::wireModuleLoad,
                               Op::wireModuleUnload,
                               Op::wireModuleFunction,
                               Op::wireModuleGlobal,
                               Op::wireModuleFunctionName,
                               Op::wireLink,
                               Op::wireLinkRead,
                               Op::wireLinkDestroy,
                               Op::wireGraphNodes,
                               Op::wireGraphReady,
                               Op::wireGraphLaunch,
                               Op::wireGraphDestroy,
                               Op::cuFuncSetAttribute,
                               Op::cuMemAlloc_v2,
                               Op::cuMemFree_v2,
                               Op::cuMemGetInfo_v2,
                               Op::wireHostAlloc,
                               Op::wireHostFree,
                               Op::wireCopy,
                               Op::wireCopyBox,
                               Op::wireFill,
                               Op::wireFreeAsync,
                               Op::wireStreamCreate,
                               Op::cuStreamDestroy_v2,
                               Op::cuStreamQuery,
                               Op::cuStreamWaitEvent,
                               Op::wireHostFunc,
                               Op::wireHostFuncDone,
                               Op::wireEventCreate,
                               Op::cuEventDestroy_v2,
                               Op::cuEventRecord,
                               Op::cuEventQuery,
                               Op::cuEventElapsedTime_v2,
                               Op::wireLaunch,
                               Op::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags};
  uint64_t frames = 0, sessions = 0;
  while (std::chrono::steady_clock::now() < until) {
    RawSession client = Client();
    ++sessions;
    const std::vector<uint64_t> numbers = {0,
                                           1,
                                           2,
                                           8,
                                           16,
                                           20,
                                           64,
                                           4096,
                                           65536,
                                           kMiB,
                                           mine_,
                                           mine_ + kMiB - 1,
                                           theirs_,
                                           kAll,
                                           kAll - 7,
                                           uint64_t{1} << 32,
                                           uint64_t{1} << 63,
                                           MakeHandle(16, 0),
                                           MakeHandle(17, 0),
                                           MakeHandle(17, 1),
                                           kLegacyStream,
                                           client.arena()};
    for (int i = 0; i < 3000 && !client.ended(); ++i) {
      const Op op = ops[random() % ops.size()];
      const OpRow* row = FindOp(static_cast<uint16_t>(op));
      ASSERT_NE(row, nullptr);
      std::vector<std::byte> args(row->args_bytes);
      for (size_t at = 0; at < args.size(); at += 4) {
        const uint64_t number = numbers[random() % numbers.size()];
        const size_t n = std::min<size_t>(args.size() - at, random() % 2 ? 8 : 4);
        memcpy(args.data() + at, &number, n);
      }
      const std::vector<std::byte> span(random() % 200);
      const uint32_t context = random() % 8 ? kContext : static_cast<uint32_t>(random() % 5);
      client.Submit(RawSession::Frame(op, row->oneway ? kNoSlot : static_cast<uint32_t>(random() % 8),
                                      context, args, span));
      ++frames;
    }
  }
  EXPECT_GT(frames, 100u);
  EXPECT_GT(sessions, 2u);
}

}  // namespace
}  // namespace cuplex::fault
