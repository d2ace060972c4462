#pragma once
// Conversion between dtypes, and dropout.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "base/random.hpp"
#include "kernels/rows.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels {

// What a conversion computes in: the wider of the two operands.
template <class From, class To>
using Common =
    std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;

// Both dtypes as one template argument.
template <class X, class Y>
struct Conversion {
  using From = X;
  using To = Y;
};

// The dropout mask. An element is kept when its 32 random bits reach `threshold`; four
// neighbouring columns share a Philox block.
struct DropoutMask {
  static constexpr int64_t columns_max = int64_t{4} << 20;
  DropoutMask(double rate, const Random& bits)
      : random(bits),
        threshold(uint32_t(std::min(std::round(rate * 0x1p32), 0x1p32 - 1))),
        scale(1 / (1 - rate)) {
    const auto both = std::bit_cast<std::array<uint64_t, 2>>(bits);
    seed_and_stream[0] = both[0], seed_and_stream[1] = both[1];
  }

  Random random;
  uint64_t seed_and_stream[2];  // of `random`, for those who draw several blocks at once
  uint32_t threshold;           // rate * 2^32
  double scale;                 // of what is kept

  static constexpr uint64_t block_of(int64_t token_index, int64_t column) {
    return uint64_t(token_index) << 20 | uint64_t(column / 4);
  }
};

namespace reference {

template <class From, class To>
void convert(const From* x, To* y, bool accumulate, int64_t n) {
  using C = Common<From, To>;
  for (int64_t i = 0; i < n; ++i) {
    const C before = accumulate ? C(load(y[i])) : C(0);
    store(y[i], Accumulator<To>(before + C(load(x[i]))));
  }
}

template <class T>
void dropout(Rows<T> x, DropoutMask mask, const int64_t* token_index, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t c = 0; c < x.columns; ++c) {
      const uint32_t bits =
          mask.random.block(DropoutMask::block_of(token_index[n], c))[size_t(c % 4)];
      const double factor = bits >= mask.threshold ? mask.scale : 0;
      store(x[n][c], Accumulator<T>(load(x[n][c]) * factor));
    }
  }
}

}  // namespace reference
}  // namespace fivefold::kernels
