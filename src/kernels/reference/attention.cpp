#include "kernels/reference/attention.hpp"

#include <cmath>
#include <limits>

#include "kernels/attention_dropout.hpp"
#include "kernels/attention_heads.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels::reference {
namespace {

template <class T>
Accumulator<T> dot(const T* a, const T* b, int64_t n) {
  Accumulator<T> sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += load(a[d]) * load(b[d]);
  return sum;
}

// What dropout multiplies the probability of (query i, key j) by.
double kept(const std::optional<AttentionDropout>& dropout, int64_t b, int64_t i, int64_t h,
            int64_t j) {
  if (!dropout) return 1;
  const ConstView& tokens = dropout->token_index;
  const int64_t token = tokens.as<int64_t>()[b * tokens.stride[0] + i];
  return attention_keeps(*dropout, token, h, j) ? 1 / (1 - dropout->rate) : 0;
}

template <class T>
void forward(Context& ctx, const AttentionShape& shape, ConstView q_view, ConstView k_view,
             ConstView v_view, ConstView document_start,
             const std::optional<AttentionDropout>& dropout, View out_view, View lse) {
  using A = Accumulator<T>;
  const AttentionSizes n = attention_sizes(q_view, k_view);
  const auto q = heads_of<const T>(q_view), k = heads_of<const T>(k_view),
             v = heads_of<const T>(v_view);
  const auto out = heads_of<T>(out_view);
  Tensor row(ctx.memory, Category::workspace, accumulator_of(q_view.dtype), {n.keys + n.dim});
  A* p = row.flat<A>().data();
  A* sum = p + n.keys;
  for (int64_t b = 0; b < n.batches; ++b) {
    for (int64_t h = 0; h < n.heads; ++h) {
      const int64_t g = h / n.heads_per_group();
      for (int64_t i = 0; i < n.queries; ++i) {
        const auto [from, to] = visible_keys(shape, document_start, n.keys, b, i);
        A top = -std::numeric_limits<A>::infinity(), total = 0;
        for (int64_t j = from; j < to; ++j) {
          p[j] = A(shape.scale) * dot(q.at(b, i, h), k.at(b, j, g), n.dim);
          top = std::max(top, p[j]);
        }
        std::fill(sum, sum + n.dim, A(0));
        for (int64_t j = from; j < to; ++j) {
          p[j] = std::exp(p[j] - top);
          total += p[j];
          const A weight = p[j] * A(kept(dropout, b, i, h, j));
          for (int64_t d = 0; d < n.dim; ++d) sum[d] += weight * load(v.at(b, j, g)[d]);
        }
        for (int64_t d = 0; d < n.dim; ++d) {
          store(out.at(b, i, h)[d], from < to ? sum[d] / total : A(0));
        }
        lse.as<A>()[b * lse.stride[0] + h * lse.stride[1] + i] = top + std::log(total);
      }
    }
  }
}

template <class T>
void backward(Context& ctx, const AttentionShape& shape, ConstView dout_view, ConstView q_view,
              ConstView k_view, ConstView v_view, ConstView out_view, ConstView lse,
              ConstView document_start, const std::optional<AttentionDropout>& dropout,
              View dq_view, View dk_view, View dv_view) {
  using A = Accumulator<T>;
  const AttentionSizes n = attention_sizes(q_view, k_view);
  const auto dout = heads_of<const T>(dout_view), q = heads_of<const T>(q_view),
             k = heads_of<const T>(k_view), v = heads_of<const T>(v_view),
             out = heads_of<const T>(out_view);
  const auto dq = heads_of<T>(dq_view), dk = heads_of<T>(dk_view), dv = heads_of<T>(dv_view);
  Tensor sums(ctx.memory, Category::workspace, accumulator_of(q_view.dtype),
              {2 * n.keys + 1, n.dim});
  A* const dq_sum = sums.flat<A>().data();
  A* const dk_sum = dq_sum + n.dim;
  A* const dv_sum = dk_sum + n.keys * n.dim;
  for (int64_t b = 0; b < n.batches; ++b) {
    for (int64_t g = 0; g < n.groups; ++g) {
      sums.zero();
      for (int64_t h = g * n.heads_per_group(); h < (g + 1) * n.heads_per_group(); ++h) {
        for (int64_t i = 0; i < n.queries; ++i) {
          const auto [from, to] = visible_keys(shape, document_start, n.keys, b, i);
          const A delta = dot(dout.at(b, i, h), out.at(b, i, h), n.dim);
          const A log_sum = lse.as<A>()[b * lse.stride[0] + h * lse.stride[1] + i];
          std::fill(dq_sum, dq_sum + n.dim, A(0));
          for (int64_t j = from; j < to; ++j) {
            const A p =
                std::exp(A(shape.scale) * dot(q.at(b, i, h), k.at(b, j, g), n.dim) - log_sum);
            const A keep = A(kept(dropout, b, i, h, j));
            const A dp = keep * dot(dout.at(b, i, h), v.at(b, j, g), n.dim);
            const A ds = A(shape.scale) * p * (dp - delta);
            for (int64_t d = 0; d < n.dim; ++d) {
              dq_sum[d] += ds * load(k.at(b, j, g)[d]);
              dk_sum[j * n.dim + d] += ds * load(q.at(b, i, h)[d]);
              dv_sum[j * n.dim + d] += p * keep * load(dout.at(b, i, h)[d]);
            }
          }
          for (int64_t d = 0; d < n.dim; ++d) store(dq.at(b, i, h)[d], dq_sum[d]);
        }
      }
      for (int64_t j = 0; j < n.keys; ++j) {
        for (int64_t d = 0; d < n.dim; ++d) {
          store(dk.at(b, j, g)[d], dk_sum[j * n.dim + d]);
          store(dv.at(b, j, g)[d], dv_sum[j * n.dim + d]);
        }
      }
    }
  }
}

}  // namespace

void attention_forward(Context& ctx, const AttentionShape& shape, ConstView q, ConstView k,
                       ConstView v, ConstView document_start,
                       const std::optional<AttentionDropout>& dropout, View out, View lse) {
  const auto run = q.dtype == DType::f64   ? forward<double>
                   : q.dtype == DType::f32 ? forward<float>
                                           : forward<bf16>;
  run(ctx, shape, q, k, v, document_start, dropout, out, lse);
}

void attention_backward(Context& ctx, const AttentionShape& shape, ConstView dout, ConstView q,
                        ConstView k, ConstView v, ConstView out, ConstView lse,
                        ConstView document_start, const std::optional<AttentionDropout>& dropout,
                        View dq, View dk, View dv) {
  const auto run = q.dtype == DType::f64   ? backward<double>
                   : q.dtype == DType::f32 ? backward<float>
                                           : backward<bf16>;
  run(ctx, shape, dout, q, k, v, out, lse, document_start, dropout, dq, dk, dv);
}

}  // namespace fivefold::kernels::reference
