// Dot products of a few rows x with many rows w, straight from memory.

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

constexpr int few_lanes = 4;  // rows of w at a time: enough streams to keep memory busy

// out[i * out_stride + j] = x_i . w_j for i < Rows, j < few_lanes.
template <int Rows, class Source>
inline void few_dots(const float* x, int64_t x_stride, const Source* w, int64_t w_stride,
                     int64_t depth, float* out, int64_t out_stride, int64_t lanes) {
  Vec sums[Rows][few_lanes];
  UNROLL for (int i = 0; i < Rows; ++i) {
    UNROLL for (int j = 0; j < few_lanes; ++j) sums[i][j] = Vec::all(0);
  }
  // Lanes past the end repeat the last one.
  const Source* row[few_lanes];
  for (int64_t j = 0; j < few_lanes; ++j) row[j] = w + std::min(j, lanes - 1) * w_stride;
  int64_t k = 0;
  for (; k + Vec::width <= depth; k += Vec::width) {
    Vec weight[few_lanes];
    UNROLL for (int j = 0; j < few_lanes; ++j) weight[j] = Vec::load(row[j] + k);
    UNROLL for (int i = 0; i < Rows; ++i) {
      const Vec value = Vec::load(x + i * x_stride + k);
      UNROLL for (int j = 0; j < few_lanes; ++j) {
        sums[i][j] = Vec::fma(value, weight[j], sums[i][j]);
      }
    }
  }
  UNROLL for (int i = 0; i < Rows; ++i) {
    float total[few_lanes];
    UNROLL for (int j = 0; j < few_lanes; ++j) total[j] = sum(sums[i][j]);
    for (int64_t j = 0; j < lanes; ++j) {
      for (int64_t rest = k; rest < depth; ++rest) {
        total[j] += x[i * x_stride + rest] * load(row[j][rest]);
      }
      out[i * out_stride + j] = total[j];
    }
  }
}

// Rows of w from `begin` to `end`.
template <class Source>
void few_rows(const float* x, int64_t x_stride, int64_t rows, const Source* w, int64_t w_stride,
              int64_t depth, float* out, int64_t out_stride, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; j += few_lanes) {
    const int64_t lanes = std::min(int64_t(few_lanes), end - j);
    for (int64_t i = 0; i < rows; i += 4) {
      const float* from = x + i * x_stride;
      float* to = out + i * out_stride + j;
      const Source* weights = w + j * w_stride;
      switch (std::min<int64_t>(rows - i, 4)) {
        case 1: few_dots<1>(from, x_stride, weights, w_stride, depth, to, out_stride, lanes); break;
        case 2: few_dots<2>(from, x_stride, weights, w_stride, depth, to, out_stride, lanes); break;
        case 3: few_dots<3>(from, x_stride, weights, w_stride, depth, to, out_stride, lanes); break;
        default: few_dots<4>(from, x_stride, weights, w_stride, depth, to, out_stride, lanes);
      }
    }
  }
}

#undef UNROLL
