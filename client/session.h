// Session: this process's connection to a server, and everything it owns there. Any thread.
//
// A background thread reads the session's socket: it hands over the descriptors of pinned memory and learns
// that the server hung up. It blocks all signals, so the program's handlers never run on it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "client/allocation.h"
#include "client/array.h"
#include "client/context.h"
#include "client/event.h"
#include "client/function.h"
#include "client/graph/graphs.h"
#include "client/graph/shadow.h"
#include "client/host_function.h"
#include "client/library.h"
#include "client/link.h"
#include "client/memory_pool.h"
#include "client/module.h"
#include "client/object_table.h"
#include "client/snapshot.h"
#include "client/staging_area.h"
#include "client/stream.h"
#include "client/submission.h"
#include "client/texture_reference.h"
#include "protocol/segment.h"

namespace cuplex::client {

class Session {
 public:
  /// Connects and shakes hands. Errors carry as driver_code what cuInit answers.
  static Result<std::unique_ptr<Session>> Attach(const std::string& socket_path);
  /// Hangs up. No other thread is in a call.
  ~Session();

  const Snapshot& snapshot() const { return snapshot_; }
  const DeviceSnapshot& device(int ordinal) const { return snapshot_.devices[ordinal]; }
  bool HasDevice(int ordinal) const {
    return ordinal >= 0 && ordinal < static_cast<int>(snapshot_.devices.size());
  }

  Submission& submission() { return submission_; }
  StagingArea& staging() { return staging_; }
  const Segment& segment() const { return segment_; }

  /// The server hung up.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  const std::atomic<bool>& gone_flag() const { return gone_; }
  /// Says so on standard error, once; returns the code that calls answer.
  CUresult SayGone();

  /// Waits for the descriptor of the pinned memory at `address`.
  Result<UniqueFd> TakeHostMemory(uint64_t address);

  /// Forgets what the ended context owned.
  void ForgetContext(uint32_t number);

  /// In a child after fork: gives up the parent's descriptors and touches nothing else.
  void LeaveToParent();

  ContextTable contexts;
  StreamTable streams;
  EventTable events;
  ModuleTable modules;
  FunctionTable functions;
  LibraryTable libraries;
  LinkTable links;
  AllocationTable allocations;
  ArrayTable arrays;
  TextureTable textures;
  ReferenceTable references;
  MemoryPools pools;
  Shadows shadows;
  Graphs graphs;
  HostFunctions host_functions;

 private:
  Session(UniqueFd socket, UniqueFd doorbell, Segment segment, Snapshot snapshot);
  Status ReserveAddresses();
  void Watch();

  UniqueFd socket_;
  UniqueFd doorbell_;
  Segment segment_;
  Snapshot snapshot_;
  std::atomic<bool> gone_{false};
  std::atomic<bool> said_gone_{false};
  Submission submission_;
  StagingArea staging_;

  std::mutex arrivals_mutex_;
  std::condition_variable arrived_;
  std::map<uint64_t, UniqueFd> arrivals_;  // pinned memory that nobody took yet, by address

  std::thread watcher_;
};

}  // namespace cuplex::client
