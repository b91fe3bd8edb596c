// GreenContext: a device's primary context with some of its multiprocessors: streams that are made in it run
// there. Any thread. All else, memory, modules, faults, is the primary context's, as CUDA says.
#pragma once

#include <cstdint>

#include "softcuda/context.h"
#include "softcuda/handles.h"
#include "softcuda/partition.h"

namespace cuplex::softcuda {

/// Multiprocessors of a device, as programs hold and describe them; equal ones are one object, which stays.
struct Resources {
  Resources(Device& device, const Partition::Set& set) : device(device), set(set) {}
  Device& device;
  const Partition::Set set;
};

class GreenContext {
 public:
  GreenContext(Ref<Context> primary, Ref<Resources> resources, Partition& partition, uint64_t id)
      : resources(std::move(resources)), partition(partition), id(id), primary_(std::move(primary)) {}

  const Ref<Resources> resources;
  Partition& partition;
  const uint64_t id;
  /// What NULL means where it is current.
  Ref<Stream> null_stream;
  Context& context() const { return *primary_; }
  const Ref<Context>& primary() const { return primary_; }

 private:
  const Ref<Context> primary_;
};

}  // namespace cuplex::softcuda
