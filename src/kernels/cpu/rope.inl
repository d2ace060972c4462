// Rotary positions: the angles of a position are narrowed once, a piece of the head at a time, and
// used for all heads.

template <class T>
void rope(reference::Heads<T> x, const int32_t* positions, const double* table, double sign,
          int64_t begin, int64_t end) {
  constexpr int64_t piece = 128;
  float cosine[piece], sine[piece];
  const int64_t half = x.width / 2;
  for (int64_t n = begin; n < end; ++n) {
    const double* angles = table + int64_t{positions[n]} * half * 2;
    for (int64_t first = 0; first < half; first += piece) {
      const int64_t count = half - first < piece ? half - first : piece;
      for (int64_t i = 0; i < count; ++i) {
        cosine[i] = float(angles[2 * (first + i)]);
        sine[i] = float(sign * angles[2 * (first + i) + 1]);
      }
      for (int64_t h = 0; h < x.heads; ++h) {
        T* low = x.data + n * x.row_stride + h * x.head_stride + first;
        T* high = low + half;
        each_vec(count, [&](int64_t i, auto lanes) IN_ISA {
          const Vec a = read(low + i, lanes), b = read(high + i, lanes);
          const Vec c = read(cosine + i, lanes), s = read(sine + i, lanes);
          write(low + i, a * c - b * s, lanes);
          write(high + i, Vec::fma(a, s, b * c), lanes);
        });
      }
    }
  }
}
