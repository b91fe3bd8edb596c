// User objects of this process: which there are. Any thread.
#pragma once

#include "cuda/graph/graph.h"

namespace cuplex::client {

/// nullptr for nothing of ours.
graph::UserObject* FindUserObject(CUuserObject object);

}  // namespace cuplex::client
