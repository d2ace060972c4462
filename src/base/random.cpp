#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace fivefold {

double Random::normal(uint64_t index) const {
  const Philox words = block(index);
  const uint64_t a = uint64_t{words[0]} | uint64_t{words[1]} << 32;
  const uint64_t b = uint64_t{words[2]} | uint64_t{words[3]} << 32;
  const double u = (double(a >> 11) + 0.5) * 0x1p-53;  // in (0, 1): the logarithm is finite
  const double v = double(b >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace fivefold
