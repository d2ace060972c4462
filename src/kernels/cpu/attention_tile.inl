// What attention's kernels are made of: vectors of double, transposition, packing, and the products
// of tiles. Included inside each instruction set's namespace (each_isa.inl).

// Doubles, through the compiler's vectors: right and decent, not tuned.
struct Wide {
  static constexpr int64_t width = FIVEFOLD_ISA == 512 ? 8 : FIVEFOLD_ISA == 2 ? 4 : 2;
  typedef double Raw __attribute__((vector_size(width * 8)));  // NOLINT(modernize-use-using)
  Raw v;
  static Wide all(double x) { return {x - Raw{}}; }
  static Wide load(const double* p) {
    Wide a;
    std::memcpy(&a.v, p, sizeof a.v);
    return a;
  }
  void store(double* p) const { std::memcpy(p, &v, sizeof v); }
  static Wide fma(Wide a, Wide b, Wide c) { return {a.v * b.v + c.v}; }
  // As Vec's: the second operand when either is NaN.
  static Wide max(Wide a, Wide b) {
    for (int64_t i = 0; i < width; ++i) b.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return b;
  }
};
// Not friends inside the class: g++ forgets the target of those.
inline Wide operator+(Wide a, Wide b) { return {a.v + b.v}; }
inline Wide operator-(Wide a, Wide b) { return {a.v - b.v}; }
inline Wide operator*(Wide a, Wide b) { return {a.v * b.v}; }
inline Wide exp(Wide a) {
  for (int64_t i = 0; i < Wide::width; ++i) a.v[i] = std::exp(a.v[i]);
  return a;
}

template <class T>
struct VectorOf {
  using V = Vec;
};
template <>
struct VectorOf<double> {
  using V = Wide;
};
template <class V>
struct ElementOf {
  using E = float;
};
template <>
struct ElementOf<Wide> {
  using E = double;
};
template <class V>
using Element = typename ElementOf<V>::E;

// from <= at < to ? yes : no, lane by lane.
inline Wide within(Wide from, Wide to, double at, Wide yes, Wide no) {
  for (int64_t i = 0; i < Wide::width; ++i) {
    if (from.v[i] <= at && at < to.v[i]) no.v[i] = yes.v[i];
  }
  return no;
}
// a0 b0 a1 b1 ..., its first and second half.
inline void interleave(Vec a, Vec b, Vec& low, Vec& high);

#if FIVEFOLD_ISA == 512
inline Vec within(Vec from, Vec to, float at, Vec yes, Vec no) {
  const __m512 key = _mm512_set1_ps(at);
  const __mmask16 inside =
      _mm512_cmp_ps_mask(from.v, key, _CMP_LE_OQ) & _mm512_cmp_ps_mask(key, to.v, _CMP_LT_OQ);
  return {_mm512_mask_blend_ps(inside, no.v, yes.v)};
}
inline void interleave(Vec a, Vec b, Vec& low, Vec& high) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  low.v = _mm512_permutex2var_ps(a.v, first, b.v);
  high.v = _mm512_permutex2var_ps(a.v, _mm512_add_epi32(first, _mm512_set1_epi32(8)), b.v);
}
#elif FIVEFOLD_ISA == 2
inline Vec within(Vec from, Vec to, float at, Vec yes, Vec no) {
  const __m256 key = _mm256_set1_ps(at);
  const __m256 inside =
      _mm256_and_ps(_mm256_cmp_ps(from.v, key, _CMP_LE_OQ), _mm256_cmp_ps(key, to.v, _CMP_LT_OQ));
  return {_mm256_blendv_ps(no.v, yes.v, inside)};
}
inline void interleave(Vec a, Vec b, Vec& low, Vec& high) {
  const __m256 x = _mm256_unpacklo_ps(a.v, b.v), y = _mm256_unpackhi_ps(a.v, b.v);
  low.v = _mm256_permute2f128_ps(x, y, 0x20);
  high.v = _mm256_permute2f128_ps(x, y, 0x31);
}
#else
inline Vec within(Vec from, Vec to, float at, Vec yes, Vec no) {
  for (int i = 0; i < 4; ++i) {
    if (from.v[i] <= at && at < to.v[i]) no.v[i] = yes.v[i];
  }
  return no;
}
inline void interleave(Vec a, Vec b, Vec& low, Vec& high) {
  low = {{a.v[0], b.v[0], a.v[1], b.v[1]}};
  high = {{a.v[2], b.v[2], a.v[3], b.v[3]}};
}
#endif

