// A client that lies about what is to be linked.
#include <cstring>
#include <random>

#include "protocol/link_request.h"
#include "tests/fault/hostile.h"

namespace cuplex::fault {
namespace {

using namespace std::chrono_literals;

constexpr char kPtx[] = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n";
constexpr Handle kLink = MakeHandle(60, 0);

std::string Request(std::string_view text, size_t inputs = 1) {
  std::string request;
  EncodeLinkOptions({}, &request);
  for (size_t i = 0; i < inputs; ++i)
    EncodeLinkInput(CU_JIT_INPUT_PTX, "k.ptx", std::as_bytes(std::span(text)), {}, &request);
  return request;
}

class HostileLink : public Hostile {
 protected:
  static CUresult Link(RawSession& client, const std::string& request, Handle link = kLink) {
    const auto [low, high] = client.Send(kContext, request);
    return client.Call(Op::wireLink, kContext, wire::wireLinkArgs(link, low, high, 1000));
  }
  static CUresult Read(RawSession& client, uint64_t offset, uint32_t bytes, Handle link = kLink) {
    return client.Call(Op::wireLinkRead, kContext, wire::wireLinkReadArgs(link, offset, bytes));
  }
};

TEST_F(HostileLink, RequestsThatAreNone) {
  RawSession client = Client();
  const std::string good = Request({kPtx, sizeof(kPtx)});
  for (size_t length = 1; length < good.size(); length += 3)
    EXPECT_NE(Link(client, good.substr(0, length)), CUDA_SUCCESS) << length;
  for (size_t at = 0; at + 4 <= 24; at += 4)
    for (uint32_t value : {7u, 0x7fffffffu, 0xffffffffu}) {
      std::string bad = good;
      memcpy(bad.data() + at, &value, 4);
      EXPECT_NE(Link(client, bad), CUDA_SUCCESS) << at << " " << value;
    }
  EXPECT_NE(Link(client, kPtx), CUDA_SUCCESS) << "a module is no link";
  EXPECT_NE(Link(client, Request("nothing that anybody can link")), CUDA_SUCCESS);
  EXPECT_NE(Link(client, Request({kPtx, sizeof(kPtx)}, 2)), CUDA_SUCCESS) << "k is there twice";
  EXPECT_NE(Link(client, Request(std::string(100'000, '{'))), CUDA_SUCCESS);
  EXPECT_NE(client.Call(Op::wireLink, kContext, wire::wireLinkArgs(kLink, 1, 2, 1000)), CUDA_SUCCESS);
  EXPECT_EQ(client.Synchronize(kContext), CUDA_SUCCESS);
  EXPECT_EQ(Link(client, good), CUDA_SUCCESS) << "and a good one links";
}

TEST_F(HostileLink, NumbersOffsetsAndSizesThatCannotBe) {
  RawSession client = Client();
  const std::string good = Request({kPtx, sizeof(kPtx)});
  for (Handle link : {Handle{0}, Handle{15}, MakeHandle(kMaxHandleId, 0), kAll})
    EXPECT_NE(Link(client, good, link), CUDA_SUCCESS) << link;
  ASSERT_EQ(Link(client, good), CUDA_SUCCESS);
  EXPECT_NE(Link(client, good), CUDA_SUCCESS) << "the number is taken";
  EXPECT_EQ(Read(client, 0, 0xffffffff), CUDA_SUCCESS) << "as much as there is room for";
  for (uint64_t offset : {uint64_t{1} << 20, uint64_t{1} << 63, kAll})
    EXPECT_NE(Read(client, offset, 100), CUDA_SUCCESS) << offset;
  for (Handle link : {Handle{0}, MakeHandle(60, 1), MakeHandle(61, 0), kAll})
    EXPECT_NE(Read(client, 0, 100, link), CUDA_SUCCESS) << link;
  RawSession other = Client();
  EXPECT_NE(Read(other, 0, 100), CUDA_SUCCESS) << "of another process";
  client.OneWay(Op::wireLinkDestroy, kContext, wire::wireLinkDestroyArgs(kAll));
  EXPECT_EQ(client.Synchronize(kContext), CUDA_SUCCESS);
  EXPECT_NE(client.TakeDeferred(), CUDA_SUCCESS);
}

TEST_F(HostileLink, MoreThanIsKept) {
  RawSession client = Client();
  const std::string good = Request({kPtx, sizeof(kPtx)});
  uint32_t linked = 0;
  while (linked < 1000 && Link(client, good, MakeHandle(100 + linked, 0)) == CUDA_SUCCESS) ++linked;
  EXPECT_GE(linked, 8u);
  EXPECT_LT(linked, 1000u) << "who never fetches is refused at some time";
  client.OneWay(Op::wireLinkDestroy, kContext, wire::wireLinkDestroyArgs(MakeHandle(100, 0)));
  EXPECT_EQ(Link(client, good), CUDA_SUCCESS);
}

TEST_F(HostileLink, GoneInTheMiddle) {
  std::string large = kPtx;
  for (int i = 0; i < 3000; ++i) large += ".visible .entry k" + std::to_string(i) + "()\n{\n  ret;\n}\n";
  for (int round = 0; round < 10; ++round) {
    RawSession client = Client();
    const auto [low, high] = client.Send(kContext, Request(large));
    for (uint32_t i = 0; i < 4; ++i)
      client.Submit(RawSession::Frame(Op::wireLink, i, kContext,
                                      wire::wireLinkArgs(MakeHandle(100 + i, 0), low, high, 100)));
    if (round % 2)
      client.Submit(
          RawSession::Frame(Op::wireContextDestroy, 8, kContext, wire::wireContextDestroyArgs(kContext)));
  }
}

}  // namespace
}  // namespace cuplex::fault
