// Links of this process: inputs are kept here until cuLinkComplete, when all of them go to the server's
// driver and the image comes back. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "client/jit_options.h"
#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;

/// Fields are guarded by the lock.
struct PendingLink {
  std::mutex mutex;
  uint32_t context = 0;  // number of that for whose device it links
  JitOptions options;
  std::string request;  // see protocol/link_request.h; until it is complete
  size_t inputs = 0;
  std::string image;  // from then on
};

class LinkTable {
 public:
  /// CUDA_ERROR_OUT_OF_MEMORY where there are too many.
  CUresult Create(uint32_t context, JitOptions options, Handle* out);
  /// nullptr where there is none.
  std::shared_ptr<PendingLink> Find(Handle link);
  /// The image goes with it. CUDA_ERROR_INVALID_HANDLE.
  CUresult Destroy(Handle link);

 private:
  std::mutex mutex_;
  HandleSource source_;
  std::map<Handle, std::shared_ptr<PendingLink>> links_;
};

}  // namespace cuplex::client
