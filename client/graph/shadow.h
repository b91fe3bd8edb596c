// Shadow: pinned memory that stands between a graph's copy and pageable memory of the program. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;
struct Caller;

/// Memory that nobody uses any more is kept for the next one who wants as much, until its context ends: it
/// may be given back on a thread that must not wait for the server.
class Shadows {
 public:
  struct Shadow {
    Shadows* of;
    uint32_t context;
    uint64_t address;
    uint64_t bytes;
    ~Shadow() { of->Give(context, bytes, address); }
  };
  CUresult Take(const Caller& caller, uint64_t bytes, std::shared_ptr<Shadow>* out);
  void ForgetContext(uint32_t context);

 private:
  void Give(uint32_t context, uint64_t bytes, uint64_t address);

  std::mutex mutex_;
  std::map<uint32_t, std::multimap<uint64_t, uint64_t>> free_;  // by context: bytes, address
};

}  // namespace cuplex::client
