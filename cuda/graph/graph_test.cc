#include "cuda/graph/graph.h"

#include <gtest/gtest.h>

namespace cuplex::graph {
namespace {

using Pairs = std::vector<std::pair<GraphNode*, GraphNode*>>;

TEST(Graph, NodesAreOrderedByWhatTheyComeAfter) {
  Graph g;
  GraphNode* last = g.Add(EmptyWork{}, {});
  GraphNode* middle = g.Add(EmptyWork{}, {});
  GraphNode* first = g.Add(EmptyWork{}, {});
  EXPECT_EQ(g.Connect(middle, last), CUDA_SUCCESS);
  EXPECT_EQ(g.Connect(first, middle), CUDA_SUCCESS);
  EXPECT_EQ(g.InOrder(), (std::vector<GraphNode*>{first, middle, last}));
  EXPECT_EQ(g.Roots(), std::vector<GraphNode*>{first});
  EXPECT_EQ(g.Edges().size(), 2u);
}

TEST(Graph, RefusesCirclesDoubleEdgesAndStrangers) {
  Graph g, other;
  GraphNode* a = g.Add(EmptyWork{}, {});
  GraphNode* b = g.Add(EmptyWork{}, {a});
  GraphNode* c = g.Add(EmptyWork{}, {b});
  GraphNode* stranger = other.Add(EmptyWork{}, {});
  EXPECT_EQ(g.Connect(c, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(g.Connect(a, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(g.Connect(a, b), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(g.Connect(a, stranger), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(g.Disconnect(a, c), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(g.Edges().size(), 2u) << "nothing of that has changed it";
  EXPECT_EQ(g.Disconnect(a, b), CUDA_SUCCESS);
  EXPECT_EQ(g.Connect(c, a), CUDA_SUCCESS) << "no circle any more";
}

TEST(Graph, ARemovedNodeTakesItsEdgesAlong) {
  Graph g;
  GraphNode* a = g.Add(EmptyWork{}, {});
  GraphNode* b = g.Add(EmptyWork{}, {a});
  GraphNode* c = g.Add(EmptyWork{}, {b});
  g.Remove(b);
  EXPECT_TRUE(a->dependents.empty());
  EXPECT_TRUE(c->dependencies.empty());
  EXPECT_EQ(g.nodes.size(), 2u);
}

TEST(Graph, ACloneIsDeepAndFindsItsNodes) {
  Graph g;
  auto child = std::make_shared<Graph>();
  GraphNode* inner = child->Add(HostWork{}, {});
  GraphNode* a = g.Add(EmptyWork{}, {});
  GraphNode* b = g.Add(ChildWork{child}, {a});
  auto clone = g.Clone();
  ASSERT_EQ(clone->nodes.size(), 2u);
  GraphNode* copy = clone->CopyOf(*b);
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy, b);
  EXPECT_EQ(copy->dependencies, std::vector<GraphNode*>{clone->CopyOf(*a)});
  GraphNode* inner_copy = clone->CopyOf(*inner);
  ASSERT_NE(inner_copy, nullptr);
  EXPECT_NE(inner_copy->graph, child.get());
  EXPECT_EQ(inner_copy->graph->owner, copy);
  EXPECT_EQ(g.CopyOf(*a), nullptr);
}

TEST(Graph, AClonesUserObjectsAreItsOwn) {
  static int ended = 0;
  UserObject* object = UserObject::Make([](void*) { ++ended; }, nullptr, 1);
  const CUuserObject handle = object->handle();
  EXPECT_EQ(UserObject::Find(handle), object);
  auto g = std::make_unique<Graph>();
  g->objects[object] = 1;
  auto clone = g->Clone();
  g.reset();
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(object->Release(2)) << "there is one only";
  clone.reset();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(UserObject::Find(handle), nullptr);
}

TEST(Graph, MemoryGoesWithWhoHasItLast) {
  int released = 0;
  auto memory = std::make_shared<Memory>();
  memory->release = [&] { ++released; };
  auto g = std::make_unique<Graph>();
  g->Add(AllocWork{{}, {}, std::move(memory)}, {});
  EXPECT_TRUE(g->HasMemory());
  auto clone = g->Clone();
  g.reset();
  EXPECT_EQ(released, 0);
  clone.reset();
  EXPECT_EQ(released, 1);
}

TEST(Graph, ComparesShapes) {
  auto build = [](Graph& g, bool joined) {
    GraphNode* a = g.Add(FillWork{}, {});
    g.Add(HostWork{}, joined ? std::vector<GraphNode*>{a} : std::vector<GraphNode*>{});
  };
  Graph one, same, apart, longer, other;
  build(one, true);
  build(same, true);
  build(apart, false);
  build(longer, true);
  longer.Add(EmptyWork{}, {});
  other.Add(HostWork{}, {});
  Pairs pairs;
  EXPECT_FALSE(Compare(one, same, &pairs));
  EXPECT_EQ(pairs.size(), 2u);
  EXPECT_EQ(Compare(one, apart, &pairs)->result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(Compare(apart, one, &pairs)->from, one.nodes[0].get());
  EXPECT_EQ(Compare(one, longer, &pairs)->node, longer.nodes[2].get());
  EXPECT_EQ(Compare(longer, one, &pairs)->result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(Compare(one, other, &pairs)->result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
}

TEST(Graph, PrintsEveryNodeAndEdge) {
  Graph g;
  GraphNode* a = g.Add(HostWork{}, {});
  g.Add(EmptyWork{}, {a});
  const std::string dot = g.Dot(false);
  EXPECT_NE(dot.find("HOST"), std::string::npos);
  EXPECT_NE(dot.find("\"graph_0\" -> \"graph_1\""), std::string::npos);
}

}  // namespace
}  // namespace cuplex::graph
