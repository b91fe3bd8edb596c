#include "client/graph/user_object.h"

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

UserObject* FindUserObject(CUuserObject object) {
  Objects& all = AllObjects();
  std::lock_guard lock(all.mutex);
  return all.alive.contains(object) ? reinterpret_cast<UserObject*>(object) : nullptr;
}

CUresult CreateUserObject(CUhostFn destroy, void* data, unsigned references, CUuserObject* out) {
  auto* object = new UserObject;
  object->destroy = destroy;
  object->data = data;
  object->references.store(references);
  Objects& all = AllObjects();
  std::lock_guard lock(all.mutex);
  all.alive.insert(object);
  *out = reinterpret_cast<CUuserObject>(object);
  return CUDA_SUCCESS;
}

void RetainUserObject(UserObject* object, unsigned count) { object->references.fetch_add(count); }

bool ReleaseUserObject(UserObject* object, unsigned count) {
  long now = object->references.load();
  do {
    if (now < static_cast<long>(count)) return false;
  } while (!object->references.compare_exchange_weak(now, now - static_cast<long>(count)));
  if (now != static_cast<long>(count)) return true;
  {
    Objects& all = AllObjects();
    std::lock_guard lock(all.mutex);
    all.alive.erase(object);
  }
  object->destroy(object->data);
  delete object;
  return true;
}

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
  return CreateUserObject(destroy, ptr, references, object);
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  UserObject* found = FindUserObject(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  RetainUserObject(found, count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  UserObject* found = FindUserObject(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  return ReleaseUserObject(found, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* found = in.graphs->Find(graph);
  UserObject* held = FindUserObject(object);
  if (!found || !held || count == 0 || count > 0x7fffffff || flags > CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) RetainUserObject(held, count);
  found->objects[held] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  UserObject* held = FindUserObject(object);
  {
    Locked in;
    if (CUresult r = in.Enter()) return r;
    Graph* found = in.graphs->Find(graph);
    auto at = found && held ? found->objects.find(held) : decltype(found->objects.end()){};
    if (!found || !held || at == found->objects.end() || at->second < count || count == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if ((at->second -= count) == 0) found->objects.erase(at);
  }
  ReleaseUserObject(held, count);
  return CUDA_SUCCESS;
}

}  // extern "C"
