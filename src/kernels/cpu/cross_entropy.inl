// Cross-entropy in vectors of float. The forward reads a row from memory once: chunk by chunk, each
// lane with a maximum and a sum of its own, put together at the end of the row.

template <class T>
void cross_entropy_forward(Rows<const T> logits, const int32_t* targets, float* losses, float* lse,
                           int64_t begin, int64_t end) {
  constexpr int64_t chunk = 1024, w = Vec::width;  // a chunk stays in the first level of cache
  const int64_t columns = logits.columns, whole = columns / w * w;
  for (int64_t n = begin; n < end; ++n) {
    const T* row = logits[n];
    Vec top = Vec::all(std::numeric_limits<float>::lowest()), sums = Vec::all(0);
    for (int64_t from = 0; from < whole; from += chunk) {
      const int64_t to = std::min(whole, from + chunk);
      Vec even = top, odd = top;
      int64_t i = from;
      // A NaN is passed over by these maxima and kept by exp.
      for (; i + 2 * w <= to; i += 2 * w) {
        even = Vec::max(Vec::load(row + i), even);
        odd = Vec::max(Vec::load(row + i + w), odd);
      }
      if (i < to) even = Vec::max(Vec::load(row + i), even);
      const Vec higher = Vec::max(even, odd);
      sums = sums * exp(top - higher);
      top = higher;
      Vec part = Vec::all(0);  // a sum of its own for each chunk: fewer digits lost
      for (i = from; i < to; i += w) part = part + exp(Vec::load(row + i) - top);
      sums = sums + part;
    }
    float tops[w], totals[w];
    top.store(tops);
    sums.store(totals);
    double highest_logit = highest(top), total = 0;
    for (int64_t i = whole; i < columns; ++i) {
      highest_logit = std::max<double>(highest_logit, load(row[i]));
    }
    for (int64_t i = 0; i < w; ++i) total += totals[i] * std::exp(tops[i] - highest_logit);
    for (int64_t i = whole; i < columns; ++i) total += std::exp(load(row[i]) - highest_logit);
    const double log_sum = highest_logit + std::log(total);
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
