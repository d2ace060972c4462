#pragma once
// The fast attention's work as plain values: what the kernels of each instruction set are handed.
//
// A tile is 64 keys by 64 queries, kept transposed (a row per key), so that everything softmax does
// runs down columns of vectors, and keys and values are used as they lie. Its products are small
// matrix products whose operands all sit in the first and second level of cache.

#include <array>
#include <atomic>
#include <bit>
#include <optional>

#include "kernels/attention_dropout.hpp"
#include "kernels/attention_heads.hpp"

// The compiler has to unroll these loops whole, or arrays of vectors end up in memory.
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

namespace fivefold::kernels {

constexpr int64_t tile_size = 64;    // queries and keys of a tile
constexpr int64_t row_padding = 16;  // tiles hold a multiple of this many queries, keys and dims
constexpr int64_t kept_tiles = 64;   // packed tiles of keys and values that a thread keeps

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
constexpr int64_t tiles_of(int64_t n) { return (n + tile_size - 1) / tile_size; }

// The operands of a forward or a backward; what the other one needs is null.
template <class T>
struct AttentionOperands {
  using A = Accumulator<T>;
  AttentionSizes size;
  AttentionShape shape;
  ConstView document_start;
  const AttentionDropout* dropout = nullptr;
  Heads<const T> q, k, v, saved_out, dout;
  Heads<T> out, dq, dk, dv;
  const A* saved_lse = nullptr;  // [B,H,Tq]
  A* lse = nullptr;
  int64_t lse_batch = 0, lse_head = 0;

  int64_t lse_at(int64_t b, int64_t h) const { return b * lse_batch + h * lse_head; }
  int64_t padded_dim() const { return round_up(size.dim, row_padding); }
};

// The fast versions of ops.hpp's contracts.
void attention_forward_cpu(Context&, const AttentionShape& shape, ConstView q, ConstView k,
                           ConstView v, ConstView document_start,
                           const std::optional<AttentionDropout>& dropout, View out, View lse);
void attention_backward_cpu(Context&, const AttentionShape& shape, ConstView dout, ConstView q,
                            ConstView k, ConstView v, ConstView out, ConstView lse,
                            ConstView document_start,
                            const std::optional<AttentionDropout>& dropout, View dq, View dk,
                            View dv);

// Calls body(task, thread) for every task, each on whichever thread is free.
template <class Body>
void share_out(ThreadPool& pool, int64_t tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  pool.run([&](int thread) {
    for (int64_t task = next++; task < tasks; task = next++) body(task, thread);
  });
}

// Hands out pieces of a thread's scratch; with no memory behind it, it only counts.
template <class A>
class Scratch {
 public:
  explicit Scratch(A* base) : base_(base) {}
  A* take(int64_t count) {
    A* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(count, 64 / int64_t(sizeof(A)));
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  A* base_;
  int64_t used_ = 0;
};

// Keys and values of one (batch, group), packed tile by tile as they are asked for.
template <class A>
struct KeyTiles {
  A *keys = nullptr, *values = nullptr;
  int64_t slots = 0, tile_elements = 0;
  int64_t held[kept_tiles];  // which tile a slot holds, -1 none

  KeyTiles(Scratch<A>& scratch, int64_t count, int64_t padded_dim)
      : slots(std::min(count, kept_tiles)), tile_elements(tile_size * padded_dim) {
    keys = scratch.take(slots * tile_elements);
    values = scratch.take(slots * tile_elements);
    std::fill(held, held + kept_tiles, -1);
  }
};

// Part of a forward: queries of the heads of one group, as units of one head's tile of queries.
struct ForwardPart {
  int64_t batch = 0, group = 0;
  int64_t unit_from = 0, unit_to = 0;  // unit = head in group * tiles of queries + tile
};

// Part of a backward: the pairs of these tiles of queries and of keys, all heads in [head_from,
// head_to) of a group. Gradients of queries need every tile of keys, and the other way round.
struct BackwardPart {
  int64_t batch = 0, group = 0;
  int64_t head_from = 0, head_to = 0;
  KeyRange query_tiles, key_tiles;
  bool query_gradient = false, key_gradient = false;
};

template <class A>
struct ForwardScratch {
  A *rows, *columns, *scores, *keep, *sums, *top, *total, *decay, *from, *to;
  KeyTiles<A> tiles;
  ForwardScratch(Scratch<A>& scratch, int64_t key_tiles, int64_t dim)
      : rows(scratch.take(tile_size * dim)),
        columns(scratch.take(tile_size * dim)),
        scores(scratch.take(tile_size * tile_size)),
        keep(scratch.take(tile_size * tile_size)),
        sums(scratch.take(tile_size * dim)),
        top(scratch.take(tile_size)),
        total(scratch.take(tile_size)),
        decay(scratch.take(tile_size)),
        from(scratch.take(tile_size)),
        to(scratch.take(tile_size)),
        tiles(scratch, key_tiles, dim) {}
};

template <class A>
struct BackwardScratch {
  A *q_rows, *q_columns, *dout_rows, *dout_columns, *probabilities, *gradients, *keep, *dq, *lse,
      *delta, *ones, *from, *to;
  KeyTiles<A> tiles;
  A *dk, *dv;  // sums for each tile of keys of the part
  BackwardScratch(Scratch<A>& scratch, int64_t key_tiles, bool key_gradient, int64_t dim)
      : q_rows(scratch.take(tile_size * dim)),
        q_columns(scratch.take(tile_size * dim)),
        dout_rows(scratch.take(tile_size * dim)),
        dout_columns(scratch.take(tile_size * dim)),
        probabilities(scratch.take(tile_size * tile_size)),
        gradients(scratch.take(tile_size * tile_size)),
        keep(scratch.take(tile_size * tile_size)),
        dq(scratch.take(tile_size * dim)),
        lse(scratch.take(tile_size)),
        delta(scratch.take(tile_size)),
        ones(scratch.take(tile_size)),
        from(scratch.take(tile_size)),
        to(scratch.take(tile_size)),
        tiles(scratch, key_tiles, dim),
        dk(key_gradient ? scratch.take(key_tiles * tile_size * dim) : nullptr),
        dv(key_gradient ? scratch.take(key_tiles * tile_size * dim) : nullptr) {}
};

// Elements of scratch that one call of attention_decode needs.
constexpr int64_t decode_scratch(int64_t keys, int64_t dim) {
  return round_up(keys, row_padding) + 2 * row_padding + 2 * round_up(dim, row_padding);
}

// A tile of queries and the keys that each of them sees.
struct QueryTile {
  int64_t first = 0, count = 0;  // queries
  int64_t from[tile_size], to[tile_size];
  KeyRange keys;  // that any of them sees