// to[c][r] = from[r][c] for a block of width x width. Interleaving row i with row i + width/2 turns
// the bits of (row, column) by one place; log2(width) turns swap row and column.
inline void transpose_block(Vec, const float* from, int64_t from_stride, float* to,
                            int64_t to_stride) {
  constexpr int n = int(Vec::width);
  Vec a[n], b[n];
  UNROLL for (int i = 0; i < n; ++i) a[i] = Vec::load(from + i * from_stride);
  UNROLL for (int turned = 1; turned < n; turned *= 2) {
    UNROLL for (int i = 0; i < n / 2; ++i) {
      interleave(a[i], a[i + n / 2], b[2 * i], b[2 * i + 1]);
    }
    UNROLL for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  UNROLL for (int i = 0; i < n; ++i) a[i].store(to + i * to_stride);
}
inline void transpose_block(Wide, const double* from, int64_t from_stride, double* to,
                            int64_t to_stride) {
  for (int64_t i = 0; i < Wide::width; ++i) {
    for (int64_t j = 0; j < Wide::width; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// The sum of each of the rows a[0], ..., a[width - 1], in the lane of its number.
inline Vec row_sums(Vec* a) {
  for (int64_t n = Vec::width / 2; n > 0; n /= 2) {
    for (int64_t i = 0; i < n; ++i) {
      Vec low, high;
      interleave(a[i], a[i + n], low, high);
      a[i] = low + high;
    }
  }
  return a[0];
}
inline Wide row_sums(Wide* a) {
  Wide sums{};
  for (int64_t i = 0; i < Wide::width; ++i) {
    for (int64_t lane = 0; lane < Wide::width; ++lane) sums.v[i] += a[i].v[lane];
  }
  return sums;
}

// Rows widened, times `scale`, padded with zeros to [padded_rows, padded_dim].
template <class V, class T>
void pack_rows(const T* from, int64_t stride, int64_t rows, int64_t dim, Element<V> scale,
               Element<V>* to, int64_t padded_rows) {
  const int64_t padded_dim = round_up(dim, row_padding);
  for (int64_t r = 0; r < rows; ++r, from += stride, to += padded_dim) {
    int64_t d = 0;
    for (; d + V::width <= dim; d += V::width) (V::load(from + d) * V::all(scale)).store(to + d);
    for (; d < dim; ++d) to[d] = load(from[d]) * scale;
    for (; d < padded_dim; ++d) to[d] = 0;
  }
  std::memset(to, 0, size_t((padded_rows - rows) * padded_dim) * sizeof *to);
}

// [padded_rows, padded_dim] to [padded_dim, tile_size].
template <class V>
void transpose(const Element<V>* rows, int64_t padded_rows, int64_t padded_dim, Element<V>* to) {
  for (int64_t r = 0; r < padded_rows; r += V::width) {
    for (int64_t d = 0; d < padded_dim; d += V::width) {
      transpose_block(V{}, rows + r * padded_dim + d, padded_dim, to + d * tile_size + r,
                      tile_size);
    }
  }
}

// to[d] = scale * from[d], narrowed.
template <class V, class T>
void store_row(const Element<V>* from, int64_t dim, Element<V> scale, T* to) {
  int64_t d = 0;
  for (; d + V::width <= dim; d += V::width) (V::load(from + d) * V::all(scale)).store(to + d);
  for (; d < dim; ++d) fivefold::store(to[d], from[d] * scale);
}

// The slot of tile `tile` of (batch, group), packed if it is not there yet.
template <class V, class T>
int64_t hold_tile(const AttentionOperands<T>& args, int64_t batch, int64_t group, int64_t tile,
                  KeyTiles<Element<V>>& tiles) {
  const int64_t slot = tile % tiles.slots;
  if (tiles.held[slot] == tile) return slot;
  tiles.held[slot] = tile;
  const int64_t first = tile * tile_size;
  const int64_t count = std::min(tile_size, args.size.keys - first);
  const int64_t padded = round_up(count, row_padding);
  pack_rows<V>(args.k.at(batch, first, group), args.k.token, count, args.size.dim, 1,
               tiles.keys + slot * tiles.tile_elements, padded);
  pack_rows<V>(args.v.at(batch, first, group), args.v.token, count, args.size.dim, 1,
               tiles.values + slot * tiles.tile_elements, padded);
  return slot;
}

// Rows of a product that live in registers, beside up to three vectors of columns.
constexpr int micro_rows = FIVEFOLD_ISA == 512 ? 8 : 4;

// c[micro_rows][columns vectors] = decay[row] * c + a b, or a b alone without decay. a(row, k) is
// a[row * a_stride + k], or a[k * a_stride + row] when transposed.
template <class V, int columns, bool transposed>
void micro(int64_t depth, const Element<V>* a, int64_t a_stride, const Element<V>* b,
           int64_t b_stride, Element<V>* c, int64_t c_stride, const Element<V>* decay) {
  V sum[micro_rows][columns];
  if (decay != nullptr) {
    UNROLL for (int r = 0; r < micro_rows; ++r) {
      UNROLL for (int v = 0; v < columns; ++v) {
        sum[r][v] = V::load(c + r * c_stride + v * V::width) * V::all(decay[r]);
      }
    }
  } else {
    UNROLL for (int r = 0; r < micro_rows; ++r) {
      UNROLL for (int v = 0; v < columns; ++v) sum[r][v] = V::all(0);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    V right[columns];
    UNROLL for (int v = 0; v < columns; ++v) right[v] = V::load(b + v * V::width);
    UNROLL for (int r = 0; r < micro_rows; ++r) {
      const V left = V::all(transposed ? a[r] : a[r * a_stride]);
      UNROLL for (int v = 0; v < columns; ++v) sum[r][v] = V::fma(left, right[v], sum[r][v]);
    }
    a += transposed ? a_stride : 1;
    b += b_stride;
  }
  UNROLL for (int r = 0; r < micro_rows; ++r) {
    UNROLL for (int v = 0; v < columns; ++v) sum[r][v].store(c + r * c_stride + v * V::width);
  }
}

// How many vectors of columns to take next: three, but never a single one if that can be helped.
constexpr int64_t next_columns(int64_t left) {
  return left == 2 || left == 4 ? 2 : left == 1 ? 1 : 3;
}

template <class V, bool transposed>
void micro_of(int64_t columns, int64_t depth, const Element<V>* a, int64_t a_stride,
              const Element<V>* b, int64_t b_stride, Element<V>* c, int64_t c_stride,
              const Element<V>* decay) {
  if (columns == 3) {
    micro<V, 3, transposed>(depth, a, a_stride, b, b_stride, c, c_stride, decay);
  } else if (columns == 2) {
    micro<V, 2, transposed>(depth, a, a_stride, b, b_stride, c, c_stride, decay);
  } else {
    micro<V, 1, transposed>(depth, a, a_stride, b, b_stride, c, c_stride, decay);
  }
}

// to[key][query] = sum over d of rows[key][d] columns[d][query], where the tile is visible.
template <class V>
void score_tile(const TileMask& mask, const Element<V>* rows, const Element<V>* columns,
                int64_t dim, Element<V>* to) {
  const int64_t padded_dim = round_up(dim, row_padding);
  const int64_t vectors = mask.queries.padded() / V::width;
  for (int64_t v = 0, n = 0; v < vectors; v += n) {
    n = next_columns(vectors - v);
    const int64_t q = v * V::width;
    const KeyRange keys = mask.keys_of(q, n * V::width, micro_rows);
    for (int64_t j = keys.from; j < keys.to; j += micro_rows) {
      micro_of<V, false>(n, dim, rows + j * padded_dim, padded_dim, columns + q, tile_size,
                         to + j * tile_size + q, tile_size, nullptr);
    }
  }
}

// to[query][d] = decay[query] * to + sum over keys of tile[key][query] rows[key][d].
template <class V>
void query_tile_product(const TileMask& mask, const Element<V>* tile, const Element<V>* rows,
                        int64_t padded_dim, Element<V>* to, const Element<V>* decay) {
  for (int64_t q = 0; q < mask.queries.padded(); q += micro_rows) {
    const KeyRange keys = mask.keys_of(q, micro_rows, 1);
    if (keys.from >= keys.to && decay != nullptr) continue;  // their decay is 1
    for (int64_t v = 0, n = 0; v < padded_dim / V::width; v += n) {
      n = next_columns(padded_dim / V::width - v);
      const int64_t d = v * V::width;
      micro_of<V, true>(n, keys.to - keys.from, tile + keys.from * tile_size + q, tile_size,
                        rows + keys.from * padded_dim + d, padded_dim, to + q * padded_dim + d,
                        padded_dim, decay == nullptr ? nullptr : decay + q);
    }
  }
}

// to[key][d] += sum over queries of tile[key][query] rows[query][d].   ones: micro_rows of 1.
template <class V>
void key_tile_product(const TileMask& mask, const Element<V>* tile, const Element<V>* rows,
                      int64_t padded_dim, Element<V>* to, const Element<V>* ones) {
  for (int64_t j = 0; j < mask.padded_keys; j += micro_rows) {
    const KeyRange queries = mask.queries_of(j, micro_rows);
    if (queries.from >= queries.to) continue;
    for (int64_t v = 0, n = 0; v < padded_dim / V::width; v += n) {
      n = next_columns(padded_dim / V::width - v);
      const int64_t d = v * V::width;
      micro_of<V, false>(n, queries.to - queries.from, tile + j * tile_size + queries.from,
                         tile_size, rows + queries.from * padded_dim + d, padded_dim,
                         to + j * padded_dim + d, padded_dim, ones);
    }
  }
}

// Clears rows [0, from) and [to, keys) of one column of vectors.
template <class V>
void clear_outside(KeyRange range, int64_t keys, Element<V>* column) {
  for (int64_t j = 0; j < range.from; ++j) V::all(0).store(column + j * tile_size);
  for (int64_t j = range.to; j < keys; ++j) V::all(0).store(column + j * tile_size);
}

// As many 64-bit numbers as Wide has lanes, and half as wide ones.
typedef uint64_t Words __attribute__((vector_size(Wide::width * 8)));      // NOLINT
typedef uint32_t HalfWords __attribute__((vector_size(Wide::width * 4)));  // NOLINT

// Products of the low 32 bits of each lane.
inline Words low_product(Words a, uint32_t b) {
#if FIVEFOLD_ISA == 512
  return Words(_mm512_mul_epu32(__m512i(a), _mm512_set1_epi64(b)));
#elif FIVEFOLD_ISA == 2
  return Words(_mm256_mul_epu32(__m256i(a), _mm256_set1_epi64x(b)));
#else
  return (a & 0xffffffff) * b;
#endif
}

// Random::block (base/random.hpp) of several indices at once; the high halves of the lanes are left
// as they come.
inline void philox_lanes(Words index, const std::array<uint64_t, 2>& seed_and_stream, Words* c) {
  uint32_t key[2] = {uint32_t(seed_and_stream[0]), uint32_t(seed_and_stream[0] >> 32)};
  c[0] = index;
  c[1] = index >> 32;
  c[2] = Words{} + uint32_t(seed_and_stream[1]);
  c[3] = Words{} + (seed_and_stream[1] >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words a = low_product(c[0], 0xD2511F53), b = low_product(c[2], 0xCD9E8D57);
    c[0] = (b >> 32) ^ c[1] ^ key[0];
    c[1] = b;
    c[2] = (a >> 32) ^ c[3] ^ key[1];
    c[3] = a;
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
}

// to[lane] = the low half of the word is below the threshold ? 0 : scale.
inline void store_kept(Words words, uint32_t threshold, double scale, float* to) {
  const HalfWords low = __builtin_convertvector(words, HalfWords);
  const HalfWords kept = HalfWords(low >= HalfWords{} + threshold);
  const HalfWords bits = kept & (HalfWords{} + std::bit_cast<uint32_t>(float(scale)));
  std::memcpy(to, &bits, sizeof bits);
}
inline void store_kept(Words words, uint32_t threshold, double scale, double* to) {
  const Words kept = Words((words & 0xffffffff) >= Words{} + threshold);
  const Words bits = kept & (Words{} + std::bit_cast<uint64_t>(scale));
  std::memcpy(to, &bits, sizeof bits);
}

// keep[key][query] = what dropout multiplies the probability by, where the tile is visible.
template <class V>
void dropout_tile(const DropoutTile& dropout, const TileMask& mask, Element<V>* keep) {
  for (int64_t q = 0; q < mask.queries.padded(); q += V::width) {
    const KeyRange keys = mask.keys_of(q, V::width, 4);
    for (int64_t i = q; i < q + V::width; i += Wide::width) {
      Words row;
      std::memcpy(&row, dropout.rows + i, sizeof row);
      for (int64_t j = keys.from; j < keys.to; j += 4) {
        Words words[4];
        philox_lanes(row + uint64_t((mask.first + j) / 4), dropout.seed_and_stream, words);
        for (int64_t w = 0; w < 4; ++w) {
          store_kept(words[w], dropout.threshold, dropout.scale, keep + (j + w) * tile_size + i);
        }
      }
    }
  }
}

// tile *= keep, where the tile is visible.
template <class V>
void apply_dropout(const TileMask& mask, const Element<V>* keep, Element<V>* tile) {
  for (int64_t q = 0; q < mask.queries.padded(); q += V::width) {
    const KeyRange keys = mask.keys_of(q, V::width, 4);
    for (int64_t j = keys.from; j < keys.to; ++j) {
      const int64_t at = j * tile_size + q;
      (V::load(tile + at) * V::load(keep + at)).store(tile + at);
    }
  }
}
