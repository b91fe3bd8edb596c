// What the conformance kernels and their callers agree on.
#pragma once

namespace cuplex::conformance {

/// Has holes before `real`, `whole` and at the end: 1 7 8 6 2 4 4 bytes.
struct Mixed {
  char letter;
  double real;
  short shorts[3];
  int whole;
};
static_assert(sizeof(Mixed) == 32);

struct Link {
  const Link* next;
  unsigned long long value;
};

}  // namespace cuplex::conformance