  template <class T>
  QueryTile(const AttentionOperands<T>& args, int64_t batch, int64_t tile)
      : first(tile * tile_size), count(std::min(tile_size, args.size.queries - first)) {
    keys = {args.size.keys, 0};
    for (int64_t i = 0; i < tile_size; ++i) {
      KeyRange range{};
      if (i < count) {
        range = visible_keys(args.shape, args.document_start, args.size.keys, batch, first + i);
      }
      from[i] = range.from, to[i] = range.to;
      if (range.from >= range.to) continue;
      keys.from = std::min(keys.from, range.from);
      keys.to = std::max(keys.to, range.to);
    }
    if (keys.from >= keys.to) keys = {};
  }
  int64_t padded() const { return round_up(count, row_padding); }
};

// One tile of keys against one of queries: how much of it is visible.
struct TileMask {
  const QueryTile& queries;
  int64_t first, padded_keys;
  bool any = false, all = true;

  TileMask(const QueryTile& tile, int64_t key_tile, int64_t key_count)
      : queries(tile),
        first(key_tile * tile_size),
        padded_keys(round_up(std::min(tile_size, key_count - first), row_padding)) {
    for (int64_t i = 0; i < tile.count; ++i) {
      any = any || (tile.from[i] < first + tile_size && tile.to[i] > first);
      all = all && tile.from[i] <= first && tile.to[i] >= first + padded_keys;
    }
  }
  int64_t from(int64_t query) const {
    return std::clamp<int64_t>(queries.from[query] - first, 0, tile_size);
  }
  int64_t to(int64_t query) const {
    return std::clamp<int64_t>(queries.to[query] - first, 0, tile_size);
  }
  // The keys of the tile that `n` queries from `query` on see, outwards to a multiple of `unit`.
  KeyRange keys_of(int64_t query, int64_t n, int64_t unit) const {
    if (all) return {0, padded_keys};
    KeyRange range{tile_size, 0};
    for (int64_t i = query; i < query + n; ++i) {
      if (from(i) >= to(i)) continue;
      range.from = std::min(range.from, from(i));
      range.to = std::max(range.to, to(i));
    }
    if (range.from >= range.to) return {};
    return {range.from / unit * unit, round_up(range.to, unit)};
  }
  // The queries of the tile that see any of `n` keys from `key` on.
  KeyRange queries_of(int64_t key, int64_t n) const {
    if (all) return {0, queries.padded()};
    KeyRange range{tile_size, 0};
    for (int64_t i = 0; i < queries.count; ++i) {
      if (from(i) >= to(i) || from(i) >= key + n || to(i) <= key) continue;
      range.from = std::min(range.from, i);
      range.to = i + 1;
    }
    return range.from < range.to ? range : KeyRange{};
  }
};

// What dropout needs to know of a tile of queries of one head.
struct DropoutTile {
  std::array<uint64_t, 2> seed_and_stream;
  uint32_t threshold;
  double scale;
  uint64_t rows[tile_size] = {};  // dropout_row of each query; anything for padding

  DropoutTile(const AttentionDropout& dropout, const QueryTile& queries, int64_t batch,
              int64_t head)
      // Vectors of Philox need the generator's key: its two words, seed and stream.
      : seed_and_stream(std::bit_cast<std::array<uint64_t, 2>>(dropout.random)),
        threshold(dropout_threshold(dropout.rate)),
        scale(1 / (1 - dropout.rate)) {
    const ConstView& tokens = dropout.token_index;
    const int64_t* token = tokens.as<int64_t>() + batch * tokens.stride[0] + queries.first;
    for (int64_t i = 0; i < queries.count; ++i) rows[i] = dropout_row(token[i], head);
  }
};

}  // namespace fivefold::kernels
