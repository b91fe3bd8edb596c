// Linking for a session: what reaches the driver, what comes back, and the bounds.
#include "server/link.h"

#include "protocol/link_request.h"
#include "server/test_house.h"

namespace cuplex::server {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr Handle kLink = MakeHandle(60, 0);

std::string Request(std::initializer_list<std::pair<const char*, std::string>> inputs,
                    std::vector<LinkOption> options = {}) {
  std::string request;
  EncodeLinkOptions(options, &request);
  for (const auto& [name, text] : inputs)
    EncodeLinkInput(CU_JIT_INPUT_PTX, name, std::as_bytes(std::span(text)), {}, &request);
  return request;
}

class LinkTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(client_.Begin(1), CUDA_SUCCESS); }
  void TearDown() override {
    EXPECT_FALSE(client_.refused);
    EXPECT_TRUE(client_.HangUp());
    EXPECT_TRUE(client_.session->Empty());
    EXPECT_EQ(tenant_.link_bytes, 0u);
    EXPECT_TRUE(test_.driver.links.empty()) << "a link is left with the driver";
  }
  ImageKey Send(const std::string& bytes) {
    const ImageKey key = HashImage(std::as_bytes(std::span(bytes)));
    EXPECT_EQ(client_.Call(Op::wireImageOffer, wire::wireImageOfferArgs(key.low, key.high, bytes.size())),
              CUDA_SUCCESS);
    if (!client_.Payload<wire::wireImageOfferReply>(client_.last_slot).known())
      client_.OneWay(Op::wireImageWrite,
                     wire::wireImageWriteArgs(key.low, key.high, 0, static_cast<uint32_t>(bytes.size())),
                     std::as_bytes(std::span(bytes)));
    return key;
  }
  CUresult Link(const std::string& request, Handle link = kLink, uint32_t room = 1000) {
    const ImageKey key = Send(request);
    return client_.Call(Op::wireLink, wire::wireLinkArgs(link, key.low, key.high, room));
  }
  wire::wireLinkReply Reply() { return client_.Payload<wire::wireLinkReply>(client_.last_slot); }
  std::string Text() {
    return {
        reinterpret_cast<const char*>(SlotPayload(SlotAt(client_.session->segment(), client_.last_slot))) +
            sizeof(wire::wireLinkReply),
        Reply().text_bytes()};
  }
  CUresult Read(uint64_t offset, uint32_t bytes, std::string* data, Handle link = kLink) {
    const CUresult code = client_.Call(Op::wireLinkRead, wire::wireLinkReadArgs(link, offset, bytes));
    const auto reply = client_.Payload<wire::wireLinkReadReply>(client_.last_slot);
    const std::byte* at = SlotPayload(SlotAt(client_.session->segment(), client_.last_slot));
    data->assign(reinterpret_cast<const char*>(at) + sizeof(reply), reply.data_bytes());
    return code;
  }

  TestHouse test_;
  Tenant& tenant_ = test_.AddTenant("a", 64 * kMiB);
  TestClient client_{test_, tenant_};
};

