#include "spec/keep.hpp"

#include <cstdlib>

#include "base/check.hpp"

namespace fivefold::spec {

std::vector<Keep> keep_of(const ActivationCheckpointSpec& spec, int64_t layers) {
  const auto count = size_t(layers);
  if (spec.mode == "none") return std::vector<Keep>(count, Keep::all);
  if (spec.mode == "full") return std::vector<Keep>(count, Keep::input);
  CHECK(spec.mode == "selective", "activation checkpoint mode {}", spec.mode);
  if (spec.selective_ac_option == "op") return std::vector<Keep>(count, Keep::products);
  const int64_t every = std::atoll(spec.selective_ac_option.c_str());
  CHECK(every > 0, "selective_ac_option {}", spec.selective_ac_option);
  std::vector<Keep> keep(count, Keep::all);
  for (size_t layer = 0; layer < count; layer += size_t(every)) keep[layer] = Keep::input;
  return keep;
}

}  // namespace fivefold::spec
