#include "cuda/graph/capture.h"

#include <gtest/gtest.h>

#include <set>

namespace cuplex::graph {
namespace {

constexpr uint64_t kThread = 1, kOtherThread = 2, kContext = 7;
constexpr StreamId kOne = 11, kTwo = 12;
constexpr EventId kFork = 21, kJoin = 22;

class CaptureTest : public testing::Test {
 protected:
  std::set<StreamId> captured;
  Captures captures{[this](StreamId stream, bool is) {
    if (is) {
      captured.insert(stream);
    } else {
      captured.erase(stream);
    }
  }};

  Capture& Begin(StreamId stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    Capture* begun = nullptr;
    EXPECT_EQ(captures.Begin(stream, mode, kThread, kContext, nullptr, {}, &begun), CUDA_SUCCESS);
    return *begun;
  }
  CUresult End(StreamId stream, uint64_t thread = kThread) {
    graph = nullptr;
    return captures.End(stream, thread, &graph, &own);
  }
  CUresult Wait(StreamId stream, EventId event, bool legacy = false) {
    return captures.Wait(stream, event, legacy, &taken);
  }

  Graph* graph = nullptr;
  std::unique_ptr<Graph> own;
  bool taken = false;
};

TEST_F(CaptureTest, WorkOfAStreamIsAChain) {
  Capture& capture = Begin(kOne);
  GraphNode* a = captures.Append(capture, kOne, HostWork{});
  GraphNode* b = captures.Append(capture, kOne, HostWork{});
  EXPECT_EQ(b->dependencies, std::vector<GraphNode*>{a});
  EXPECT_EQ(captured, std::set<StreamId>{kOne});
  EXPECT_EQ(End(kOne), CUDA_SUCCESS);
  EXPECT_EQ(graph, own.get());
  EXPECT_EQ(graph->nodes.size(), 2u);
  EXPECT_TRUE(captured.empty());
  EXPECT_EQ(End(kOne), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(CaptureTest, ForkAndJoin) {
  Capture& capture = Begin(kOne);
  GraphNode* a = captures.Append(capture, kOne, HostWork{});
  captures.Record(capture, kOne, kFork);
  EXPECT_EQ(Wait(kTwo, kFork), CUDA_SUCCESS);
  EXPECT_TRUE(taken);
  EXPECT_EQ(captured, (std::set<StreamId>{kOne, kTwo}));
  GraphNode* b = captures.Append(capture, kOne, HostWork{});
  GraphNode* c = captures.Append(capture, kTwo, HostWork{});
  EXPECT_EQ(c->dependencies, std::vector<GraphNode*>{a});
  captures.Record(capture, kTwo, kJoin);
  EXPECT_EQ(Wait(kOne, kJoin), CUDA_SUCCESS);
  GraphNode* d = captures.Append(capture, kOne, HostWork{});
  EXPECT_EQ(d->dependencies, (std::vector<GraphNode*>{b, c}));
  EXPECT_EQ(End(kTwo), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(End(kOne), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << "that has spoiled it";
}

TEST_F(CaptureTest, WhatHasNotBeenJoinedIsMissed) {
  Capture& capture = Begin(kOne);
  captures.Record(capture, kOne, kFork);
  EXPECT_EQ(Wait(kTwo, kFork), CUDA_SUCCESS);
  captures.Append(capture, kTwo, HostWork{});
  EXPECT_EQ(End(kOne), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_TRUE(captured.empty());
}

TEST_F(CaptureTest, EventsFromOutsideAndFromOtherCaptures) {
  EXPECT_EQ(Wait(kTwo, kFork), CUDA_SUCCESS);
  EXPECT_FALSE(taken) << "nothing is captured";
  Begin(kOne);
  EXPECT_EQ(Wait(kOne, kFork), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(End(kOne), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  Capture& first = Begin(kOne);
  Begin(kTwo);
  captures.Record(first, kOne, kFork);
  EXPECT_EQ(Wait(kTwo, kFork), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(End(kOne), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(kTwo), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, TheThreadThatBeganItEndsIt) {
  Begin(kOne, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(End(kOne, kOtherThread), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(End(kOne), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  Begin(kOne, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(End(kOne, kOtherThread), CUDA_SUCCESS);
}

TEST_F(CaptureTest, WhichThreadsMayCallWhatIsUnsafe) {
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
  constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  // Capture's mode, caller is the thread that began it, caller's mode: refused?
  const struct {
    CUstreamCaptureMode mode;
    bool same;
    CUstreamCaptureMode caller;
    bool refused;
  } kRows[] = {
      {kGlobal, true, kGlobal, true},  {kGlobal, true, kLocal, true},    {kGlobal, true, kRelaxed, false},
      {kGlobal, false, kGlobal, true}, {kGlobal, false, kLocal, false},  {kLocal, true, kGlobal, true},
      {kLocal, false, kGlobal, false}, {kRelaxed, true, kGlobal, false}, {kRelaxed, false, kGlobal, false}};
  for (const auto& row : kRows) {
    Capture& capture = Begin(kOne, row.mode);
    const CUresult answer = captures.RefuseUnsafe(row.same ? kThread : kOtherThread, row.caller);
    EXPECT_EQ(answer != CUDA_SUCCESS, row.refused) << row.mode << row.same << row.caller;
    EXPECT_EQ(capture.invalid, row.refused);
    (void)End(kOne);
  }
}

TEST_F(CaptureTest, Refusals) {
  Capture& capture = Begin(kOne);
  EXPECT_EQ(captures.Refuse(kTwo), CUDA_SUCCESS);
  captures.Record(capture, kOne, kFork);
  EXPECT_EQ(captures.RefuseEvent(kJoin), CUDA_SUCCESS);
  EXPECT_FALSE(capture.invalid);
  EXPECT_EQ(captures.RefuseEvent(kFork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(captures.Append(capture, kOne, HostWork{}), nullptr);
  (void)End(kOne);
  Begin(kOne);
  EXPECT_EQ(captures.RefuseLegacy({kTwo}), CUDA_SUCCESS);
  EXPECT_EQ(captures.RefuseLegacy({kOne}), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(captures.RefuseContext(kContext + 1), CUDA_SUCCESS);
  EXPECT_EQ(captures.RefuseContext(kContext), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  captures.Leave(kOne);
  EXPECT_FALSE(captures.any());
  EXPECT_TRUE(captured.empty());
}

TEST_F(CaptureTest, AStreamThatGoesLeavesItsWork) {
  for (bool joined : {false, true}) {
    Capture& capture = Begin(kOne);
    GraphNode* a = captures.Append(capture, kOne, HostWork{});
    captures.Record(capture, kOne, kFork);
    EXPECT_EQ(Wait(kTwo, kFork), CUDA_SUCCESS);
    GraphNode* b = captures.Append(capture, kTwo, HostWork{});
    captures.Record(capture, kTwo, kJoin);
    if (joined) EXPECT_EQ(Wait(kOne, kJoin), CUDA_SUCCESS);
    captures.Leave(kTwo);
    EXPECT_EQ(captured, std::set<StreamId>{kOne});
    EXPECT_EQ(captures.Of(kTwo), nullptr);
    GraphNode* c = captures.Append(capture, kOne, HostWork{});
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->dependencies, joined ? (std::vector<GraphNode*>{a, b}) : std::vector<GraphNode*>{a});
    EXPECT_EQ(End(kOne), joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
}

TEST_F(CaptureTest, IntoAGraphThatIsThereAlready) {
  Graph given;
  GraphNode* a = given.Add(HostWork{}, {});
  Capture* begun = nullptr;
  ASSERT_EQ(captures.Begin(kOne, CU_STREAM_CAPTURE_MODE_GLOBAL, kThread, kContext, &given, {a}, &begun),
            CUDA_SUCCESS);
  EXPECT_TRUE(captures.Into(&given));
  GraphNode* b = captures.Append(*begun, kOne, HostWork{});
  EXPECT_EQ(b->dependencies, std::vector<GraphNode*>{a});
  EXPECT_EQ(captures.SetDependencies(kOne, {a}, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  GraphNode* c = captures.Append(*begun, kOne, HostWork{});
  EXPECT_EQ(c->dependencies, std::vector<GraphNode*>{a});
  EXPECT_EQ(captures.SetDependencies(kOne, {b}, CU_STREAM_ADD_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  EXPECT_EQ(End(kOne), CUDA_SUCCESS);
  EXPECT_EQ(graph, &given);
  EXPECT_EQ(own, nullptr);
}

}  // namespace
}  // namespace cuplex::graph
