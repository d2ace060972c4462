#include "comm/fold.hpp"

#include <algorithm>

namespace fivefold::comm {
namespace {

// Elements folded at a time: the accumulators of a block stay in the first-level cache, and a
// constant trip count is what lets the compilers vectorise without a remainder.
constexpr int64_t block = 512;

template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<bf16> {
  using type = float;
};

template <class T>
T widen(T x) {
  return x;
}
inline float widen(bf16 x) { return to_float(x); }
template <class T>
void narrow(T x, T& to) {
  to = x;
}
inline void narrow(float x, bf16& to) { to = to_bf16(x); }

struct Sum {
  float operator()(float a, float b) const { return a + b; }
  double operator()(double a, double b) const { return a + b; }
  int64_t operator()(int64_t a, int64_t b) const { return int64_t(uint64_t(a) + uint64_t(b)); }
};
// `a != a` keeps a NaN that came first; a NaN that comes second fails the comparison and is taken.
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

template <class T, class Op>
inline void fold_block(std::span<const std::byte* const> sources,
                       std::span<std::byte* const> outputs, int64_t from, int64_t count) {
  typename Wide<T>::type sums[block];
  const auto* first = reinterpret_cast<const T*>(sources[0]) + from;
  for (int64_t i = 0; i < count; ++i) sums[i] = widen(first[i]);
  for (size_t s = 1; s < sources.size(); ++s) {
    const auto* next = reinterpret_cast<const T*>(sources[s]) + from;
    for (int64_t i = 0; i < count; ++i) sums[i] = Op{}(sums[i], widen(next[i]));
  }
  for (std::byte* const output : outputs) {
    auto* to = reinterpret_cast<T*>(output) + from;
    for (int64_t i = 0; i < count; ++i) narrow(sums[i], to[i]);
  }
}

template <class T, class Op>
void fold_all(std::span<const std::byte* const> sources, std::span<std::byte* const> outputs,
              int64_t count) {
  int64_t at = 0;
  for (; at + block <= count; at += block) fold_block<T, Op>(sources, outputs, at, block);
  if (at < count) fold_block<T, Op>(sources, outputs, at, count - at);
}

template <class T>
void fold_as(Reduce reduce, std::span<const std::byte* const> sources,
             std::span<std::byte* const> outputs, int64_t count) {
  switch (reduce) {
    case Reduce::sum:
      return fold_all<T, Sum>(sources, outputs, count);
    case Reduce::max:
      return fold_all<T, Max>(sources, outputs, count);
    case Reduce::min:
      return fold_all<T, Min>(sources, outputs, count);
  }
}

}  // namespace

void fold(Reduce reduce, DType dtype, std::span<const std::byte* const> sources,
          std::span<std::byte* const> outputs, int64_t count) {
  CHECK(!sources.empty(), "a fold of nothing");
  switch (dtype) {
    case DType::f32:
      return fold_as<float>(reduce, sources, outputs, count);
    case DType::f64:
      return fold_as<double>(reduce, sources, outputs, count);
    case DType::bf16:
      return fold_as<bf16>(reduce, sources, outputs, count);
    case DType::i64:
      return fold_as<int64_t>(reduce, sources, outputs, count);
    default:
      CHECK(can_fold(dtype), "all_reduce of {}", name_of(dtype));
  }
}

bool can_fold(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::i64;
}

Slice slice_of(int64_t count, int ranks, int rank) {
  const int64_t share = count / ranks, longer = count % ranks;
  const int64_t begin = rank * share + std::min<int64_t>(rank, longer);
  return {begin, begin + share + (rank < longer ? 1 : 0)};
}

Meter cost_of_all_reduce(int64_t count, DType dtype, int ranks, int rank) {
  Meter cost;
  const int64_t own = slice_of(count, ranks, rank).count();
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    const int64_t share = slice_of(count, ranks, peer).count();
    cost.bytes_sent += (share + own) * int64_t(size_of(dtype));
    cost.messages_sent += (share > 0 ? 1 : 0) + (own > 0 ? 1 : 0);
  }
  return cost;
}

}  // namespace fivefold::comm
