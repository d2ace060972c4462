// Conversions between float and bf16, and dropout.

// An output of this many bytes will not be in the cache when somebody reads it: streamed stores
// spare the read of what is overwritten.
constexpr int64_t streamed_bytes = int64_t{8} << 20;

template <class Pair>
void convert(const typename Pair::From* x, typename Pair::To* y, bool accumulate, int64_t n) {
  using To = typename Pair::To;
  const auto copy = [&](int64_t i, auto lanes) IN_ISA { write(y + i, read(x + i, lanes), lanes); };
  if (accumulate) {
    each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
      write(y + i, read(y + i, lanes) + read(x + i, lanes), lanes);
    });
  } else if (n * int64_t(sizeof(To)) >= streamed_bytes) {
    constexpr int64_t unit = Vec::width * int64_t(sizeof(To));
    const int64_t past = int64_t(reinterpret_cast<uintptr_t>(y) % uintptr_t(unit));
    const int64_t head = past == 0 ? 0 : (unit - past) / int64_t(sizeof(To));
    if (head > 0) copy(0, head);
    int64_t i = head;
    for (; i + Vec::width <= n; i += Vec::width) Vec::load(x + i).stream(y + i);
    if (i < n) copy(i, n - i);
    end_of_stream();
  } else if constexpr (std::is_same_v<typename Pair::From, To>) {
    std::memcpy(y, x, size_t(n) * sizeof *x);
  } else {
    each_vec(n, copy);
  }
}

template <class T>
void dropout(Rows<T> x, DropoutMask mask, const int64_t* token_index, int64_t begin, int64_t end) {
  constexpr int64_t piece = 256;
  float factor[piece];
  const float scale = float(mask.scale);
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t first = 0; first < x.columns; first += piece) {
      const int64_t count = x.columns - first < piece ? x.columns - first : piece;
      for (int64_t c = 0; c < count; c += 4) {
        const Philox words =
            mask.random.block(DropoutMask::block_of(token_index[n], first + c));
        for (int64_t k = 0; k < 4; ++k) {
          factor[c + k] = words[size_t(k)] >= mask.threshold ? scale : 0.0f;
        }
      }
      T* row = x[n] + first;
      each_vec(count, [&](int64_t i, auto lanes) IN_ISA {
        write(row + i, read(row + i, lanes) * read(factor + i, lanes), lanes);
      });
    }
  }
}
