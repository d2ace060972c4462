// Packing and micro-kernels for one instruction set; see matmul_kernels.hpp.

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

// One register of T. tile_rows x tile_vectors accumulators, the vectors of one row of B and a
// broadcast of A fill the register file.
template <class T>
struct Reg;

#if FIVEFOLD_ISA == 512
constexpr int tile_rows = 8, tile_vectors = 3;
template <>
struct Reg<float> {
  using V = __m512;
  static constexpr int64_t width = 16;
  static V zero() { return _mm512_setzero_ps(); }
  static V all(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
};
template <>
struct Reg<double> {
  using V = __m512d;
  static constexpr int64_t width = 8;
  static V zero() { return _mm512_setzero_pd(); }
  static V all(double x) { return _mm512_set1_pd(x); }
  static V load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
};
#elif FIVEFOLD_ISA == 2
constexpr int tile_rows = 6, tile_vectors = 2;
template <>
struct Reg<float> {
  using V = __m256;
  static constexpr int64_t width = 8;
  static V zero() { return _mm256_setzero_ps(); }
  static V all(float x) { return _mm256_set1_ps(x); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
};
template <>
struct Reg<double> {
  using V = __m256d;
  static constexpr int64_t width = 4;
  static V zero() { return _mm256_setzero_pd(); }
  static V all(double x) { return _mm256_set1_pd(x); }
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
};
#else
constexpr int tile_rows = 4, tile_vectors = 2;
template <class T>
struct Reg {
  // The compilers' own vectors: two or four lanes that every machine of ours has.
  using V __attribute__((vector_size(16))) = T;
  static constexpr int64_t width = 16 / sizeof(T);
  static V zero() { return V{}; }
  static V all(T x) { return x - V{}; }
  static V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, V v) { std::memcpy(p, &v, sizeof v); }
  static V add(V a, V b) { return a + b; }
  static V fma(V a, V b, V c) { return a * b + c; }
};
#endif

template <class T>
struct Tile {
  const T *a, *b;
  int64_t depth;
  T* c;
  int64_t c_stride, columns;
  bool add;
  const T* bias;
};

// The elements of the one register of a row that is not whole.
template <class T>
inline void store_some(T* c, typename Reg<T>::V v, int64_t count, bool add) {
  T lanes[Reg<T>::width];
  Reg<T>::store(lanes, v);
  for (int64_t j = 0; j < count; ++j) c[j] = add ? c[j] + lanes[j] : lanes[j];
}

// Rows x (Vectors registers) of c. Every element is one chain of FMAs in the order of k, whatever
// the tile's size: that is why results do not depend on how the work was cut.
template <class T, int Rows, int Vectors>
void tile(const Tile<T>& t) {
  using R = Reg<T>;
  using V = typename R::V;
  V sums[Rows][Vectors];
  UNROLL for (int i = 0; i < Rows; ++i) {
    UNROLL for (int v = 0; v < Vectors; ++v) sums[i][v] = R::zero();
    UNROLL for (int v = 0; v < Vectors; ++v) {
      __builtin_prefetch(t.c + i * t.c_stride + v * R::width, 1);
    }
    __builtin_prefetch(t.c + i * t.c_stride + Vectors * R::width - 1, 1);
  }
  const T *a = t.a, *b = t.b;
  for (int64_t k = t.depth; k > 0; --k) {
    V row[Vectors];
    UNROLL for (int v = 0; v < Vectors; ++v) row[v] = R::load(b + v * R::width);
    UNROLL for (int i = 0; i < Rows; ++i) {
      const V x = R::all(a[i]);
      UNROLL for (int v = 0; v < Vectors; ++v) sums[i][v] = R::fma(x, row[v], sums[i][v]);
    }
    a += tile_rows;
    b += tile_vectors * R::width;
  }
  if (t.bias != nullptr) {
    UNROLL for (int v = 0; v < Vectors; ++v) {
      T some[R::width] = {};
      const int64_t left = t.columns - v * R::width;
      for (int64_t j = 0; j < R::width && j < left; ++j) some[j] = t.bias[v * R::width + j];
      const V bias = R::load(some);
      UNROLL for (int i = 0; i < Rows; ++i) sums[i][v] = R::add(sums[i][v], bias);
    }
  }
  UNROLL for (int v = 0; v < Vectors; ++v) {
    const int64_t left = t.columns - v * R::width;
    UNROLL for (int i = 0; i < Rows; ++i) {
      T* c = t.c + i * t.c_stride + v * R::width;
      if (left < R::width) {
        store_some(c, sums[i][v], left, t.add);
      } else {
        R::store(c, t.add ? R::add(R::load(c), sums[i][v]) : sums[i][v]);
      }
    }
  }
}

template <class T, int Rows>
inline void tile_of_rows(const Tile<T>& t) {
  const int64_t vectors = (t.columns + Reg<T>::width - 1) / Reg<T>::width;
  if constexpr (tile_vectors > 2) {
    if (vectors >= 3) return tile<T, Rows, 3>(t);
  }
  if (vectors >= 2) return tile<T, Rows, 2>(t);
  tile<T, Rows, 1>(t);
}

// Fewer rows than a whole tile: the kernel of exactly that many, found by recursion.
template <class T, int Rows>
inline void tile_of(const Tile<T>& t, int64_t rows) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return tile_of<T, Rows - 1>(t, rows);
  }
  tile_of_rows<T, Rows>(t);
}

