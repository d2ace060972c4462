#pragma once

#include "spec/model.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::model {

// (cos, sin) of every position and frequency: f64 [positions, head_dim / 2, 2], in workspace memory.
// Frequencies theta^(-2i/D), scaled as Llama 3.1 does when the model says so: long wavelengths are
// stretched by `factor`, short ones kept, those between blended.
// Source   Su et al., 2021 (RoFormer); Llama 3.1's rope_scaling "llama3".
Tensor make_rope_table(Memory& memory, const spec::ModelSpec& model, int64_t positions);

}  // namespace fivefold::model
