#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/isa.hpp"
#include "kernels/dispatch.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/attention_forward.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

// Below this many queries a tile would be mostly padding.
constexpr int64_t decode_queries = 8;

template <class T>
void decode(Context& ctx, const AttentionOperands<T>& args) {
  const int64_t scratch = decode_scratch(args.size.keys, args.size.dim);
  Tensor memory(ctx.memory, Category::workspace, DTypeOf<Accumulator<T>>::value,
                {ctx.pool.threads(), scratch});
  auto* base = memory.flat<Accumulator<T>>().data();
  const auto kernel = PICK(ctx, attention_decode<T>);
  share_out(ctx.pool, args.size.batches * args.size.heads, [&](int64_t task, int thread) {
    kernel(args, task / args.size.heads, task % args.size.heads, base + thread * scratch);
  });
}

template <class T>
void forward(Context& ctx, const AttentionOperands<T>& args) {
  using A = Accumulator<T>;
  const AttentionSizes& n = args.size;
  Scratch<A> counted(nullptr);
  const ForwardScratch<A> layout(counted, tiles_of(n.keys), args.padded_dim());
  Tensor memory(ctx.memory, Category::workspace, DTypeOf<A>::value,
                {ctx.pool.threads(), counted.used()});
  A* base = memory.flat<A>().data();

  // A group's queries are cut into as many parts as keep all threads busy; each part packs the
  // keys anew. What a part computes does not depend on the cut.
  const int64_t groups = n.batches * n.groups;
  const int64_t units = n.heads_per_group() * tiles_of(n.queries);
  const int threads = ctx.pool.threads();
  const int64_t cut = threads == 1 ? 1 : std::clamp<int64_t>(4 * threads / groups, 1, units);
  const auto kernel = PICK(ctx, attention_forward_part<T>);
  share_out(ctx.pool, groups * cut, [&](int64_t task, int thread) {
    const int64_t group = task / cut, piece = cut - 1 - task % cut;  // the longest first
    kernel(args,
           ForwardPart{.batch = group / n.groups,
                       .group = group % n.groups,
                       .unit_from = units * piece / cut,
                       .unit_to = units * (piece + 1) / cut},
           base + thread * counted.used());
  });
}

}  // namespace

void attention_forward_cpu(Context& ctx, const AttentionShape& shape, ConstView q, ConstView k,
                           ConstView v, ConstView document_start,
                           const std::optional<AttentionDropout>& dropout, View out, View lse) {
  with_type(q.dtype, [&]<class T>() {
    AttentionOperands<T> args;
    args.size = attention_sizes(q, k);
    args.shape = shape;
    args.document_start = document_start;
    args.dropout = dropout ? &*dropout : nullptr;
    args.q = heads_of<const T>(q), args.k = heads_of<const T>(k), args.v = heads_of<const T>(v);
    args.out = heads_of<T>(out);
    args.lse = lse.as<Accumulator<T>>();
    args.lse_batch = lse.stride[0], args.lse_head = lse.stride[1];
    if (args.size.queries < decode_queries) {
      decode(ctx, args);
    } else {
      forward(ctx, args);
    }
  });
}

}  // namespace fivefold::kernels
