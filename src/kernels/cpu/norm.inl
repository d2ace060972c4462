// RMSNorm and LayerNorm in vectors of float. A row is read several times, from the cache.

template <class T>
void norm_forward(Rows<const T> x, const T* w, const T* b, double eps, Rows<T> y, float* mean,
                  float* rstd, int64_t begin, int64_t end) {
  const int64_t columns = x.columns;
  for (int64_t n = begin; n < end; ++n) {
    const T* row = x[n];
    T* to = y[n];
    float center = 0;
    if (mean != nullptr) {
      center = total(columns, [&](int64_t i, auto lanes) IN_ISA { return read(row + i, lanes); }) /
               float(columns);
      mean[n] = center;
    }
    const Vec centers = Vec::all(center);
    const float squares = total(columns, [&](int64_t i, auto lanes) IN_ISA {
      const Vec v = keep(read(row + i, lanes) - centers, lanes);
      return v * v;
    });
    const float scale = float(1 / std::sqrt(double(squares) / double(columns) + eps));
    rstd[n] = scale;
    const Vec scales = Vec::all(scale);
    if (b != nullptr) {
      each_vec(columns, [&](int64_t i, auto lanes) IN_ISA {
        const Vec v = (read(row + i, lanes) - centers) * scales;
        write(to + i, Vec::fma(v, read(w + i, lanes), read(b + i, lanes)), lanes);
      });
    } else {
      each_vec(columns, [&](int64_t i, auto lanes) IN_ISA {
        write(to + i, (read(row + i, lanes) - centers) * scales * read(w + i, lanes), lanes);
      });
    }
  }
}

template <class T>
void norm_backward_input(Rows<const T> dy, Rows<const T> x, const T* w, const float* mean,
                         const float* rstd, Rows<T> dx, bool accumulate, int64_t begin,
                         int64_t end) {
  const int64_t columns = x.columns;
  for (int64_t n = begin; n < end; ++n) {
    const T *row = x[n], *from = dy[n];
    T* to = dx[n];
    const Vec center = Vec::all(mean != nullptr ? mean[n] : 0), scale = Vec::all(rstd[n]);
    const float dot = total(columns, [&](int64_t i, auto lanes) IN_ISA {
      return read(from + i, lanes) * read(w + i, lanes) * ((read(row + i, lanes) - center) * scale);
    });
    float sums = 0;
    if (mean != nullptr) {
      sums = total(columns, [&](int64_t i, auto lanes) IN_ISA {
        return read(from + i, lanes) * read(w + i, lanes);
      });
    }
    const Vec slope = Vec::all(-dot / float(columns)), shift = Vec::all(sums / float(columns));
    const auto gradient = [&](int64_t i, auto lanes) IN_ISA {
      const Vec normal = (read(row + i, lanes) - center) * scale;
      const Vec g = read(from + i, lanes) * read(w + i, lanes) - shift;
      return Vec::fma(normal, slope, g) * scale;
    };
    if (accumulate) {
      each_vec(columns, [&](int64_t i, auto lanes) IN_ISA {
        write(to + i, read(to + i, lanes) + gradient(i, lanes), lanes);
      });
    } else {
      each_vec(columns, [&](int64_t i, auto lanes) IN_ISA { write(to + i, gradient(i, lanes), lanes); });
    }
  }
}

// Adds K rows at once to the sums, so that a sum is loaded and stored once for all of them.
template <int K, class T>
inline void add_norm_rows(Rows<const T> dy, Rows<const T> x, const float* mean, const float* rstd,
                          float* dw, float* db, int64_t n) {
  const T *from[K], *row[K];
  Vec center[K], scale[K];
  UNROLL_ALL for (int k = 0; k < K; ++k) {
    from[k] = dy[n + k], row[k] = x[n + k];
    center[k] = Vec::all(mean != nullptr ? mean[n + k] : 0), scale[k] = Vec::all(rstd[n + k]);
  }
  each_vec(x.columns, [&](int64_t i, auto lanes) IN_ISA {
    Vec weight = read(dw + i, lanes);
    Vec bias = db != nullptr ? read(db + i, lanes) : Vec::all(0);
    UNROLL_ALL for (int k = 0; k < K; ++k) {
      const Vec g = read(from[k] + i, lanes);
      weight = Vec::fma(g, (read(row[k] + i, lanes) - center[k]) * scale[k], weight);
      bias = bias + g;
    }
    write(dw + i, weight, lanes);
    if (db != nullptr) write(db + i, bias, lanes);
  });
}

template <class T>
void norm_backward_weight(Rows<const T> dy, Rows<const T> x, const float* mean, const float* rstd,
                          float* dw, float* db, int64_t begin, int64_t end) {
  std::memset(dw, 0, size_t(x.columns) * sizeof(float));
  if (db != nullptr) std::memset(db, 0, size_t(x.columns) * sizeof(float));
  int64_t n = begin;
  for (; n + 4 <= end; n += 4) add_norm_rows<4>(dy, x, mean, rstd, dw, db, n);
  for (; n < end; ++n) add_norm_rows<1>(dy, x, mean, rstd, dw, db, n);
}
