#pragma once
// Every numerical operation of the trainer, one contract each. Implementations: reference/ (short,
// obvious), cpu/ (fast). Callers reach kernels only through this header, so another device is
// another folder and no other change.
//
// Common to all ops
//   DType      "T" operands are all f32, all f64 or all bf16. "A" operands have accumulator_of(T):
//              f64 for f64, otherwise f32. bf16 is widened to float32 for the computation and
//              rounded once when stored.
//   Views      last dim contiguous; rows may be strided unless an op says flat.
//   Requires   shapes as stated; a violation is our own mistake and aborts (CHECK).
//   Order      the result does not depend on the number of threads' timing: the same operands and
//              thread count give the same bits. Row-wise ops give the same bits at any count.
//   Aliasing   outputs overlap inputs only where an op says so.
//   Gradients  *_backward_weight adds to its outputs (they accumulate over microbatches);
//              *_backward_input overwrites dx unless `accumulate` says add.

#include <optional>
#include <span>

#include "base/random.hpp"
#include "kernels/context.hpp"
#include "tensor/view.hpp"

namespace fivefold::kernels {

enum class Write : uint8_t { overwrite, accumulate };

// ---- Matrix products. Weights are [out, in], as in every public checkpoint.

// y[M,N] (=|+=) x[M,K] w[N,K]^T + bias[N].   T: x, w, bias (may be empty), y.
void linear_forward(Context&, ConstView x, ConstView w, ConstView bias, View y,
                    Write write = Write::overwrite);
// dx[M,K] (=|+=) dy[M,N] w[N,K].   T: dy, w, dx.
void linear_backward_input(Context&, ConstView dy, ConstView w, View dx,
                           Write write = Write::overwrite);
// dw[N,K] += dy[M,N]^T x[M,K]; dbias[N] += sum over rows of dy.   T: dy, x. A: dw, dbias (may be
// empty).
void linear_backward_weight(Context&, ConstView dy, ConstView x, View dw, View dbias);

// ---- Embedding.

// y[N,C] (=|+=) table[ids[n]].   i32: ids[N], each in [0, V). T: table[V,C], y.
void embedding_forward(Context&, ConstView ids, ConstView table, View y,
                       Write write = Write::overwrite);
// dtable[ids[n]] += dy[n], in the order of n.   T: dy. A: dtable[V,C].
void embedding_backward(Context&, ConstView ids, ConstView dy, View dtable);

// ---- Normalisation over the last dim C.

// y = x / sqrt(mean(x^2) + eps) * w; keeps rstd[N].   T: x[N,C], w[C], y. A: rstd.
// y may be x.     Source  Zhang & Sennrich, 2019.
void rmsnorm_forward(Context&, ConstView x, ConstView w, double eps, View y, View rstd);
// T: dy, x, w, dx. A: rstd. dx may be dy.
void rmsnorm_backward_input(Context&, ConstView dy, ConstView x, ConstView w, ConstView rstd,
                            View dx, Write write = Write::overwrite);
// dw[C] += sum over rows of dy * x * rstd.   T: dy, x. A: rstd, dw.
void rmsnorm_backward_weight(Context&, ConstView dy, ConstView x, ConstView rstd, View dw);

// y = (x - mean) * rstd * w + b; keeps mean[N] and rstd[N].   T: x, w[C], b[C], y. A: mean, rstd.
void layernorm_forward(Context&, ConstView x, ConstView w, ConstView b, double eps, View y,
                       View mean, View rstd);
void layernorm_backward_input(Context&, ConstView dy, ConstView x, ConstView w, ConstView mean,
                              ConstView rstd, View dx, Write write = Write::overwrite);
// dw += sum of dy * (x - mean) * rstd, db += sum of dy.
void layernorm_backward_weight(Context&, ConstView dy, ConstView x, ConstView mean,
                               ConstView rstd, View dw, View db);

// ---- Rotary positions, "rotate half" as in Hugging Face: pairs are (i, i + D/2).

enum class Rotation : uint8_t { forward, backward };
// Rotates x[N,H,D] in place: row n by the angles of positions[n]; backward rotates the other way.
// T: x. i32: positions[N]. f64: table[P,D/2,2] of (cos, sin), every position in [0, P).
void rope(Context&, View x, ConstView positions, ConstView table, Rotation rotation);

// ---- Attention.

struct AttentionShape {
  // Query i of a sequence sits at position i + q_offset among the keys (q_offset > 0 with a cache).
  int64_t q_offset = 0;
  bool causal = true;
  int64_t window = 0;  // > 0: only the last `window` keys, the query's own included
  double scale = 1;    // of the scores, usually 1 / sqrt(D)
};

// Zeroes attention probabilities by a mask that is a function of (random, token_index[q], head, key)
// and scales the rest by 1 / (1 - rate).
struct AttentionDropout {
  double rate = 0;
  Random random{0, 0};
  ConstView token_index;  // i64[B,Tq], the query's index in the whole data stream
};

// out[B,Tq,H,D] = softmax(scale * q k^T) v over the keys that each query may see:
//   max(document_start[b,i], i + q_offset - window + 1) <= j <= i + q_offset (causal), j < Tk.
// Tiled with an online softmax: no Tq x Tk matrix exists; tiles that nobody sees are not computed.
//
// Shape     q[B,Tq,H,D], k and v[B,Tk,G,D] with H a multiple of G (grouped queries), all T;
//           document_start i32[B,Tq] or empty (0 everywhere); lse A[B,H,Tq], log of the softmax's
//           denominator. A query that sees nothing gets out = 0 and lse = -inf.
// Source    Dao, "FlashAttention-2", 2023; Milakov & Gimelshein, 2018 (online softmax).
void attention_forward(Context&, const AttentionShape& shape, ConstView q, ConstView k, ConstView v,
                       ConstView document_start, const std::optional<AttentionDropout>& dropout,
                       View out, View lse);
// Overwrites dq, dk, dv (shapes of q, k, v) from dout, out and lse.
void attention_backward(Context&, const AttentionShape& shape, ConstView dout, ConstView q,
                        ConstView k, ConstView v, ConstView out, ConstView lse,
                        ConstView document_start, const std::optional<AttentionDropout>& dropout,
                        View dq, View dk, View dv);

// ---- Element-wise.   All T.

// y = silu(gate) * up.   y may be gate.      Source  Shazeer, "GLU variants", 2020.
void swiglu_forward(Context&, ConstView gate, ConstView up, View y);
// dgate may be gate and dup may be up; dy may be neither.
void swiglu_backward(Context&, ConstView dy, ConstView gate, ConstView up, View dgate, View dup);
// y = gelu(x), tanh form (GPT-2's gelu_new).   y may be x.    Source  Hendrycks & Gimpel, 2016.
void gelu_forward(Context&, ConstView x, View y);
// dx may be dy or x.
void gelu_backward(Context&, ConstView dy, ConstView x, View dx);
// y (=|+=) x, across dtypes f32, f64, bf16.
void convert(Context&, ConstView x, View y, Write write = Write::overwrite);
// x[N,C] *= mask / (1 - rate): element (n, c) is dropped by a function of (random, token_index[n],
// c) alone. The same call on dy is the backward.   i64: token_index[N].
void dropout(Context&, View x, double rate, const Random& random, ConstView token_index);

// ---- Cross-entropy over V classes, the vocabulary walked in chunks; no second copy of the logits.

// losses[n] = lse[n] - logits[n, targets[n]]; a target of -1 is ignored (loss 0).
// T: logits[N,V]. i32: targets[N]. A: losses[N], lse[N].
void cross_entropy_forward(Context&, ConstView logits, ConstView targets, View losses, View lse);
// logits become their own gradient: (softmax - onehot) * scale; rows with target -1 become 0.
void cross_entropy_backward(Context&, View logits, ConstView targets, ConstView lse, double scale);

// ---- Optimizer and reductions, on flat views.

struct AdamW {
  double lr = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;        // counts from 1, for the bias corrections
  double grad_scale = 1;   // multiplies the gradient as it is read (clipping)
};
// One pass:  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
//   w -= lr * (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay * w),
// then `low` = w rounded, where low is not empty.   A: w, g, m, v. bf16: low.
// Cost      7 memory accesses an element (28 bytes in f32).   Source  Loshchilov & Hutter, 2019.
void adamw(Context&, const AdamW& args, View w, ConstView g, View m, View v, View low);

// Sum of squares in float64, in blocks of fixed size: the same bits at any thread count.
// A NaN or Inf anywhere makes the result NaN or Inf.
double sum_of_squares(Context&, ConstView x);

}  // namespace fivefold::kernels
