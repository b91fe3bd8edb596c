// Partition: which multiprocessors of a device each tenant has, where a device is divided in space. Pure; any
// thread.
//
// A device is split into `of` equal groups of multiprocessors, each as large as the driver's granularity
// allows, and a tenant whose profile is "2of7" has two of seven. Multiprocessors that make no whole group are
// nobody's, unless one tenant has all groups: then it has the whole device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cuplex::policies {

/// A profile: so many of so many equal parts of a device. 1 <= parts <= of <= 64; none: both 0.
struct Part {
  uint32_t parts = 0;
  uint32_t of = 0;
  explicit operator bool() const { return parts != 0; }
  bool operator==(const Part&) const = default;
};

inline constexpr uint32_t kMostParts = 64;
inline constexpr std::string_view kPartForm = "a part of the device such as 2of7 (of at most 64)";
/// "2of7". nullopt for anything else, also "3of2" and "0of7".
std::optional<Part> ParsePart(std::string_view text);
std::string PrintPart(Part part);

/// What a driver says of the multiprocessors of a device and of groups of them.
struct Multiprocessors {
  uint32_t count = 0;      // of the device
  uint32_t least = 1;      // the fewest that a group may have
  uint32_t alignment = 1;  // a group has a multiple of it
};

struct PartitionTenant {
  std::string name;  // unique
  Part part;
};

/// A division of one device.
struct Partition {
  uint32_t groups = 0;                 // equal ones, which the driver is to split off; 0: nobody has a part
  uint32_t group_multiprocessors = 0;  // in each
  uint32_t left_over = 0;              // multiprocessors of the device in none of them

  struct Place {
    std::string tenant;
    std::vector<uint32_t> groups;  // its own, ascending, each 0 <= group < Partition::groups
    uint32_t multiprocessors = 0;
    bool whole = false;  // the device as it is, `left_over` included: no need to split
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> places;  // in the order of the tenants

  const Place* Find(std::string_view tenant) const;
  bool operator==(const Partition&) const = default;
};

/// Divides a device among tenants that have a part each, neighbouring groups where there are.
///
/// `before` is the division in force: a tenant that it names keeps its groups as far as its profile goes,
/// whatever the others do, provided that the device is split the same way as before. Groups of tenants that
/// are no longer given are free. The same arguments give the same division.
///
/// Error (Blame::kCaller), naming the tenants: they count in different parts, want more parts than there are,
/// or one part would be smaller than the driver lets a group be.
Result<Partition> Divide(const Multiprocessors& device, std::span<const PartitionTenant> tenants,
                         const Partition* before = nullptr);

/// The rules of Divide that need no device: the tenants count in the same parts, and these suffice.
Status CheckParts(std::span<const PartitionTenant> tenants);

}  // namespace cuplex::policies
