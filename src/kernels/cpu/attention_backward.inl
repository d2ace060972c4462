// The backward over tiles, for one instruction set (each_isa.inl).

#include "kernels/cpu/attention_tile.inl"

// Of a column of vectors: scores become probabilities P, and dP becomes dS = P (dP - delta).
template <class V, bool masked>
void softmax_backward_column(KeyRange keys, V from, V to, V lse, V delta, Element<V>* scores,
                             Element<V>* gradients) {
  for (int64_t j = keys.from; j < keys.to; ++j) {
    V p = exp(V::load(scores + j * tile_size) - lse);
    if constexpr (masked) p = within(from, to, Element<V>(j), p, V::all(0));
    p.store(scores + j * tile_size);
    V ds = p * (V::load(gradients + j * tile_size) - delta);
    // A masked dP may be stale memory: p = 0 does not make it 0.
    if constexpr (masked) ds = within(from, to, Element<V>(j), ds, V::all(0));
    ds.store(gradients + j * tile_size);
  }
}

template <class V>
void softmax_backward_tile(const TileMask& mask, BackwardScratch<Element<V>>& s) {
  using E = Element<V>;
  for (int64_t q = 0; q < mask.queries.padded(); q += V::width) {
    const KeyRange keys = mask.keys_of(q, V::width, 4);
    const V lse = V::load(s.lse + q), delta = V::load(s.delta + q);
    if (mask.all) {
      softmax_backward_column<V, false>(keys, V{}, V{}, lse, delta, s.probabilities + q,
                                        s.gradients + q);
      continue;
    }
    for (int64_t i = q; i < q + V::width; ++i) s.from[i] = E(mask.from(i)), s.to[i] = E(mask.to(i));
    softmax_backward_column<V, true>(keys, V::load(s.from + q), V::load(s.to + q), lse, delta,
                                     s.probabilities + q, s.gradients + q);
    clear_outside<V>(keys, mask.padded_keys, s.probabilities + q);
    clear_outside<V>(keys, mask.padded_keys, s.gradients + q);
  }
}

// delta[query] = sum over d of dout * out, from packed rows of dout.
template <class V, class T>
void row_deltas(const AttentionOperands<T>& args, int64_t batch, int64_t head,
                const QueryTile& queries, const Element<V>* dout, Element<V>* delta) {
  const int64_t dim = args.size.dim, whole = dim / V::width * V::width;
  for (int64_t i = 0; i < queries.padded(); i += V::width) {
    V part[V::width];
    Element<V> tail[V::width];
    for (int64_t r = 0; r < V::width; ++r) {
      part[r] = V::all(0);
      tail[r] = 0;
      if (i + r >= queries.count) continue;
      const T* out = args.saved_out.at(batch, queries.first + i + r, head);
      const Element<V>* row = dout + (i + r) * args.padded_dim();
      for (int64_t d = 0; d < whole; d += V::width) {
        part[r] = V::fma(V::load(row + d), V::load(out + d), part[r]);
      }
      for (int64_t d = whole; d < dim; ++d) tail[r] += row[d] * load(out[d]);
    }
    (row_sums(part) + V::load(tail)).store(delta + i);
  }
}

template <class V, class T>
void load_queries(const AttentionOperands<T>& args, int64_t batch, int64_t head,
                  const QueryTile& queries, BackwardScratch<Element<V>>& s) {
  using E = Element<V>;
  const int64_t padded_dim = args.padded_dim(), dim = args.size.dim;
  pack_rows<V>(args.q.at(batch, queries.first, head), args.q.token, queries.count, dim,
               E(args.shape.scale), s.q_rows, queries.padded());
  transpose<V>(s.q_rows, queries.padded(), padded_dim, s.q_columns);
  pack_rows<V>(args.dout.at(batch, queries.first, head), args.dout.token, queries.count, dim, 1,
               s.dout_rows, queries.padded());
  transpose<V>(s.dout_rows, queries.padded(), padded_dim, s.dout_columns);
  row_deltas<V>(args, batch, head, queries, s.dout_rows, s.delta);
  const E* lse = args.saved_lse + args.lse_at(batch, head) + queries.first;
  for (int64_t i = 0; i < tile_size; ++i) {
    // Padding and queries that see nothing: any finite value, their probabilities are masked.
    s.lse[i] = i < queries.count && queries.from[i] < queries.to[i] ? lse[i] : E(0);
  }
}