TEST_F(LinkTest, TheDriverLinksAndTheBytesComeBack) {
  const std::string request =
      Request({{"a", "one"}, {"", "two"}},
              {{CU_JIT_MAX_REGISTERS, 40}, {CU_JIT_WALL_TIME, 0}, {CU_JIT_THREADS_PER_BLOCK, 64}});
  ASSERT_EQ(Link(request), CUDA_SUCCESS);
  const std::string expected = "1 a:one1 -:two";
  EXPECT_EQ(Reply().image_bytes(), expected.size());
  EXPECT_EQ(Reply().wall_time(), 0x40200000u);
  EXPECT_EQ(Reply().threads(), 96u);
  EXPECT_EQ(Text(), "linked");
  EXPECT_EQ(Reply().info_bytes(), 6u);
  EXPECT_THAT(test_.driver.linked_with, Contains(Pair(int{CU_JIT_MAX_REGISTERS}, 40u)));
  EXPECT_THAT(test_.driver.linked_with, Contains(Pair(int{CU_JIT_THREADS_PER_BLOCK}, 64u)));
  EXPECT_EQ(tenant_.link_bytes, expected.size());
  std::string data;
  EXPECT_EQ(Read(0, 5, &data), CUDA_SUCCESS);
  EXPECT_EQ(data, expected.substr(0, 5));
  EXPECT_EQ(Read(5, 100, &data), CUDA_SUCCESS);
  EXPECT_EQ(data, expected.substr(5));
  EXPECT_EQ(Read(expected.size(), 100, &data), CUDA_SUCCESS);
  EXPECT_EQ(data, "");
  EXPECT_EQ(Read(expected.size() + 1, 100, &data), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Read(~uint64_t{0}, ~0u, &data), CUDA_ERROR_INVALID_VALUE);
  client_.OneWay(Op::wireLinkDestroy, wire::wireLinkDestroyArgs(kLink));
  EXPECT_EQ(tenant_.link_bytes, 0u);
  EXPECT_EQ(Read(0, 5, &data), CUDA_ERROR_INVALID_HANDLE);
  client_.OneWay(Op::wireLinkDestroy, wire::wireLinkDestroyArgs(kLink));
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LinkTest, WhatTheLinkerRefusesIsToldWithItsWords) {
  EXPECT_EQ(Link(Request({{"a", "one"}, {"b", "nonsense"}})), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(Text(), "nonsense is no instruction");
  EXPECT_EQ(Reply().info_bytes(), 0u);
  EXPECT_EQ(Link(Request({{"b", "nonsense"}}), kLink, 8), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(Text(), "nonsense") << "as much as there is room for";
  std::string data;
  EXPECT_EQ(Read(0, 5, &data), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LinkTest, WhatIsNoRequestReachesNoLinker) {
  for (const std::string& bytes : {std::string("junk that says nothing of links"), Request({}),
                                   Request({{"a", "x"}}).substr(0, 20), std::string(4096, '\xff')}) {
    EXPECT_EQ(Link(bytes), CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Text(), HasSubstr("link"));
  }
  EXPECT_TRUE(test_.driver.linked_with.empty());
  EXPECT_EQ(client_.Call(Op::wireLink, wire::wireLinkArgs(kLink, 1, 2, 1000)), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_THAT(Text(), HasSubstr("does not hold"));
  client_.context = 9;
  EXPECT_EQ(Link(Request({{"a", "one"}})), CUDA_ERROR_INVALID_CONTEXT);
  client_.context = 1;
}

TEST_F(LinkTest, NumbersThatAreTakenOrNone) {
  ASSERT_EQ(Link(Request({{"a", "one"}})), CUDA_SUCCESS);
  for (Handle wrong : {kLink, Handle{0}, ~Handle{0}}) {
    EXPECT_EQ(Link(Request({{"a", "two"}}), wrong), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_THAT(Text(), HasSubstr("handle"));
  }
  std::string data;
  EXPECT_EQ(Read(0, 100, &data), CUDA_SUCCESS);
  EXPECT_EQ(data, "1 a:one");
}

TEST_F(LinkTest, AClientHoldsNoMoreThanSoMany) {
  for (uint32_t i = 0; i < kMostLinks; ++i)
    ASSERT_EQ(Link(Request({{"a", "one"}}), MakeHandle(100 + i, 0)), CUDA_SUCCESS);
  EXPECT_EQ(Link(Request({{"a", "one"}})), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(Text(), HasSubstr("64 links"));
  client_.OneWay(Op::wireLinkDestroy, wire::wireLinkDestroyArgs(MakeHandle(100, 0)));
  EXPECT_EQ(Link(Request({{"a", "one"}})), CUDA_SUCCESS);
}

TEST_F(LinkTest, ATenantHoldsNoMoreThanSoMuch) {
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  const uint64_t most = tenant_.images.most_bytes();
  const std::string request = Request({{"a", "one"}});
  tenant_.link_bytes = most - request.size() + 1;  // as if another of its programs had them
  EXPECT_EQ(Link(request), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(Text(), HasSubstr("are to be linked"));
  tenant_.link_bytes = most - request.size();
  EXPECT_EQ(Link(request), CUDA_SUCCESS);
  tenant_.link_bytes -= most - request.size();
  EXPECT_TRUE(other.HangUp());
}

TEST_F(LinkTest, ItsClientMayDieMeanwhile) {
  const ImageKey key = Send(Request({{"a", "one"}}));
  const uint32_t slot = client_.Ask(Op::wireLink, wire::wireLinkArgs(kLink, key.low, key.high, 100));
  EXPECT_GT(tenant_.link_bytes, 0u);
  client_.session->End();
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), kNoAnswer);
  EXPECT_TRUE(client_.ended);
}

TEST_F(LinkTest, ItsContextIsDestroyedAfterIt) {
  const ImageKey key = Send(Request({{"a", "one"}}));
  const uint32_t link = client_.Ask(Op::wireLink, wire::wireLinkArgs(kLink, key.low, key.high, 100));
  const uint32_t end = client_.Ask(Op::wireContextDestroy, wire::wireContextDestroyArgs(1));
  test_.Settle();
  EXPECT_EQ(client_.Answer(link), CUDA_SUCCESS);
  EXPECT_EQ(client_.Answer(end), CUDA_SUCCESS);
}

TEST_F(LinkTest, AnotherClientsLinksAreNobodysHere) {
  ASSERT_EQ(Link(Request({{"a", "one"}})), CUDA_SUCCESS);
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  EXPECT_EQ(other.Call(Op::wireLinkRead, wire::wireLinkReadArgs(kLink, 0, 10)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(other.HangUp());
  EXPECT_GT(tenant_.link_bytes, 0u);
}

}  // namespace
}  // namespace cuplex::server
