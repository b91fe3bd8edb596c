#include "client/graph/user_object.h"

#include <memory>
#include <mutex>
#include <unordered_set>

#include "client/exports.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

struct Objects {
  std::mutex mutex;
  std::unordered_set<const void*> alive;
};

// Never destroyed, since graphs may go while the process exits.
Objects& AllObjects() {
  static Objects* objects = new Objects;
  return *objects;
}

}  // namespace

graph::UserObject* FindUserObject(CUuserObject object) {
  Objects& all = AllObjects();
  std::lock_guard lock(all.mutex);
  return all.alive.contains(object) ? reinterpret_cast<graph::UserObject*>(object) : nullptr;
}

namespace {

/// What stands behind an object: it is forgotten before the program ends what it is for.
struct Kept {
  CUhostFn destroy;
  void* data;
  graph::UserObject* object;
};

void End(void* data) {
  std::unique_ptr<Kept> kept(static_cast<Kept*>(data));
  {
    Objects& all = AllObjects();
    std::lock_guard lock(all.mutex);
    all.alive.erase(kept->object);
  }
  kept->destroy(kept->data);
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuUserObjectCreate(CUuserObject* object, void* ptr, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!object || !destroy || references == 0 || references > 0x7fffffff ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  auto* made = new cuplex::graph::UserObject;
  made->destroy = End;
  made->data = new Kept{destroy, ptr, made};
  made->references.store(references);
  Objects& all = AllObjects();
  std::lock_guard lock(all.mutex);
  all.alive.insert(made);
  *object = reinterpret_cast<CUuserObject>(made);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  cuplex::graph::UserObject* found = FindUserObject(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  found->Retain(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  cuplex::graph::UserObject* found = FindUserObject(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  return found->Release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* found = in.graphs->Find(graph);
  cuplex::graph::UserObject* held = FindUserObject(object);
  if (!found || !held || count == 0 || count > 0x7fffffff || flags > CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) held->Retain(count);
  found->objects[held] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  cuplex::graph::UserObject* held = FindUserObject(object);
  {
    Locked in;
    if (CUresult r = in.Enter()) return r;
    Graph* found = in.graphs->Find(graph);
    auto at = found && held ? found->objects.find(held) : decltype(found->objects.end()){};
    if (!found || !held || at == found->objects.end() || at->second < count || count == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if ((at->second -= count) == 0) found->objects.erase(at);
  }
  (void)held->Release(count);
  return CUDA_SUCCESS;
}

}  // extern "C"
