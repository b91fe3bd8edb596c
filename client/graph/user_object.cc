// User objects: what a program keeps alive by graphs.
#include "client/exports.h"
#include "client/graph/locked.h"

using namespace cuplex::client;
using cuplex::graph::UserObject;

extern "C" {

CUresult cuUserObjectCreate(CUuserObject* object, void* ptr, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!object || !destroy || references == 0 || references > 0x7fffffff ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  *object = UserObject::Make(destroy, ptr, references)->handle();
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  UserObject* found = UserObject::Find(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  found->Retain(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  UserObject* found = UserObject::Find(object);
  if (!found || count == 0 || count > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  return found->Release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* found = in.graphs->Find(graph);
  UserObject* held = UserObject::Find(object);
  if (!found || !held || count == 0 || count > 0x7fffffff || flags > CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) held->Retain(count);
  found->objects[held] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  UserObject* held = UserObject::Find(object);
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
