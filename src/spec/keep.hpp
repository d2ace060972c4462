#pragma once

#include <cstdint>
#include <vector>

#include "spec/run.hpp"

namespace fivefold::spec {

// What of a layer is kept between its forward and its backward pass; the rest is computed again, to
// the same bits. The model does so, the memory ledger counts so.
enum class Keep : uint8_t {
  all,       // nothing is computed again
  products,  // norms and activation functions are (mode = "selective", option "op")
  input,     // everything is (mode = "full")
};

// One entry a layer. Mode "selective" with a number n: every n-th layer in full, the others not.
// Requires  mode and option as load_run accepts them.
std::vector<Keep> keep_of(const ActivationCheckpointSpec& spec, int64_t layers);

}  // namespace fivefold::spec
