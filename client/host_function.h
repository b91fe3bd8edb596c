// Host functions: what a program asked to be called when a stream gets there.
//
// They run one after the other on a thread of the library that starts with the first one. A host function may
// not call CUDA (CUDA_ERROR_NOT_PERMITTED).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;

class HostFunctions {
 public:
  /// Calls `f` when `stream` has come this far, and holds the stream until it returns. Any thread.
  CUresult Launch(Session& session, uint32_t context, Handle stream, std::function<void()> f);
  /// A function for nodes of graphs: it is called as often as launches that were told of come to it, until it
  /// is dropped and the last of these has come. Returns its cookie.
  uint64_t Keep(Session& session, uint32_t context, std::function<void()> f);
  /// One more call of each will come.
  void Expect(const std::vector<uint64_t>& cookies);
  void Drop(const std::vector<uint64_t>& cookies);
  /// A context has ended: nothing of it is called any more.
  void Forget(uint32_t context);
  /// Ends the thread; what was not called is dropped.
  void Stop(Session& session);

 private:
  struct Pending {
    uint32_t context = 0;
    std::shared_ptr<std::function<void()>> call;
    bool kept = false;
    bool dropped = false;
    uint64_t expected = 0;
  };
  uint64_t AddLocked(Session& session, Pending pending);
  void Serve(Session& session);
  void Run(Session& session, uint64_t cookie);

  std::mutex mutex_;
  std::map<uint64_t, Pending> pending_;
  uint64_t next_cookie_ = 1;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace cuplex::client
