// Vectors of float for one instruction set (FIVEFOLD_ISA: 0 portable, 2 AVX2, 512 AVX-512).
// Included by each_isa.inl inside that set's namespace; no include guard on purpose.

// g++ forgets the pragma's target for a lambda in a template, so every such lambda that touches
// vectors says it again: [&](int64_t i, auto lanes) IN_ISA { … }. The options are each_isa.inl's.
#undef IN_ISA
#if defined(__clang__) || FIVEFOLD_ISA == 0
#define IN_ISA
#elif FIVEFOLD_ISA == 2
#define IN_ISA __attribute__((target("avx2,fma,f16c")))
#else
#define IN_ISA                                                       \
  __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl," \
                        "prefer-vector-width=512")))
#endif

// Before a short loop over an array of vectors, which stays in memory unless the loop disappears.
#undef UNROLL_ALL
#if defined(__clang__)
#define UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define UNROLL_ALL _Pragma("GCC unroll 16")
#endif

#if FIVEFOLD_ISA == 512
struct Vec {
  static constexpr int64_t width = 16;
  __m512 v;
  static Vec all(float x) { return {_mm512_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec load(const bf16* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  // The first `lanes` elements; the other lanes are 0 and are not touched in memory.
  static __mmask16 first(int64_t lanes) { return __mmask16((1u << lanes) - 1); }
  static Vec load(const float* p, int64_t lanes) {
    return {_mm512_maskz_loadu_ps(first(lanes), p)};
  }
  static Vec load(const bf16* p, int64_t lanes) {
    const __m256i half = _mm256_maskz_loadu_epi16(first(lanes), p);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  static Vec keep(Vec a, int64_t lanes) { return {_mm512_maskz_mov_ps(first(lanes), a.v)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, int64_t lanes) const { _mm512_mask_storeu_ps(p, first(lanes), v); }
  void stream(float* p) const { _mm512_stream_ps(p, v); }  // p aligned to 64 bytes
  void store(bf16* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), rounded());
  }
  void store(bf16* p, int64_t lanes) const {
    _mm256_mask_storeu_epi16(p, first(lanes), rounded());
  }
  void stream(bf16* p) const {  // p aligned to 32 bytes
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), rounded());
  }
  __m256i rounded() const {  // to bf16, ties to even, NaN kept
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
  }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  // The second operand when either is NaN.
  static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  // a < b ? then : otherwise; a NaN on either side is not less.
  static Vec if_less(Vec a, Vec b, Vec then, Vec otherwise) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), otherwise.v, then.v)};
  }
  static Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
  static Vec round(Vec a) { return {_mm512_roundscale_ps(a.v, 8)}; }
  // 2^n for integral n in [-126, 127].
  static Vec exp2i(Vec n) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127)), 23))};
  }
};
// Not friends inside the class: g++ forgets the target of those.
inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
// Half as many lanes of double, for sums that must not lose digits.
struct VecD {
  static constexpr int64_t width = 8;
  __m512d v;
  static VecD zero() { return {_mm512_setzero_pd()}; }
  static VecD low(Vec a) { return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v))}; }
  static VecD high(Vec a) { return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))}; }
  static VecD fma(VecD a, VecD b, VecD c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
};
// Not friends inside the class: g++ forgets the target of those.
inline VecD operator+(VecD a, VecD b) { return {_mm512_add_pd(a.v, b.v)}; }
#elif FIVEFOLD_ISA == 2
struct Vec {
  static constexpr int64_t width = 8;
  __m256 v;
  static Vec all(float x) { return {_mm256_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vec load(const bf16* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
  }
  // The first `lanes` elements; the other lanes are 0 and are not touched in memory.
  static __m256i first(int64_t lanes) {
    static constexpr int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones + 8 - lanes));
  }
  static Vec load(const float* p, int64_t lanes) { return {_mm256_maskload_ps(p, first(lanes))}; }
  static Vec load(const bf16* p, int64_t lanes) {
    bf16 padded[8] = {};
    std::memcpy(padded, p, size_t(lanes) * sizeof(bf16));
    return load(padded);
  }
  static Vec keep(Vec a, int64_t lanes) {
    return {_mm256_and_ps(a.v, _mm256_castsi256_ps(first(lanes)))};
  }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(float* p, int64_t lanes) const { _mm256_maskstore_ps(p, first(lanes), v); }
  void stream(float* p) const { _mm256_stream_ps(p, v); }  // p aligned to 32 bytes
  void store(bf16* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), rounded()); }
  void store(bf16* p, int64_t lanes) const {
    bf16 padded[8];
    store(padded);
    std::memcpy(p, padded, size_t(lanes) * sizeof(bf16));
  }
  void stream(bf16* p) const {  // p aligned to 16 bytes
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), rounded());
  }
  __m128i rounded() const {  // to bf16, ties to even, NaN kept
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    up = _mm256_blendv_epi8(up, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    const __m256i high = _mm256_srli_epi32(up, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
    return _mm256_castsi256_si128(packed);
  }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  // The second operand when either is NaN.
  static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
  // a < b ? then : otherwise; a NaN on either side is not less.
  static Vec if_less(Vec a, Vec b, Vec then, Vec otherwise) {
    return {_mm256_blendv_ps(otherwise.v, then.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
  }
  static Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
  static Vec round(Vec a) { return {_mm256_round_ps(a.v, 8)}; }
  static Vec exp2i(Vec n) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23))};
  }
};
// Not friends inside the class: g++ forgets the target of those.
inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
// Half as many lanes of double, for sums that must not lose digits.
struct VecD {
  static constexpr int64_t width = 4;
  __m256d v;
  static VecD zero() { return {_mm256_setzero_pd()}; }
  static VecD low(Vec a) { return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v))}; }
  static VecD high(Vec a) { return {_mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))}; }
  static VecD fma(VecD a, VecD b, VecD c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
};
// Not friends inside the class: g++ forgets the target of those.
inline VecD operator+(VecD a, VecD b) { return {_mm256_add_pd(a.v, b.v)}; }
#else
struct Vec {
  static constexpr int64_t width = 4;
  float v[4];
  template <class F>
  static Vec make(F f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  static Vec all(float x) { return {{x, x, x, x}}; }
  static Vec load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
  static Vec load(const bf16* p) {
    return make([&](int i) { return to_float(p[i]); });
  }
  // The first `lanes` elements; the other lanes are 0 and are not touched in memory.
  template <class T>
  static Vec load(const T* p, int64_t lanes) {
    T padded[4] = {};
    std::memcpy(padded, p, size_t(lanes) * sizeof(T));
    return load(padded);
  }
  static Vec keep(Vec a, int64_t lanes) {
    return make([&](int i) { return i < lanes ? a.v[i] : 0.0f; });
  }
  void store(float* p) const { std::memcpy(p, v, sizeof v); }
  template <class T>
  void store(T* p, int64_t lanes) const {
    T padded[4];
    store(padded);
    std::memcpy(p, padded, size_t(lanes) * sizeof(T));
  }
  template <class T>
  void stream(T* p) const {
    store(p);
  }
  void store(bf16* p) const {
    for (int i = 0; i < 4; ++i) p[i] = to_bf16(v[i]);
  }
  friend Vec operator+(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] + b.v[i]; });
  }
  friend Vec operator-(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] - b.v[i]; });
  }
  friend Vec operator*(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] * b.v[i]; });
  }
  friend Vec operator/(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] / b.v[i]; });
  }
  static Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
  // As the hardware does it: the second operand when either is NaN.
  static Vec max(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static Vec min(Vec a, Vec b) {
    return make([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  // a < b ? then : otherwise; a NaN on either side is not less.
  static Vec if_less(Vec a, Vec b, Vec then, Vec otherwise) {
    return make([&](int i) { return a.v[i] < b.v[i] ? then.v[i] : otherwise.v[i]; });
  }
  static Vec sqrt(Vec a) {
    return make([&](int i) { return std::sqrt(a.v[i]); });
  }
  // Adding 1.5 * 2^23 leaves no room for a fraction; floats from 2^22 on have none that matters
  // here. Calls no library and so can be vectorised.
  static Vec round(Vec a) {
    return make([&](int i) {
      const float shifted = a.v[i] + 0x1.8p23f;
      return std::fabs(a.v[i]) < 0x1p22f ? shifted - 0x1.8p23f : a.v[i];
    });
  }
  // The low bits of n + 1.5 * 2^23 are n itself.
  static Vec exp2i(Vec n) {
    return make([&](int i) {
      const float shifted = n.v[i] + 0x1.8p23f;
      uint32_t bits;
      std::memcpy(&bits, &shifted, sizeof bits);
      bits = (bits + 127) << 23;
      float power;
      std::memcpy(&power, &bits, sizeof power);
      return power;
    });
  }
};
// Half as many lanes of double, for sums that must not lose digits.
struct VecD {
  static constexpr int64_t width = 2;
  double v[2];
  static VecD zero() { return {{0, 0}}; }
  static VecD low(Vec a) { return {{a.v[0], a.v[1]}}; }
  static VecD high(Vec a) { return {{a.v[2], a.v[3]}}; }
  static VecD fma(VecD a, VecD b, VecD c) {
    return {{a.v[0] * b.v[0] + c.v[0], a.v[1] * b.v[1] + c.v[1]}};
  }
  friend VecD operator+(VecD a, VecD b) { return {{a.v[0] + b.v[0], a.v[1] + b.v[1]}}; }
  void store(double* p) const { std::memcpy(p, v, sizeof v); }
};
#endif

// The lanes' sum and maximum, always in the same order.
inline float sum(Vec a) {
  float lanes[Vec::width];
  a.store(lanes);
  for (int64_t half = Vec::width / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
inline float highest(Vec a) {
  float lanes[Vec::width];
  a.store(lanes);
  float top = lanes[0];
  for (int64_t i = 1; i < Vec::width; ++i) top = lanes[i] > top ? lanes[i] : top;
  return top;
}

inline double sum(VecD a) {
  double lanes[VecD::width];
  a.store(lanes);
  for (int64_t half = VecD::width / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// A whole vector, or its first lanes where a row ends: the `lanes` that each_vec hands out.
struct All {};
template <class T>
inline Vec read(const T* p, All) {
  return Vec::load(p);
}
template <class T>
inline Vec read(const T* p, int64_t lanes) {
  return Vec::load(p, lanes);
}
template <class T>
inline void write(T* p, Vec a, All) {
  a.store(p);
}
template <class T>
inline void write(T* p, Vec a, int64_t lanes) {
  a.store(p, lanes);
}
inline Vec keep(Vec a, All) { return a; }
inline Vec keep(Vec a, int64_t lanes) { return Vec::keep(a, lanes); }

// body(i, lanes) for the vectors that cover [0, n).
template <class Body>
inline void each_vec(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + Vec::width <= n; i += Vec::width) body(i, All{});
  if (i < n) body(i, n - i);
}

// Orders streamed stores before whatever tells other threads that they are done.
inline void end_of_stream() {
#if FIVEFOLD_ISA != 0
  _mm_sfence();
#endif
}

// The sum of term(i, lanes) over [0, n), in an order that depends on n alone. The term of a partial
// vector must be 0 in the lanes beyond it.
template <class Term>
inline float total(int64_t n, const Term& term) {
  constexpr int64_t w = Vec::width;
  Vec a = Vec::all(0), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a = a + term(i, All{});
    b = b + term(i + w, All{});
    c = c + term(i + 2 * w, All{});
    d = d + term(i + 3 * w, All{});
  }
  for (; i + w <= n; i += w) a = a + term(i, All{});
  if (i < n) b = b + term(i, n - i);
  return sum((a + b) + (c + d));
}

// e^x, within 2 units in the last place; 0 below -87.3, e^88.3 above 88.3 and e^NaN = NaN.
// Cody-Waite reduction by ln 2 in two parts, then a degree-6 polynomial (Cephes expf).
inline Vec exp(Vec x) {
  // max and min give their second operand when one is NaN, so that x comes through.
  const Vec clamped = Vec::min(Vec::all(88.3f), Vec::max(Vec::all(-87.3f), x));
  const Vec n = Vec::round(clamped * Vec::all(1.44269504088896341f));
  Vec r = Vec::fma(n, Vec::all(-0.693359375f), clamped);
  r = Vec::fma(n, Vec::all(2.12194440e-4f), r);
  Vec p = Vec::all(1.9875691500e-4f);
  p = Vec::fma(p, r, Vec::all(1.3981999507e-3f));
  p = Vec::fma(p, r, Vec::all(8.3334519073e-3f));
  p = Vec::fma(p, r, Vec::all(4.1665795894e-2f));
  p = Vec::fma(p, r, Vec::all(1.6666665459e-1f));
  p = Vec::fma(p, r, Vec::all(5.0000001201e-1f));
  p = Vec::fma(p, r * r, r + Vec::all(1.0f));
  return Vec::if_less(x, Vec::all(-87.3f), Vec::all(0), p * Vec::exp2i(n));
}

// 1 / (1 + e^-x), also the exact form of (1 + tanh(x/2)) / 2: no cancellation anywhere.
inline Vec sigmoid(Vec x) { return Vec::all(1) / (Vec::all(1) + exp(Vec::all(0) - x)); }
