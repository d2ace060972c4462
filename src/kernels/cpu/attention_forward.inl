// The forward over tiles, for one instruction set (each_isa.inl).

#include "kernels/cpu/attention_tile.inl"

// One column of vectors of a tile of scores becomes probabilities that are relative to the highest
// score so far; `decay` is what older sums have to be multiplied by.
template <class V, bool masked>
void softmax_column(KeyRange keys, V from, V to, Element<V>* column, Element<V>* top,
                    Element<V>* total, Element<V>* decay) {
  using E = Element<V>;
  const V lowest = V::all(std::numeric_limits<E>::lowest());
  const V top_before = V::load(top);
  V high[4] = {top_before, top_before, top_before, top_before};
  for (int64_t j = keys.from; j < keys.to; j += 4) {
    UNROLL for (int i = 0; i < 4; ++i) {
      V score = V::load(column + (j + i) * tile_size);
      if constexpr (masked) score = within(from, to, E(j + i), score, lowest);
      high[i] = V::max(score, high[i]);  // a NaN is passed over here and kept by exp
    }
  }
  const V top_now = V::max(V::max(high[0], high[1]), V::max(high[2], high[3]));
  const V shrink = exp(top_before - top_now);
  V sum = V::load(total) * shrink;
  for (int64_t j = keys.from; j < keys.to; ++j) {
    V p = exp(V::load(column + j * tile_size) - top_now);
    if constexpr (masked) p = within(from, to, E(j), p, V::all(0));
    p.store(column + j * tile_size);
    sum = sum + p;
  }
  top_now.store(top);
  sum.store(total);
  shrink.store(decay);
}

template <class V>
void softmax_tile(const TileMask& mask, ForwardScratch<Element<V>>& s) {
  using E = Element<V>;
  for (int64_t q = 0; q < mask.queries.padded(); q += V::width) {
    const KeyRange keys = mask.keys_of(q, V::width, 4);
    if (mask.all) {
      softmax_column<V, false>(keys, V{}, V{}, s.scores + q, s.top + q, s.total + q, s.decay + q);
      continue;
    }
    for (int64_t i = q; i < q + V::width; ++i) s.from[i] = E(mask.from(i)), s.to[i] = E(mask.to(i));
    softmax_column<V, true>(keys, V::load(s.from + q), V::load(s.to + q), s.scores + q, s.top + q,
                            s.total + q, s.decay + q);
    clear_outside<V>(keys, mask.padded_keys, s.scores + q);
  }
}

template <class V, class T>
void forward_tile(const AttentionOperands<T>& args, int64_t batch, int64_t group, int64_t head,
                  int64_t tile, ForwardScratch<Element<V>>& s) {
  using E = Element<V>;
  const QueryTile queries(args, batch, tile);
  const int64_t dim = args.padded_dim();
  pack_rows<V>(args.q.at(batch, queries.first, head), args.q.token, queries.count, args.size.dim,
               E(args.shape.scale), s.rows, queries.padded());
  transpose<V>(s.rows, queries.padded(), dim, s.columns);
  for (int64_t i = 0; i < tile_size; ++i) {
    s.top[i] = std::numeric_limits<E>::lowest();
    s.total[i] = 0;
  }
  std::optional<DropoutTile> dropout;
  if (args.dropout != nullptr) dropout.emplace(*args.dropout, queries, batch, head);
  bool first = true;
  for (int64_t j = queries.keys.from / tile_size; j < tiles_of(queries.keys.to); ++j) {
    const TileMask mask(queries, j, args.size.keys);
    if (!mask.any) continue;
    const int64_t slot = hold_tile<V>(args, batch, group, j, s.tiles);
    score_tile<V>(mask, s.tiles.keys + slot * s.tiles.tile_elements, s.columns, args.size.dim,
                  s.scores);
    softmax_tile<V>(mask, s);
    if (dropout) {
      dropout_tile<V>(*dropout, mask, s.keep);
      apply_dropout<V>(mask, s.keep, s.scores);
    }
    query_tile_product<V>(mask, s.scores, s.tiles.values + slot * s.tiles.tile_elements, dim,
                          s.sums, first ? nullptr : s.decay);
    first = false;
  }
  E* lse = args.lse + args.lse_at(batch, head) + queries.first;
  if (first) std::memset(s.sums, 0, size_t(queries.count * dim) * sizeof(E));
  for (int64_t i = 0; i < queries.count; ++i) {
    const bool sees = queries.from[i] < queries.to[i];
    lse[i] = sees ? s.top[i] + std::log(s.total[i]) : -std::numeric_limits<E>::infinity();
    store_row<V>(s.sums + i * dim, args.size.dim, sees ? 1 / s.total[i] : E(0),
                 args.out.at(batch, queries.first + i, head));
  }
}

