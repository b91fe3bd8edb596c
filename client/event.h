// Events of this process. Any thread.
#pragma once

#include <cstdint>

#include "client/object_table.h"
#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;

struct Event {
  uint32_t context = 0;  // number
  unsigned flags = 0;
};

class EventTable {
 public:
  CUresult Create(Session& session, uint32_t context, unsigned flags, Handle* out);
  CUresult Destroy(Session& session, Handle event);
  Event* Find(Handle event) { return table_.Find(event); }
  /// Drops the events of an ended context.
  void Forget(uint32_t context);

 private:
  ObjectTable<Event> table_;
};

}  // namespace cuplex::client