// Fetches a block line by line, a few lines at each call.
class Fetcher {
 public:
  Fetcher(const Ahead& ahead, int64_t calls) : ahead_(ahead) {
    const int64_t lines = ahead.rows * ((ahead.row_bytes + line - 1) / line);
    a_call_ = (lines + calls - 1) / calls;
  }
  void fetch() {
    for (int64_t n = 0; n < a_call_ && row_ < ahead_.rows; ++n) {
      __builtin_prefetch(ahead_.from + row_ * ahead_.stride + at_, 0, 2);  // into level 2
      at_ += line;
      if (at_ < ahead_.row_bytes) continue;
      at_ = 0;
      ++row_;
    }
  }

 private:
  static constexpr int64_t line = 64;
  Ahead ahead_;
  int64_t a_call_ = 0, row_ = 0, at_ = 0;
};

template <class T>
void multiply(const BlockArgs<T>& p) {
  constexpr int64_t nr = tile_vectors * Reg<T>::width;
  Fetcher fetcher(p.ahead, ((p.columns + nr - 1) / nr) * ((p.rows + tile_rows - 1) / tile_rows));
  Tile<T> t{nullptr, p.b, p.depth, nullptr, p.c_stride, 0, p.add, nullptr};
  for (int64_t j = 0; j < p.columns; j += nr, t.b += p.b_panel_stride) {
    t.columns = std::min(nr, p.columns - j);
    t.bias = p.bias == nullptr ? nullptr : p.bias + j;
    t.c = p.c + j;
    t.a = p.a;
    for (int64_t i = 0; i < p.rows; i += tile_rows) {
      fetcher.fetch();
      tile_of<T, tile_rows>(t, p.rows - i);
      t.a += p.a_panel_stride;
      t.c += tile_rows * p.c_stride;
    }
  }
}

// ---- Packing.

// Lanes [0, lanes) of one panel from rows of k, the general way.
template <int Width, class Source, class T>
inline void transpose_some(const Source* from, int64_t stride, int64_t lanes, int64_t k_from,
                           int64_t k_to, T* to) {
  for (int64_t k = k_from; k < k_to; ++k) {
    for (int64_t i = 0; i < Width; ++i) {
      to[k * Width + i] = i < lanes ? T(load(from[i * stride + k])) : T(0);
    }
  }
}

#if FIVEFOLD_ISA != 0
inline __m128 load4(const float* p) { return _mm_loadu_ps(p); }
inline __m128 load4(const bf16* p) {
  const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(half), 16));
}

// 8 lanes by 4 depths, transposed. A panel narrower than 8 is written 8 wide: the next depth, or
// the slack, takes what is too much.
template <int Width, class Source>
inline void transpose8(const Source* const* row, int64_t k, float* to) {
  __m256 x[4];
  UNROLL for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(load4(row[i] + k)), load4(row[i + 4] + k),
                                1);
  }
  const __m256 low0 = _mm256_unpacklo_ps(x[0], x[1]), low1 = _mm256_unpacklo_ps(x[2], x[3]);
  const __m256 high0 = _mm256_unpackhi_ps(x[0], x[1]), high1 = _mm256_unpackhi_ps(x[2], x[3]);
  _mm256_storeu_ps(to + k * Width, _mm256_shuffle_ps(low0, low1, 0x44));
  _mm256_storeu_ps(to + (k + 1) * Width, _mm256_shuffle_ps(low0, low1, 0xee));
  _mm256_storeu_ps(to + (k + 2) * Width, _mm256_shuffle_ps(high0, high1, 0x44));
  _mm256_storeu_ps(to + (k + 3) * Width, _mm256_shuffle_ps(high0, high1, 0xee));
}
#endif
#if FIVEFOLD_ISA == 512
// 16 lanes by 4 depths.
template <int Width, class Source>
inline void transpose16(const Source* const* row, int64_t k, float* to) {
  __m512 x[4];
  UNROLL for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_castps128_ps512(load4(row[i] + k));
    x[i] = _mm512_insertf32x4(x[i], load4(row[i + 4] + k), 1);
    x[i] = _mm512_insertf32x4(x[i], load4(row[i + 8] + k), 2);
    x[i] = _mm512_insertf32x4(x[i], load4(row[i + 12] + k), 3);
  }
  const __m512 low0 = _mm512_unpacklo_ps(x[0], x[1]), low1 = _mm512_unpacklo_ps(x[2], x[3]);
  const __m512 high0 = _mm512_unpackhi_ps(x[0], x[1]), high1 = _mm512_unpackhi_ps(x[2], x[3]);
  _mm512_storeu_ps(to + k * Width, _mm512_shuffle_ps(low0, low1, 0x44));
  _mm512_storeu_ps(to + (k + 1) * Width, _mm512_shuffle_ps(low0, low1, 0xee));
  _mm512_storeu_ps(to + (k + 2) * Width, _mm512_shuffle_ps(high0, high1, 0x44));
  _mm512_storeu_ps(to + (k + 3) * Width, _mm512_shuffle_ps(high0, high1, 0xee));
}
#endif

