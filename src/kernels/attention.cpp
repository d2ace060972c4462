// Attention: operands checked, then the backend's implementation.

#include "kernels/cpu/attention.hpp"
#include "kernels/ops.hpp"
#include "kernels/reference/attention.hpp"

namespace fivefold::kernels {
namespace {

void check_operand(const ConstView& view, DType dtype, const Shape& shape, const char* name) {
  CHECK(view.dtype == dtype, "{} is {}, not {}", name, name_of(view.dtype), name_of(dtype));
  CHECK(view.rank == shape.rank(), "{} has {} dims, not {}", name, view.rank, shape.rank());
  for (int d = 0; d < view.rank; ++d) {
    CHECK(view.size[size_t(d)] == shape[d], "dim {} of {} is {}, not {}", d, name,
          view.size[size_t(d)], shape[d]);
  }
  CHECK(view.stride[size_t(view.rank - 1)] == 1, "the last dim of {} is not contiguous", name);
}

void check_operands(const ConstView& q, const ConstView& k, const ConstView& v,
                    const ConstView& out, const ConstView& lse, const ConstView& document_start,
                    const std::optional<AttentionDropout>& dropout) {
  CHECK(q.rank == 4 && k.rank == 4, "q and k have {} and {} dims, not 4", q.rank, k.rank);
  const AttentionSizes n = attention_sizes(q, k);
  CHECK(n.groups > 0 && n.heads % n.groups == 0, "{} query heads on {} key heads", n.heads,
        n.groups);
  check_operand(q, q.dtype, {n.batches, n.queries, n.heads, n.dim}, "q");
  check_operand(k, q.dtype, {n.batches, n.keys, n.groups, n.dim}, "k");
  check_operand(v, q.dtype, {n.batches, n.keys, n.groups, n.dim}, "v");
  check_operand(out, q.dtype, {n.batches, n.queries, n.heads, n.dim}, "out");
  check_operand(lse, accumulator_of(q.dtype), {n.batches, n.heads, n.queries}, "lse");
  if (document_start) {
    check_operand(document_start, DType::i32, {n.batches, n.queries}, "document_start");
  }
  if (dropout) {
    CHECK(0 <= dropout->rate && dropout->rate < 1, "dropout of {}", dropout->rate);
    check_operand(dropout->token_index, DType::i64, {n.batches, n.queries}, "token_index");
  }
}

}  // namespace

void attention_forward(Context& ctx, const AttentionShape& shape, ConstView q, ConstView k,
                       ConstView v, ConstView document_start,
                       const std::optional<AttentionDropout>& dropout, View out, View lse) {
  check_operands(q, k, v, out, lse, document_start, dropout);
  if (q.count() == 0) return;
  const auto run =
      ctx.backend == Backend::reference ? reference::attention_forward : attention_forward_cpu;
  run(ctx, shape, q, k, v, document_start, dropout, out, lse);
}

void attention_backward(Context& ctx, const AttentionShape& shape, ConstView dout, ConstView q,
                        ConstView k, ConstView v, ConstView out, ConstView lse,
                        ConstView document_start, const std::optional<AttentionDropout>& dropout,
                        View dq, View dk, View dv) {
  check_operands(q, k, v, out, lse, document_start, dropout);
  const AttentionSizes n = attention_sizes(q, k);
  check_operand(dout, q.dtype, {n.batches, n.queries, n.heads, n.dim}, "dout");
  check_operand(dq, q.dtype, {n.batches, n.queries, n.heads, n.dim}, "dq");
  check_operand(dk, q.dtype, {n.batches, n.keys, n.groups, n.dim}, "dk");
  check_operand(dv, q.dtype, {n.batches, n.keys, n.groups, n.dim}, "dv");
  if (q.count() + k.count() == 0) return;
  const auto run =
      ctx.backend == Backend::reference ? reference::attention_backward : attention_backward_cpu;
  run(ctx, shape, dout, q, k, v, out, lse, document_start, dropout, dq, dk, dv);
}

}  // namespace fivefold::kernels
