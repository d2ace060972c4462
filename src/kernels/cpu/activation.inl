// SwiGLU and GELU in vectors of float.

template <class T>
void swiglu_forward(const T* gate, const T* up, T* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec g = read(gate + i, lanes);
    write(y + i, g * sigmoid(g) * read(up + i, lanes), lanes);
  });
}

template <class T>
void swiglu_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t n) {
  const Vec one = Vec::all(1);
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec g = read(gate + i, lanes), u = read(up + i, lanes), d = read(dy + i, lanes);
    const Vec s = sigmoid(g);
    write(dgate + i, d * u * s * Vec::fma(g, one - s, one), lanes);
    write(dup + i, d * g * s, lanes);
  });
}

// The argument of the sigmoid that gelu multiplies x with: 2 sqrt(2/pi) (x + 0.044715 x^3), as
// (1 + tanh(u)) / 2 = sigmoid(2u).
inline Vec gelu_argument(Vec x, Vec squared) {
  return x * Vec::fma(Vec::all(2 * 0.79788456f * 0.044715f), squared, Vec::all(2 * 0.79788456f));
}

template <class T>
void gelu_forward(const T* x, T* y, int64_t n) {
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec v = read(x + i, lanes);
    write(y + i, v * sigmoid(gelu_argument(v, v * v)), lanes);
  });
}

template <class T>
void gelu_backward(const T* dy, const T* x, T* dx, int64_t n) {
  const Vec one = Vec::all(1);
  each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
    const Vec v = read(x + i, lanes);
    const Vec squared = v * v;
    const Vec s = sigmoid(gelu_argument(v, squared));
    const Vec slope = Vec::fma(Vec::all(6 * 0.79788456f * 0.044715f), squared,
                               Vec::all(2 * 0.79788456f));
    write(dx + i, read(dy + i, lanes) * s * Vec::fma(v * (one - s), slope, one), lanes);
  });
}
