// TestHouse and TestClient: a server without threads or sockets in front of a test driver, and a client that
// speaks to a session frame by frame. For tests; one thread.
#pragma once

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/clock.h"
#include "cuda/faulty_driver.h"
#include "protocol/handle.h"
#include "protocol/ops.h"
#include "protocol/slot.h"
#include "protocol/staging.h"
#include "server/host_window.h"
#include "server/house.h"
#include "server/session.h"
#include "server/test_driver.h"

namespace cuplex::server {

inline constexpr uint64_t kMiB = 1 << 20;

/// The answer of a call that has none yet.
inline constexpr CUresult kNoAnswer = static_cast<CUresult>(1023);

class TestHouse {
 public:
  explicit TestHouse(CallHook* hook = nullptr, bool confines = true)
      : driver(confines),
        driver_table(hook ? MakeFaultyDriver(driver.table(), hook) : driver.table()),
        metrics("0", "test", {{"0", "GPU-0", "test device", TestDriver::kMemory}}),
        house(driver_table, clock, std::make_unique<JobsInline>([this] { house.current.Lost(); }),
              FindDevices(driver.table()).value(), metrics) {
    driver.clock = &clock;
  }

  Tenant& AddTenant(const std::string& name, uint64_t limit) {
    policies::Tenant terms;
    terms.name = name;
    terms.terms.memory_bytes = limit;
    Tenant& tenant = **house.TenantFor(terms);
    if (!tenant.holdings[0]->arena)
      tenant.holdings[0]->arena = Arena::Reserve(driver.table(), house.devices[0], limit).value();
    return tenant;
  }
  DeviceQueue& queue() { return *house.queues[0]; }

  /// Everything that can happen without anybody saying more.
  void Settle() {
    for (int idle = 0; idle < 3;) {
      bool busy = house.jobs->RunDone();
      for (auto& each : house.queues) {
        busy |= each->Poll();
        busy |= each->Pump();
      }
      busy |= house.budget_waits.Look(clock.NowNs());
      if (!busy)
        for (auto& each : house.queues) each->Quiet();
      idle = busy ? 0 : idle + 1;
    }
  }

  TestDriver driver;
  ManualClock clock;
  DriverTable driver_table;
  metrics::Metrics metrics;
  House house;
};

class TestClient {
 public:
  TestClient(TestHouse& test, Tenant& tenant) : test_(test) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    peer_.reset(ends[1]);
    SegmentGeometry sizes;
    sizes.ring_bytes = 256 << 10;
    sizes.block_count = 4;
    sizes.block_bytes = 64 << 10;
    static uint64_t windows = 0;
    session = std::make_unique<Session>(
        test.house, tenant, Session::Client{{1, 2, 3}, "test"}, Segment::Create(sizes.Laid()).value(),
        UniqueFd(ends[0]),
        AddressSpace(DefaultHostWindow().Part(windows++ % kMostSessions), uint64_t{1} << 30),
        [this](Session&) { ended = true; });
  }

  /// With CUPLEX_RECORD_FRAMES set to a folder, what was sent becomes a seed of decode_fuzz there.
  ~TestClient() {
    const char* folder = std::getenv("CUPLEX_RECORD_FRAMES");
    if (!folder || recorded_.empty()) return;
    const ImageKey name = HashImage(std::as_bytes(std::span(recorded_)));
    std::ofstream(fmt::format("{}/{:016x}", folder, name.low), std::ios::binary) << recorded_;
  }

  template <typename Args>
  static std::vector<std::byte> Frame(Op op, uint32_t slot, uint32_t context, const Args& args,
                                      std::span<const std::byte> span = {}) {
    FrameHeader header;
    header.bytes = static_cast<uint32_t>((sizeof(header) + sizeof(args) + span.size() + 7) / 8 * 8);
    header.op = static_cast<uint16_t>(op);
    header.slot = slot;
    header.context = context;
    std::vector<std::byte> frame(header.bytes);
    std::memcpy(frame.data(), &header, sizeof(header));
    std::memcpy(frame.data() + sizeof(header), &args, sizeof(args));
    if (!span.empty()) std::memcpy(frame.data() + sizeof(header) + sizeof(args), span.data(), span.size());
    return frame;
  }

