#include "model/rope_table.hpp"

#include <cmath>
#include <numbers>

namespace fivefold::model {
namespace {

double scaled(double frequency, const spec::RopeScaling& s) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double original = double(s.original_max_position_embeddings);
  if (wavelength < original / s.high_freq_factor) return frequency;
  if (wavelength > original / s.low_freq_factor) return frequency / s.factor;
  const double smooth =
      (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

}  // namespace

Tensor make_rope_table(Memory& memory, const spec::ModelSpec& model, int64_t positions) {
  const int64_t half = model.head_dim / 2;
  Tensor table(memory, Category::workspace, DType::f64, {positions, half, 2});
  double* to = table.flat<double>().data();
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      double frequency = std::pow(model.rope_theta, -2.0 * double(i) / double(model.head_dim));
      if (model.rope_scaling) frequency = scaled(frequency, *model.rope_scaling);
      *to++ = std::cos(double(p) * frequency);
      *to++ = std::sin(double(p) * frequency);
    }
  }
  return table;
}

}  // namespace fivefold::model
