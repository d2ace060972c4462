// Chains of FMAs from registers: as many chains as the pipes need, none longer than it must be.

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

constexpr int chains = 12;  // two pipes of up to five cycles

// FLOPs done. `sink` takes the result, so that the compiler cannot drop the work.
inline double fma_burst(int64_t iterations, float* sink) {
  Vec sum[chains];
  UNROLL for (int c = 0; c < chains; ++c) sum[c] = Vec::all(float(c) * *sink);
  const Vec a = Vec::all(*sink + 0.5f), b = Vec::all(*sink + 1.0f);
  for (int64_t i = 0; i < iterations; ++i) {
    UNROLL for (int c = 0; c < chains; ++c) sum[c] = Vec::fma(sum[c], a, b);
  }
  UNROLL for (int c = 1; c < chains; ++c) sum[0] = sum[0] + sum[c];
  float lanes[Vec::width];
  sum[0].store(lanes);
  *sink = lanes[0] * 0;
  return double(iterations) * chains * double(Vec::width) * 2;
}

// w, g, m, v of `count` elements (a multiple of the width) are read, w, m, v written.
inline void sweep(float* w, const float* g, float* m, float* v, int64_t count) {
  const Vec small = Vec::all(0.125f);
  for (int64_t i = 0; i < count; i += Vec::width) {
    const Vec grad = Vec::load(g + i);
    const Vec first = Vec::fma(Vec::load(m + i), small, grad);
    const Vec second = Vec::fma(Vec::load(v + i), small, grad);
    first.store(m + i);
    second.store(v + i);
    Vec::fma(first, second, Vec::load(w + i)).store(w + i);
  }
}

#undef UNROLL