// One tile of queries against its tiles of keys.
template <class V, class T>
void backward_tiles(const AttentionOperands<T>& args, const BackwardPart& part, int64_t head,
                    int64_t tile, BackwardScratch<Element<V>>& s) {
  using E = Element<V>;
  const QueryTile queries(args, part.batch, tile);
  const int64_t padded_dim = args.padded_dim(), dim = args.size.dim;
  const int64_t tiles_from = std::max(part.key_tiles.from, queries.keys.from / tile_size);
  const int64_t tiles_to = std::min(part.key_tiles.to, tiles_of(queries.keys.to));
  std::optional<DropoutTile> dropout;
  if (args.dropout != nullptr) dropout.emplace(*args.dropout, queries, part.batch, head);
  bool first = true;
  for (int64_t j = tiles_from; j < tiles_to; ++j) {
    const TileMask mask(queries, j, args.size.keys);
    if (!mask.any) continue;
    if (first) load_queries<V>(args, part.batch, head, queries, s);
    const int64_t slot = hold_tile<V>(args, part.batch, part.group, j, s.tiles);
    const E* keys = s.tiles.keys + slot * s.tiles.tile_elements;
    score_tile<V>(mask, keys, s.q_columns, dim, s.probabilities);
    score_tile<V>(mask, s.tiles.values + slot * s.tiles.tile_elements, s.dout_columns, dim,
                  s.gradients);
    if (dropout) {
      dropout_tile<V>(*dropout, mask, s.keep);
      apply_dropout<V>(mask, s.keep, s.gradients);
    }
    softmax_backward_tile<V>(mask, s);
    if (dropout) apply_dropout<V>(mask, s.keep, s.probabilities);
    if (part.key_gradient) {
      const int64_t at = (j - part.key_tiles.from) * tile_size * padded_dim;
      key_tile_product<V>(mask, s.probabilities, s.dout_rows, padded_dim, s.dv + at, s.ones);
      key_tile_product<V>(mask, s.gradients, s.q_rows, padded_dim, s.dk + at, s.ones);
    }
    if (part.query_gradient) {
      query_tile_product<V>(mask, s.gradients, keys, padded_dim, s.dq, first ? nullptr : s.ones);
    }
    first = false;
  }
  if (!part.query_gradient) return;
  if (first) std::memset(s.dq, 0, size_t(queries.count * padded_dim) * sizeof(E));
  for (int64_t i = 0; i < queries.count; ++i) {
    store_row<V>(s.dq + i * padded_dim, dim, E(args.shape.scale),
                 args.dq.at(part.batch, queries.first + i, head));
  }
}

template <class T>
void attention_backward_part(const AttentionOperands<T>& args, const BackwardPart& part,
                             Accumulator<T>* memory) {
  using V = typename VectorOf<T>::V;
  using A = Accumulator<T>;
  const int64_t key_tiles = part.key_tiles.to - part.key_tiles.from;
  const int64_t padded_dim = args.padded_dim(), dim = args.size.dim;
  Scratch<A> scratch(memory);
  BackwardScratch<A> s(scratch, key_tiles, part.key_gradient, padded_dim);
  std::fill(s.ones, s.ones + tile_size, A(1));
  if (part.key_gradient) {
    const size_t bytes = size_t(key_tiles * tile_size * padded_dim) * sizeof(A);
    std::memset(s.dk, 0, bytes);
    std::memset(s.dv, 0, bytes);
  }
  for (int64_t head = part.head_from; head < part.head_to; ++head) {
    for (int64_t i = part.query_tiles.from; i < part.query_tiles.to; ++i) {
      backward_tiles<V>(args, part, head, i, s);
    }
  }
  if (!part.key_gradient) return;
  const int64_t first = part.key_tiles.from * tile_size;
  const int64_t count = std::min(args.size.keys - first, key_tiles * tile_size);
  for (int64_t j = 0; j < count; ++j) {
    store_row<V>(s.dk + j * padded_dim, dim, A(1), args.dk.at(part.batch, first + j, part.group));
    store_row<V>(s.dv + j * padded_dim, dim, A(1), args.dv.at(part.batch, first + j, part.group));
  }
}
