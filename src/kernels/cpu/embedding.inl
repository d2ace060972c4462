// Embedding: copies and adds of rows.

template <class T>
void embedding_forward(const int32_t* ids, Rows<const T> table, Rows<T> y, bool accumulate,
                       int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* from = table[ids[n]];
    T* to = y[n];
    if (!accumulate) {
      std::memcpy(to, from, size_t(y.columns) * sizeof(T));
    } else {
      each_vec(y.columns, [&](int64_t i, auto lanes) IN_ISA {
        write(to + i, read(to + i, lanes) + read(from + i, lanes), lanes);
      });
    }
  }
}

template <class T>
void embedding_backward(const int32_t* ids, Rows<const T> dy, Rows<float> dtable, int64_t begin,
                        int64_t end) {
  for (int64_t n = 0; n < dy.count; ++n) {
    const T* from = dy[n] + begin;
    float* to = dtable[ids[n]] + begin;
    each_vec(end - begin, [&](int64_t i, auto lanes) IN_ISA {
      write(to + i, read(to + i, lanes) + read(from + i, lanes), lanes);
    });
  }
}
