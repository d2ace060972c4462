// AdamW in one pass, and the sum of squares in double.

template <class T>
void adamw(const AdamFactors& f, T* w, const T* g, T* m, T* v, bf16* low, int64_t n) {
  const Vec grad_scale = Vec::all(float(f.grad_scale));
  const Vec beta1 = Vec::all(float(f.beta1)), rest1 = Vec::all(float(1 - f.beta1));
  const Vec beta2 = Vec::all(float(f.beta2)), rest2 = Vec::all(float(1 - f.beta2));
  const Vec step_size = Vec::all(float(f.step_size)), root_scale = Vec::all(float(f.root_scale));
  const Vec eps = Vec::all(float(f.eps)), decay = Vec::all(float(f.decay));
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec gradient = read(g + i, lanes) * grad_scale;
    const Vec mean = Vec::fma(beta1, read(m + i, lanes), rest1 * gradient);
    const Vec square = Vec::fma(beta2, read(v + i, lanes), rest2 * gradient * gradient);
    write(m + i, mean, lanes);
    write(v + i, square, lanes);
    const Vec update = step_size * mean / Vec::fma(Vec::sqrt(square), root_scale, eps);
    const Vec weight = read(w + i, lanes);
    const Vec next = weight - Vec::fma(decay, weight, update);
    write(w + i, next, lanes);
    if (low != nullptr) write(low + i, next, lanes);
  });
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  VecD a = VecD::zero(), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 2 * Vec::width <= n; i += 2 * Vec::width) {
    const Vec p = Vec::load(x + i), q = Vec::load(x + i + Vec::width);
    a = VecD::fma(VecD::low(p), VecD::low(p), a);
    b = VecD::fma(VecD::high(p), VecD::high(p), b);
    c = VecD::fma(VecD::low(q), VecD::low(q), c);
    d = VecD::fma(VecD::high(q), VecD::high(q), d);
  }
  each_vec(n - i, [&](int64_t k, auto lanes) IN_ISA {
    const Vec p = read(x + i + k, lanes);
    a = VecD::fma(VecD::low(p), VecD::low(p), a);
    b = VecD::fma(VecD::high(p), VecD::high(p), b);
  });
  return sum((a + b) + (c + d));
}