// One panel from rows of k. Lanes past the end repeat the last one: nothing reads their results.
template <int Width, class Source, class T>
inline void transpose_panel(const Source* from, int64_t stride, int64_t lanes, int64_t depth,
                            T* to) {
  int64_t done = 0;
#if FIVEFOLD_ISA != 0
  if constexpr (std::is_same_v<T, float>) {
    constexpr int group = FIVEFOLD_ISA == 512 && Width >= 16 ? 16 : 8;
    for (int64_t first = 0; first < Width; first += group) {
      const Source* row[group];
      for (int64_t i = 0; i < group; ++i) row[i] = from + std::min(first + i, lanes - 1) * stride;
      for (done = 0; done + 4 <= depth; done += 4) {
#if FIVEFOLD_ISA == 512
        if constexpr (group == 16) {
          transpose16<Width>(row, done, to + first);
          continue;
        }
#endif
        if constexpr (group == 8) transpose8<Width>(row, done, to + first);
      }
    }
  }
#endif
  transpose_some<Width>(from, stride, lanes, done, depth, to);
}

// Width contiguous lanes, widened.
template <int Width, class Source, class T>
inline void copy_lanes(const Source* from, T* to) {
#if FIVEFOLD_ISA != 0
  if constexpr (std::is_same_v<T, float>) {
    int i = 0;
    UNROLL for (; i + Vec::width <= Width; i += int(Vec::width)) Vec::load(from + i).store(to + i);
    UNROLL for (; i + 4 <= Width; i += 4) _mm_storeu_ps(to + i, load4(from + i));
    UNROLL for (; i < Width; ++i) to[i] = load(from[i]);
    return;
  }
#endif
  UNROLL for (int i = 0; i < Width; ++i) to[i] = T(load(from[i]));
}

// Whole panels whose lanes are contiguous: several at a time, because a row of one is less than a
// cache line.
template <int Width, class Source, class T>
inline void copy_panels(const PackArgs<Source>& p, int64_t first, int64_t count) {
  const Source* from = p.from + first * Width;
  T* to = p.to + first * p.panel_stride;
  for (int64_t k = 0; k < p.depth; ++k, from += p.stride, to += Width) {
    for (int64_t panel = 0; panel < count; ++panel) {
      copy_lanes<Width>(from + panel * Width, to + panel * p.panel_stride);
    }
  }
}

template <int Width, class Source>
void pack(const PackArgs<Source>& p) {
  using T = Accumulator<Source>;
  const int64_t whole = p.lanes / Width, rest = p.lanes % Width;
  if (p.lanes_contiguous) {
    constexpr int64_t group = Width >= 16 ? 1 : 8;
    for (int64_t first = 0; first < whole; first += group) {
      copy_panels<Width, Source, T>(p, first, std::min(group, whole - first));
    }
    if (rest == 0) return;
    const Source* from = p.from + whole * Width;
    T* to = p.to + whole * p.panel_stride;
    for (int64_t k = 0; k < p.depth; ++k, from += p.stride, to += Width) {
      for (int64_t i = 0; i < Width; ++i) to[i] = i < rest ? T(load(from[i])) : T(0);
    }
    return;
  }
  for (int64_t panel = 0; panel * Width < p.lanes; ++panel) {
    transpose_panel<Width>(p.from + panel * Width * p.stride, p.stride,
                           std::min(int64_t(Width), p.lanes - panel * Width), p.depth,
                           p.to + panel * p.panel_stride);
  }
}

template <class Source>
MatmulKernels<Source> kernels_of() {
  using T = Accumulator<Source>;
  constexpr int columns = int(tile_vectors * Reg<T>::width);
  return {tile_rows, columns, &pack<tile_rows, Source>, &pack<columns, Source>, &multiply<T>};
}

#undef UNROLL
