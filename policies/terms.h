// Terms: what a tenant is to have of a device's time. Values; any thread.
#pragma once

namespace cuplex::policies {

struct Terms {
  double guarantee = 0;  // 0..1 of the time; those of a device sum to at most 1
  double limit = 1;      // above 0, at most 1; 1: none
  double weight = 100;   // above 0
  int priority = 0;      // a higher class goes first
  bool operator==(const Terms&) const = default;
};

}  // namespace cuplex::policies
