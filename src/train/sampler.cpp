#include "train/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"

namespace fivefold::train {

int32_t sample(std::span<const float> logits, const SamplingOptions& options, uint64_t index) {
  CHECK(!logits.empty(), "no logits");
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  };
  if (options.temperature <= 0) return *std::min_element(order.begin(), order.end(), likelier);

  size_t keep = order.size();
  if (options.top_k > 0) keep = std::min(keep, size_t(options.top_k));
  std::partial_sort(order.begin(), order.begin() + long(keep), order.end(), likelier);
  std::vector<double> weight(keep);
  const double top = double(logits[size_t(order[0])]);
  double total = 0;
  for (size_t i = 0; i < keep; ++i) {
    weight[i] = std::exp((double(logits[size_t(order[i])]) - top) / options.temperature);
    total += weight[i];
  }
  if (options.top_p < 1) {
    const double enough = options.top_p * total;
    double sum = 0;
    size_t n = 0;
    while (n < keep && (n == 0 || sum < enough)) sum += weight[n++];
    keep = n;
    total = sum;
  }
  double at = Random(options.seed, stream_of("sampling")).uniform(index) * total;
  for (size_t i = 0; i < keep; ++i) {
    at -= weight[i];
    if (at < 0) return order[i];
  }
  return order[keep - 1];
}

}  // namespace fivefold::train
