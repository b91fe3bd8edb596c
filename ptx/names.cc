#include "ptx/names.h"

#include <algorithm>
#include <charconv>

namespace cuplex::ptx {
namespace {

// Digits that end the name, as far as they can number a register.
size_t DigitsAtEnd(std::string_view name) {
  constexpr size_t kMost = 8;
  size_t digits = 0;
  while (digits < kMost && digits + 1 < name.size()) {
    char c = name[name.size() - digits - 1];
    if (c < '0' || c > '9') break;
    ++digits;
  }
  return digits;
}

uint32_t NumberAtEnd(std::string_view name, size_t digits) {
  uint32_t number = 0;
  std::from_chars(name.data() + name.size() - digits, name.data() + name.size(), number);
  return number;
}

}  // namespace

std::optional<Meaning> Names::FindGlobal(std::string_view name) const {
  auto at = global_.find(name);
  if (at == global_.end()) return std::nullopt;
  return at->second;
}

void Names::BeginFunction() {
  scopes_.clear();
  scopes_.emplace_back();
  current_ = 0;
}

void Names::OpenScope() {
  Scope scope;
  scope.parent = current_;
  scope.depth = scopes_[current_].depth + 1;
  scopes_.push_back(std::move(scope));
  current_ = static_cast<uint32_t>(scopes_.size() - 1);
}

bool Names::CloseScope() {
  if (scopes_[current_].depth == 0) return false;
  current_ = scopes_[current_].parent;
  return true;
}

Names::Tables& Names::TablesAtHand() {
  auto& tables = scopes_[current_].tables;
  if (!tables) tables = std::make_unique<Tables>();
  return *tables;
}

// Notes the name; false where it lies in a range of the scope.
bool Names::Claim(Tables& tables, std::string_view name) {
  for (size_t n = DigitsAtEnd(name); n > 0; --n) {
    std::string_view prefix = name.substr(0, name.size() - n);
    uint32_t number = NumberAtEnd(name, n);
    auto range = tables.ranges.find(prefix);
    if (range != tables.ranges.end() && number < range->second.count) return false;
    auto [at, added] = tables.lowest.emplace(prefix, number);
    if (!added) at->second = std::min(at->second, number);
  }
  return true;
}

bool Names::DeclareLocal(std::string_view name, Meaning meaning) {
  Tables& tables = TablesAtHand();
  return Claim(tables, name) && tables.names.emplace(name, meaning).second;
}

bool Names::DeclareRange(std::string_view prefix, uint32_t first, uint32_t count) {
  Tables& tables = TablesAtHand();
  auto lowest = tables.lowest.find(prefix);
  if (lowest != tables.lowest.end() && lowest->second < count) return false;
  // A prefix that itself ends in digits, as in %r1<5>, may run into the range of a shorter one.
  for (size_t n = DigitsAtEnd(prefix); n > 0; --n) {
    auto range = tables.ranges.find(prefix.substr(0, prefix.size() - n));
    if (range != tables.ranges.end() && uint64_t{NumberAtEnd(prefix, n)} * 10 < range->second.count)
      return false;
    auto [at, added] =
        tables.lowest.emplace(prefix.substr(0, prefix.size() - n), NumberAtEnd(prefix, n) * 10);
    if (!added) at->second = std::min(at->second, NumberAtEnd(prefix, n) * 10);
  }
  return tables.ranges.emplace(prefix, Range{first, count}).second;
}

std::optional<Meaning> Names::FindFrom(uint32_t from, std::string_view name) const {
  const size_t digits = DigitsAtEnd(name);
  for (uint32_t scope = from;; scope = scopes_[scope].parent) {
    if (const Tables* here = scopes_[scope].tables.get()) {
      if (auto at = here->names.find(name); at != here->names.end()) return at->second;
      for (size_t n = here->ranges.empty() ? 0 : digits; n > 0; --n) {
        auto at = here->ranges.find(name.substr(0, name.size() - n));
        if (at == here->ranges.end()) continue;
        uint32_t number = NumberAtEnd(name, n);
        if (number >= at->second.count) continue;
        if (n > 1 && name[name.size() - n] == '0') return std::nullopt;  // %r01: some take it for %r1
        return Meaning{true, SymbolKind::kNone, at->second.first + number};
      }
    }
    if (scopes_[scope].depth == 0) return FindGlobal(name);
  }
}

}  // namespace cuplex::ptx
