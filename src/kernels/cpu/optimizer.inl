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

// Four quarters side by side: four streams keep more of memory's channels busy than one.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  VecD low[4], high[4];
  UNROLL_ALL for (int k = 0; k < 4; ++k) low[k] = high[k] = VecD::zero();
  const int64_t quarter = n / 4 / Vec::width * Vec::width;
  for (int64_t i = 0; i < quarter; i += Vec::width) {
    UNROLL_ALL for (int k = 0; k < 4; ++k) {
      const Vec p = Vec::load(x + k * quarter + i);
      low[k] = VecD::fma(VecD::low(p), VecD::low(p), low[k]);
      high[k] = VecD::fma(VecD::high(p), VecD::high(p), high[k]);
    }
  }
  each_vec(n - 4 * quarter, [&](int64_t i, auto lanes) IN_ISA {
    const Vec p = read(x + 4 * quarter + i, lanes);
    low[0] = VecD::fma(VecD::low(p), VecD::low(p), low[0]);
    high[0] = VecD::fma(VecD::high(p), VecD::high(p), high[0]);
  });
  UNROLL_ALL for (int k = 0; k < 4; ++k) low[k] = low[k] + high[k];
  return sum((low[0] + low[1]) + (low[2] + low[3]));
}
