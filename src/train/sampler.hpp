#pragma once

#include <cstdint>
#include <span>

namespace fivefold::train {

struct SamplingOptions {
  double temperature = 1;  // 0: always the likeliest token
  int64_t top_k = 0;       // > 0: among the k likeliest
  double top_p = 1;        // < 1: among the fewest whose probability reaches p
  uint64_t seed = 0;
};

// The token at position `index` of a text, drawn from softmax(logits / temperature) cut to top_k,
// then to top_p. A pure function of its arguments; ties go to the smaller id.
int32_t sample(std::span<const float> logits, const SamplingOptions& options, uint64_t index);

}  // namespace fivefold::train
