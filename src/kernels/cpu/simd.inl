// Vectors of float for one instruction set (FIVEFOLD_ISA: 0 portable, 2 AVX2, 512 AVX-512).
// Included by each_isa.inl inside that set's namespace; no include guard on purpose.

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
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void stream(float* p) const { _mm512_stream_ps(p, v); }  // p aligned to 64 bytes
  void store(bf16* p) const {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }
  friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
  static Vec round(Vec a) { return {_mm512_roundscale_ps(a.v, 8)}; }
  // 2^n for integral n in [-126, 127].
  static Vec exp2i(Vec n) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127)), 23))};
  }
};
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
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void stream(float* p) const { _mm256_stream_ps(p, v); }  // p aligned to 32 bytes
  void store(bf16* p) const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    const __m256i high = _mm256_srli_epi32(rounded, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  friend Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
  static Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
  static Vec round(Vec a) { return {_mm256_round_ps(a.v, 8)}; }
  static Vec exp2i(Vec n) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23))};
  }
};
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
  void store(float* p) const { std::memcpy(p, v, sizeof v); }
  void stream(float* p) const { store(p); }
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
  static Vec sqrt(Vec a) {
    return make([&](int i) { return std::sqrt(a.v[i]); });
  }
  static Vec round(Vec a) {
    return make([&](int i) { return std::nearbyint(a.v[i]); });
  }
  static Vec exp2i(Vec n) {
    return make([&](int i) { return std::ldexp(1.0f, int(n.v[i])); });
  }
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

// e^x, within 2 units in the last place; 0 below -87.3, e^88.3 above 88.3 and e^NaN = NaN.
// Cody-Waite reduction by ln 2 in two parts, then a degree-6 polynomial (Cephes expf).
inline Vec exp(Vec x) {
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
  return p * Vec::exp2i(n);
}
