// Cross-entropy in vectors of float. The forward reads a row from memory once: chunk by chunk, each
// lane with a sum of its own, put together at the end of the row.

// Adds the exponentials of [from, to) relative to `top` to `sums`, lane by lane. Where a chunk
// rises far above the top so far, the top and the sums move up first; a little higher does no harm,
// as floats hold e^30 and more as exactly as 1.
template <class T>
void add_exponentials(const T* row, int64_t from, int64_t to, Vec& top, Vec& sums) {
  constexpr int64_t w = Vec::width;
  const auto add = [&](Vec& high) IN_ISA {
    Vec even = Vec::all(0), odd = even;  // sums of their own for each chunk: fewer digits lost
    int64_t i = from;
    for (; i + 2 * w <= to; i += 2 * w) {
      const Vec a = Vec::load(row + i), b = Vec::load(row + i + w);
      high = Vec::max(b, Vec::max(a, high));  // a NaN is passed over here and kept by exp
      even = even + exp(a - top);
      odd = odd + exp(b - top);
    }
    if (i < to) {
      const Vec a = Vec::load(row + i);
      high = Vec::max(a, high);
      even = even + exp(a - top);
    }
    return even + odd;
  };
  Vec high = top;
  Vec part = add(high);
  if (highest(high - top) > 30) {
    sums = sums * exp(top - high);
    top = high;
    part = add(high);
  }
  sums = sums + part;
}

template <class T>
void cross_entropy_forward(Rows<const T> logits, const int32_t* targets, float* losses, float* lse,
                           int64_t begin, int64_t end) {
  constexpr int64_t chunk = 2048, w = Vec::width;  // a chunk stays in the first level of cache
  const int64_t columns = logits.columns, whole = columns / w * w;
  for (int64_t n = begin; n < end; ++n) {
    const T* row = logits[n];
    Vec top = Vec::all(std::numeric_limits<float>::lowest()), sums = Vec::all(0);
    for (int64_t from = 0; from < whole; from += chunk) {
      add_exponentials(row, from, std::min(whole, from + chunk), top, sums);
    }
    float tops[w], totals[w];
    top.store(tops);
    sums.store(totals);
    double base = highest(top), total = 0;
    for (int64_t i = whole; i < columns; ++i) base = std::max<double>(base, load(row[i]));
    for (int64_t i = 0; i < w; ++i) total += totals[i] * std::exp(tops[i] - base);
    for (int64_t i = whole; i < columns; ++i) total += std::exp(load(row[i]) - base);
    const double log_sum = base + std::log(total);
    lse[n] = float(log_sum);
    losses[n] = targets[n] < 0 ? 0 : float(log_sum - double(load(row[targets[n]])));
  }
}

template <class T>
void cross_entropy_backward(Rows<T> logits, const int32_t* targets, const float* lse, double scale,
                            int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    T* row = logits[n];
    if (targets[n] < 0) {
      std::memset(static_cast<void*>(row), 0, size_t(logits.columns) * sizeof(T));
      continue;
    }
    const double at_target = std::exp(double(load(row[targets[n]])) - double(lse[n])) - 1;
    const Vec log_sum = Vec::all(lse[n]), scales = Vec::all(float(scale));
    each_vec(logits.columns, [&](int64_t i, auto lanes) IN_ISA {
      write(row + i, exp(read(row + i, lanes) - log_sum) * scales, lanes);
    });
    fivefold::store(row[targets[n]], float(at_target * scale));
  }
}
