#include <vector>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/isa.hpp"
#include "kernels/dispatch.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/attention_backward.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

// Sums of key and value gradients that one thread may keep.
constexpr int64_t most_sum_bytes = int64_t{16} << 20;

// All parts of a backward; each element of a gradient is written by one of them.
//
// Whole groups, if there are enough to keep the threads busy and their sums are small: every pair
// of tiles is visited once (5 products). Otherwise queries and keys are cut separately and each
// pair is visited twice (7 products). The order of every sum is the same in both.
template <class T>
std::vector<BackwardPart> parts_of(const AttentionOperands<T>& args, int threads) {
  const AttentionSizes& n = args.size;
  const KeyRange query_tiles{0, tiles_of(n.queries)}, key_tiles{0, tiles_of(n.keys)};
  const int64_t groups = n.batches * n.groups, heads = n.heads_per_group();
  const int64_t rounds = (groups + threads - 1) / threads;
  const int64_t sum_bytes =
      2 * key_tiles.to * tile_size * args.padded_dim() * int64_t(sizeof(Accumulator<T>));
  const bool whole = sum_bytes <= most_sum_bytes && 10 * groups >= 7 * rounds * threads;

  std::vector<BackwardPart> parts;
  const int64_t tasks = std::max<int64_t>(1, 8 * threads / groups);  // of a group
  const auto cut = [&](int64_t tiles) { return (tiles + tasks - 1) / tasks; };
  for (int64_t task = 0; task < groups; ++task) {
    BackwardPart part{.batch = task / n.groups,
                      .group = task % n.groups,
                      .head_from = task % n.groups * heads,
                      .head_to = (task % n.groups + 1) * heads,
                      .query_tiles = query_tiles,
                      .key_tiles = key_tiles,
                      .query_gradient = true,
                      .key_gradient = true};
    if (whole) {
      parts.push_back(part);
      continue;
    }
    part.query_gradient = false;
    const int64_t key_step = std::min(
        cut(key_tiles.to),
        std::max<int64_t>(1, most_sum_bytes * key_tiles.to / std::max<int64_t>(1, sum_bytes)));
    for (int64_t j = 0; j < key_tiles.to; j += key_step) {
      part.key_tiles = {j, std::min(j + key_step, key_tiles.to)};
      parts.push_back(part);
    }
    part.query_gradient = true, part.key_gradient = false;
    part.key_tiles = key_tiles;
    const int64_t query_step = cut(query_tiles.to);
    for (int64_t h = 0; h < heads; ++h) {
      part.head_from = task % n.groups * heads + h, part.head_to = part.head_from + 1;
      for (int64_t i = 0; i < query_tiles.to; i += query_step) {
        part.query_tiles = {i, std::min(i + query_step, query_tiles.to)};
        parts.push_back(part);
      }
    }
  }
  return parts;
}

template <class T>
void backward(Context& ctx, const AttentionOperands<T>& args) {
  using A = Accumulator<T>;
  const std::vector<BackwardPart> parts = parts_of(args, ctx.pool.threads());
  int64_t scratch = 0;
  for (const BackwardPart& part : parts) {
    Scratch<A> counted(nullptr);
    const BackwardScratch<A> layout(counted, part.key_tiles.to - part.key_tiles.from,
                                    part.key_gradient, args.padded_dim());
    scratch = std::max(scratch, counted.used());
  }
  Tensor memory(ctx.memory, Category::workspace, DTypeOf<A>::value, {ctx.pool.threads(), scratch});
  A* base = memory.flat<A>().data();
  const auto kernel = PICK(ctx, attention_backward_part<T>);
  share_out(ctx.pool, int64_t(parts.size()), [&](int64_t task, int thread) {
    kernel(args, parts[size_t(task)], base + thread * scratch);
  });
}

}  // namespace

void attention_backward_cpu(Context& ctx, const AttentionShape& shape, ConstView dout, ConstView q,
                            ConstView k, ConstView v, ConstView out, ConstView lse,
                            ConstView document_start,
                            const std::optional<AttentionDropout>& dropout, View dq, View dk,
                            View dv) {
  with_type(q.dtype, [&]<class T>() {
    AttentionOperands<T> args;
    args.size = attention_sizes(q, k);
    args.shape = shape;
    args.document_start = document_start;
    args.dropout = dropout ? &*dropout : nullptr;
    args.q = heads_of<const T>(q), args.k = heads_of<const T>(k), args.v = heads_of<const T>(v);
    args.saved_out = heads_of<const T>(out), args.dout = heads_of<const T>(dout);
    args.dq = heads_of<T>(dq), args.dk = heads_of<T>(dk), args.dv = heads_of<T>(dv);
    args.saved_lse = lse.as<Accumulator<T>>();
    args.lse_batch = lse.stride[0], args.lse_head = lse.stride[1];
    backward(ctx, args);
  });
}

}  // namespace fivefold::kernels