template <class T>
void attention_forward_part(const AttentionOperands<T>& args, const ForwardPart& part,
                            Accumulator<T>* memory) {
  Scratch<Accumulator<T>> scratch(memory);
  ForwardScratch<Accumulator<T>> s(scratch, tiles_of(args.size.keys), args.padded_dim());
  const int64_t tiles = tiles_of(args.size.queries);
  for (int64_t unit = part.unit_from; unit < part.unit_to; ++unit) {
    const int64_t head = part.group * args.size.heads_per_group() + unit / tiles;
    forward_tile<typename VectorOf<T>::V>(args, part.batch, part.group, head, unit % tiles, s);
  }
}

// A few queries against many keys (a step of generation): memory is what bounds it, so keys and
// values are read where they lie, once. scores[keys], then a padded query and a padded sum.
template <class V, class T>
void scores_of_query(const AttentionOperands<T>& args, KeyRange keys, const T* k,
                     const Element<V>* query, Element<V>* scores) {
  const int64_t dim = args.size.dim, whole = dim / V::width * V::width;
  for (int64_t j = keys.from; j < keys.to; j += V::width) {
    V part[V::width];
    Element<V> tail[V::width];
    const int64_t n = std::min(V::width, keys.to - j);
    for (int64_t r = 0; r < V::width; ++r) {
      const T* row = k + (j + std::min(r, n - 1)) * args.k.token;
      part[r] = V::all(0);
      for (int64_t d = 0; d < whole; d += V::width) {
        part[r] = V::fma(V::load(row + d), V::load(query + d), part[r]);
      }
      tail[r] = 0;
      for (int64_t d = whole; d < dim; ++d) tail[r] += load(row[d]) * query[d];
    }
    (row_sums(part) + V::load(tail)).store(scores + (j - keys.from));
  }
}

template <class V, class T>
void weighted_values(const AttentionOperands<T>& args, int64_t count, const T* v,
                     const Element<V>* weights, Element<V>* sum) {
  const int64_t dim = args.size.dim, whole = dim / V::width * V::width;
  for (int64_t d = 0; d < whole; d += 4 * V::width) {
    const int64_t n = std::min<int64_t>(4, (whole - d) / V::width);
    V sums[4] = {V::all(0), V::all(0), V::all(0), V::all(0)};
    for (int64_t j = 0; j < count; ++j) {
      const T* row = v + j * args.v.token + d;
      const V weight = V::all(weights[j]);
      for (int64_t i = 0; i < n; ++i)
        sums[i] = V::fma(weight, V::load(row + i * V::width), sums[i]);
    }
    for (int64_t i = 0; i < n; ++i) sums[i].store(sum + d + i * V::width);
  }
  for (int64_t d = whole; d < dim; ++d) {
    sum[d] = 0;
    for (int64_t j = 0; j < count; ++j) sum[d] += weights[j] * load(v[j * args.v.token + d]);
  }
}

// All queries of one head.
template <class T>
void attention_decode(const AttentionOperands<T>& args, int64_t b, int64_t h,
                      Accumulator<T>* memory) {
  using V = typename VectorOf<T>::V;
  using E = Element<V>;
  const int64_t dim = args.size.dim, group = h / args.size.heads_per_group();
  E* query = memory;
  E* sum = query + args.padded_dim();
  E* scores = sum + args.padded_dim();
  for (int64_t i = 0; i < args.size.queries; ++i) {
    const KeyRange keys = visible_keys(args.shape, args.document_start, args.size.keys, b, i);
    const int64_t count = keys.to - keys.from, padded = round_up(count, V::width);
    pack_rows<V>(args.q.at(b, i, h), args.q.token, 1, dim, E(args.shape.scale), query, 1);
    scores_of_query<V>(args, keys, args.k.at(b, 0, group), query, scores);
    E top = std::numeric_limits<E>::lowest(), total = 0;
    for (int64_t j = 0; j < count; ++j) top = scores[j] > top ? scores[j] : top;
    for (int64_t j = 0; j < padded; j += V::width) {
      exp(V::load(scores + j) - V::all(top)).store(scores + j);
    }
    for (int64_t j = 0; j < count; ++j) total += scores[j];
    if (args.dropout != nullptr) {
      const ConstView& tokens = args.dropout->token_index;
      const int64_t token = tokens.as<int64_t>()[b * tokens.stride[0] + i];
      const E scale = E(1 / (1 - args.dropout->rate));
      for (int64_t j = 0; j < count; ++j) {
        scores[j] *= attention_keeps(*args.dropout, token, h, keys.from + j) ? scale : E(0);
      }
    }
    weighted_values<V>(args, count, args.v.at(b, keys.from, group), scores, sum);
    store_row<V>(sum, dim, count > 0 ? 1 / total : E(0), args.out.at(b, i, h));
    args.lse[args.lse_at(b, h) + i] =
        count > 0 ? top + std::log(total) : -std::numeric_limits<E>::infinity();
  }
}