  template <typename Args>
  void OneWay(Op op, const Args& args, std::span<const std::byte> span = {}) {
    Give(Frame(op, kNoSlot, context, args, span));
  }
  /// Asks; the slot that will take the answer.
  template <typename Args>
  uint32_t Ask(Op op, const Args& args, std::span<const std::byte> span = {}) {
    next_slot_ = (next_slot_ + 1) % session->segment().geometry().slot_count;
    SlotAt(session->segment(), next_slot_)->state = SlotHeader::kWaiting;
    Give(Frame(op, next_slot_, context, args, span));
    return next_slot_;
  }
  CUresult Answer(uint32_t slot) {
    SlotHeader* header = SlotAt(session->segment(), slot);
    return header->state == SlotHeader::kDone ? static_cast<CUresult>(header->result) : kNoAnswer;
  }
  template <typename Reply>
  Reply Payload(uint32_t slot) {
    Reply reply;
    std::memcpy(&reply, SlotPayload(SlotAt(session->segment(), slot)), sizeof(reply));
    return reply;
  }
  /// Asks and lets the server do all it can.
  template <typename Args>
  CUresult Call(Op op, const Args& args, std::span<const std::byte> span = {}) {
    last_slot = Ask(op, args, span);
    test_.Settle();
    return Answer(last_slot);
  }

  CUresult Begin(uint32_t number) {
    context = number;
    return Call(Op::wireContextCreate, wire::wireContextCreateArgs(number, 0, 0));
  }
  CUresult Alloc(uint64_t bytes, uint64_t* address) {
    const CUresult code = Call(Op::cuMemAlloc_v2, wire::cuMemAlloc_v2Args(bytes));
    *address = Payload<wire::cuMemAlloc_v2Reply>(last_slot).dptr();
    return code;
  }
  void Free(uint64_t address) { OneWay(Op::cuMemFree_v2, wire::cuMemFree_v2Args(address)); }
  CUresult Info(uint64_t* free, uint64_t* total) {
    const CUresult code = Call(Op::cuMemGetInfo_v2, wire::cuMemGetInfo_v2Args());
    const auto reply = Payload<wire::cuMemGetInfo_v2Reply>(last_slot);
    *free = reply.free();
    *total = reply.total();
    return code;
  }
  /// Sends an image, loads it as `module`, and finds its function as `function`.
  CUresult Load(const std::string& image, Handle module, Handle function);
  void Launch(Handle function, Handle stream, uint32_t grid = 1) {
    const std::byte parameters[12] = {};
    OneWay(Op::wireLaunch, wire::wireLaunchArgs(function, stream, grid, 1, 1, 1, 1, 1, 0, 0, 12), parameters);
  }
  CUresult Synchronize() { return Call(Op::cuCtxSynchronize, wire::cuCtxSynchronizeArgs()); }
  CUresult Deferred() {
    return static_cast<CUresult>(session->segment().header()->deferred_error.exchange(0));
  }
  CUresult Sticky() { return static_cast<CUresult>(session->segment().header()->sticky_error.load()); }
  /// The client is gone; true where the session has given everything back.
  bool HangUp() {
    session->End();
    test_.Settle();
    return ended;
  }

  std::unique_ptr<Session> session;
  uint32_t context = 0;
  uint32_t last_slot = 0;
  bool ended = false;
  bool refused = false;  // a frame was nonsense

 private:
  void Give(const std::vector<std::byte>& frame) {
    if (frame.size() < 1024) {
      const uint16_t length = static_cast<uint16_t>(frame.size() | 0xc000);
      recorded_.append(reinterpret_cast<const char*>(&length), sizeof(length));
      recorded_.append(reinterpret_cast<const char*>(frame.data()), frame.size());
    }
    refused |= !session->Handle(frame).ok();
  }

  TestHouse& test_;
  UniqueFd peer_;
  uint32_t next_slot_ = 0;
  std::string recorded_;
};

inline CUresult TestClient::Load(const std::string& image, Handle module, Handle function) {
  const ImageKey key = HashImage(std::as_bytes(std::span(image)));
  if (CUresult code = Call(Op::wireImageOffer, wire::wireImageOfferArgs(key.low, key.high, image.size())))
    return code;
  if (!Payload<wire::wireImageOfferReply>(last_slot).known()) {
    OneWay(Op::wireImageWrite,
           wire::wireImageWriteArgs(key.low, key.high, 0, static_cast<uint32_t>(image.size())),
           std::as_bytes(std::span(image)));
    test_.Settle();
  }
  if (CUresult code = Call(Op::wireModuleLoad, wire::wireModuleLoadArgs(module, key.low, key.high, 200)))
    return code;
  return Call(Op::wireModuleFunction, wire::wireModuleFunctionArgs(module, function, 6, 1000),
              std::as_bytes(std::span("kernel", 6)));
}

}  // namespace cuplex::server
