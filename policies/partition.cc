#include "policies/partition.h"

#include <algorithm>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

/// The place of the shortest run of free groups that has room for `wanted`; `owner.size()` where none has.
size_t BestRun(const std::vector<uint32_t>& owner, size_t wanted) {
  size_t best = owner.size(), best_length = SIZE_MAX;
  for (size_t begin = 0; begin < owner.size();) {
    size_t end = begin;
    while (end < owner.size() && owner[end] == kNobody) ++end;
    const size_t length = end - begin;
    if (length >= wanted && length < best_length) {
      best = begin;
      best_length = length;
    }
    begin = end + 1;
  }
  return best;
}

/// Gives `wanted` free groups to a tenant that has none yet, or more to one that has some.
void Take(std::vector<uint32_t>& owner, uint32_t tenant, size_t wanted) {
  const size_t has = static_cast<size_t>(std::count(owner.begin(), owner.end(), tenant));
  size_t from = has ? owner.size() : BestRun(owner, wanted);
  if (from == owner.size()) from = 0;
  size_t left = wanted - has;
  for (size_t g = from; g < owner.size() && left; ++g) {
    if (owner[g] != kNobody) continue;
    owner[g] = tenant;
    --left;
  }
}

/// In how many groups the driver could split it.
uint32_t MostParts(const Multiprocessors& device) {
  const uint32_t alignment = std::max(device.alignment, 1u);
  const uint32_t least = (std::max(device.least, 1u) + alignment - 1) / alignment * alignment;
  return std::min(kMostParts, device.count / least);
}

}  // namespace

std::optional<Part> ParsePart(std::string_view text) {
  const size_t middle = text.find("of");
  if (middle == std::string_view::npos) return std::nullopt;
  const auto parts = ParseInteger(text.substr(0, middle)), of = ParseInteger(text.substr(middle + 2));
  if (!parts || !of || *parts < 1 || *parts > *of || *of > kMostParts) return std::nullopt;
  return Part{static_cast<uint32_t>(*parts), static_cast<uint32_t>(*of)};
}

std::string PrintPart(Part part) { return fmt::format("{}of{}", part.parts, part.of); }

const Partition::Place* Partition::Find(std::string_view tenant) const {
  const auto at =
      std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.tenant == tenant; });
  return at == places.end() ? nullptr : &*at;
}

Status CheckParts(std::span<const PartitionTenant> tenants) {
  if (tenants.empty()) return {};
  const PartitionTenant& first = tenants.front();
  uint32_t sum = 0;
  std::string wanted;
  for (const PartitionTenant& tenant : tenants) {
    if (tenant.part.of != first.part.of)
      return Fail(
          Blame::kCaller,
          "The tenants \"{}\" with {} and \"{}\" with {} divide one device in different ways; as many "
          "parts in all for both were expected.",
          first.name, PrintPart(first.part), tenant.name, PrintPart(tenant.part));
    sum += tenant.part.parts;
    wanted += fmt::format("{}{} {}", wanted.empty() ? "" : ", ", tenant.name, PrintPart(tenant.part));
  }
  if (sum <= first.part.of) return {};
  return Fail(Blame::kCaller,
              "The tenants together want {} parts of one device ({}); at most {} were expected.", sum, wanted,
              first.part.of);
}

Result<Partition> Divide(const Multiprocessors& device, std::span<const PartitionTenant> tenants,
                         const Partition* before) {
  TRY(CheckParts(tenants));
  Partition partition;
  if (tenants.empty()) return partition;
  partition.groups = tenants.front().part.of;
  if (tenants.size() == 1 && tenants[0].part.parts == partition.groups) {
    // Nothing is split off, so no granularity stands in the way.
    partition.group_multiprocessors = device.count / partition.groups;
  } else {
    const uint32_t alignment = std::max(device.alignment, 1u);
    partition.group_multiprocessors = device.count / partition.groups / alignment * alignment;
    if (partition.group_multiprocessors < std::max(device.least, 1u))
      return Fail(Blame::kCaller,
                  "The tenant \"{}\" wants {} of a device with {} multiprocessors, of which the driver takes "
                  "groups of {} and more, in steps of {}; at most {} parts were expected.",
                  tenants[0].name, PrintPart(tenants[0].part), device.count, device.least, alignment,
                  MostParts(device));
  }
  partition.left_over = device.count - partition.groups * partition.group_multiprocessors;

  std::vector<uint32_t> owner(partition.groups, kNobody);
  const bool same_split = before && before->groups == partition.groups &&
                          before->group_multiprocessors == partition.group_multiprocessors;
  for (uint32_t t = 0; same_split && t < tenants.size(); ++t) {
    const Partition::Place* had = before->Find(tenants[t].name);
    if (!had) continue;
    for (size_t i = 0; i < had->groups.size() && i < tenants[t].part.parts; ++i) owner[had->groups[i]] = t;
  }
  // Those that have something already first: what is free beside them goes to them.
  for (bool have : {true, false}) {
    for (uint32_t t = 0; t < tenants.size(); ++t) {
      const bool has = std::find(owner.begin(), owner.end(), t) != owner.end();
      if (has == have) Take(owner, t, tenants[t].part.parts);
    }
  }
  for (uint32_t t = 0; t < tenants.size(); ++t) {
    Partition::Place place{tenants[t].name, {}, 0, false};
    for (uint32_t g = 0; g < partition.groups; ++g)
      if (owner[g] == t) place.groups.push_back(g);
    place.whole = place.groups.size() == partition.groups;
    place.multiprocessors =
        place.whole ? device.count
                    : static_cast<uint32_t>(place.groups.size()) * partition.group_multiprocessors;
    partition.places.push_back(std::move(place));
  }
  return partition;
}

}  // namespace cuplex::policies
