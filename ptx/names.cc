#include "ptx/names.h"

#include <charconv>

namespace cuplex::ptx {

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

bool Names::DeclareLocal(std::string_view name, Meaning meaning) {
  return scopes_[current_].names.emplace(name, meaning).second;
}

bool Names::DeclareRange(std::string_view prefix, uint32_t first, uint32_t count) {
  return scopes_[current_].ranges.emplace(prefix, Range{first, count}).second;
}

std::optional<Meaning> Names::FindFrom(uint32_t from, std::string_view name) const {
  constexpr size_t kMostDigits = 8;
  size_t digits = 0;
  while (digits < kMostDigits && digits + 1 < name.size()) {
    char c = name[name.size() - digits - 1];
    if (c < '0' || c > '9') break;
    ++digits;
  }
  for (uint32_t scope = from;; scope = scopes_[scope].parent) {
    const Scope& here = scopes_[scope];
    if (auto at = here.names.find(name); at != here.names.end()) return at->second;
    for (size_t n = here.ranges.empty() ? 0 : digits; n > 0; --n) {
      std::string_view number = name.substr(name.size() - n);
      if (number[0] == '0' && n > 1) continue;  // %r01 is not %r1
      auto at = here.ranges.find(name.substr(0, name.size() - n));
      if (at == here.ranges.end()) continue;
      uint32_t index = 0;
      std::from_chars(number.data(), number.data() + n, index);
      if (index < at->second.count) return Meaning{true, SymbolKind::kNone, at->second.first + index};
    }
    if (here.depth == 0) return FindGlobal(name);
  }
}

}  // namespace cuplex::ptx
