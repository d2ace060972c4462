#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace fivefold {
namespace {

// Optimal string alignment distance.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                          d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t best_edits = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const size_t n = edits(word.substr(0, 100), std::string_view(candidate).substr(0, 100));
    if (n < best_edits) best = candidate, best_edits = n;
  }
  return best;
}

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace fivefold
