// What simd_test.cpp asks of each instruction set.

template <class T>
void test_exp(const T* x, T* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA { write(y + i, exp(read(x + i, lanes)), lanes); });
}

template <class T>
void test_narrow(const T* x, bf16* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA { write(y + i, read(x + i, lanes), lanes); });
}

template <class T>
void test_widen(const T* x, float* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA { write(y + i, read(x + i, lanes), lanes); });
}

// y[i] = x[i] < x[i + 1] ? x[i] : x[i + 1], then rounded.
template <class T>
void test_round_lower(const T* x, T* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec a = read(x + i, lanes), b = read(x + i + 1, lanes);
    write(y + i, Vec::round(Vec::if_less(a, b, a, b)), lanes);
  });
}

template <class T>
float test_total(const T* x, int64_t n) {
  return total(n, [&](int64_t i, auto lanes) IN_ISA {
    return keep(read(x + i, lanes) + Vec::all(1), lanes);
  });
}
