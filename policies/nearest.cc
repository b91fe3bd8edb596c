#include "policies/nearest.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace cuplex::policies {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Edit distance in which a swap of neighbours counts once (optimal string alignment).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  size_t best_distance = 0;
  for (std::string_view candidate : known) {
    size_t reach = std::max<size_t>(1, candidate.size() / 3);
    size_t gap = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (gap > reach) continue;  // also keeps a very long word from costing anything
    size_t distance = Distance(word, candidate);
    if (distance > reach || (!best.empty() && distance >= best_distance)) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace cuplex::policies
