#include "kernels/cpu/peak.inl"  // the plain sweep

// A sweep with the loads and stores of AdamW past the caches, for comparison with plain ones.
template <class T>
void sweep_streamed(T* w, const T* g, T* m, T* v, int64_t count) {
  const Vec small = Vec::all(0.125f);
  for (int64_t i = 0; i < count; i += Vec::width) {
    const Vec gradient = Vec::load(g + i);
    const Vec first = Vec::fma(Vec::load(m + i), small, gradient);
    const Vec second = Vec::fma(Vec::load(v + i), small, gradient);
    first.stream(m + i);
    second.stream(v + i);
    Vec::fma(first, second, Vec::load(w + i)).stream(w + i);
  }
}
