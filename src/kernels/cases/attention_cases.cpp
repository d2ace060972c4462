#include <cmath>

#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

struct Setup {
  std::string name;
  int64_t batches = 1, queries = 1, keys = 1, heads = 1, groups = 1, dim = 8;
  AttentionShape shape = {};
  std::vector<int32_t> document_start = {};  // [batches, queries]
  bool fused = false;                        // q, k and v are slices of one buffer
  double dropout = 0;
};

// The operands as views: q, k, v of the case's tensors, whichever way they are stored.
struct Operands {
  View q, k, v;
};
Operands operands_of(const Setup& s, const Tensors& t) {
  if (!s.fused) return {t[0].view(), t[1].view(), t[2].view()};
  const View all = t[0].view();
  return {all.slice(2, 0, s.heads), all.slice(2, s.heads, s.heads + s.groups),
          all.slice(2, s.heads + s.groups, s.heads + 2 * s.groups)};
}

ConstView documents_of(const Setup& s, const Tensors& in) {
  return s.document_start.empty() ? ConstView{} : ConstView(in.back());
}

// Queries are scattered over the data stream.
std::vector<int64_t> tokens_of(const Setup& s) {
  std::vector<int64_t> tokens(size_t(s.batches * s.queries));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = int64_t(i) * 1000003;
  return tokens;
}

std::optional<AttentionDropout> dropout_of(const Setup& s, const std::vector<int64_t>& tokens) {
  if (s.dropout == 0) return std::nullopt;
  return AttentionDropout{
      .rate = s.dropout,
      .random = Random(11, stream_of("attention")),
      .token_index = ConstView(tokens.data(), DType::i64, {s.batches, s.queries})};
}

Case case_of(Setup s) {
  using Kind = Operand::Kind;
  if (s.shape.scale == 1) s.shape.scale = 1 / std::sqrt(double(s.dim));
  Case c;
  c.name = "attention/" + s.name;
  const Shape q{s.batches, s.queries, s.heads, s.dim}, kv{s.batches, s.keys, s.groups, s.dim};
  if (s.fused) {
    c.inputs.push_back(
        {"qkv", Kind::normal, {s.batches, s.queries, s.heads + 2 * s.groups, s.dim}});
  } else {
    c.inputs = {{"q", Kind::normal, q}, {"k", Kind::normal, kv}, {"v", Kind::normal, kv}};
  }
  if (!s.document_start.empty()) {
    Operand start{"document_start", Kind::indices, {s.batches, s.queries}};
    start.values = s.document_start;
    c.inputs.push_back(start);
  }
  c.outputs = {{"out", Kind::output, q},
               {"lse", Kind::statistics, {s.batches, s.heads, s.queries}}};
  c.forward = [s, tokens = tokens_of(s)](Context& ctx, Tensors& in, Tensors& out) {
    const auto [q_view, k_view, v_view] = operands_of(s, in);
    attention_forward(ctx, s.shape, q_view, k_view, v_view, documents_of(s, in),
                      dropout_of(s, tokens), out[0], out[1]);
  };
  c.backward = [s, tokens = tokens_of(s)](Context& ctx, Tensors& in, Tensors& out, Tensors& dout,
                                          Tensors& din) {
    const auto [q_view, k_view, v_view] = operands_of(s, in);
    const auto [dq, dk, dv] = operands_of(s, din);
    attention_backward(ctx, s.shape, dout[0], q_view, k_view, v_view, out[0], out[1],
                       documents_of(s, in), dropout_of(s, tokens), dq, dk, dv);
  };
  c.gradient = s.batches * s.queries * s.keys * s.heads * s.dim <= 20000;
  return c;
}

// Documents that start where asked for: each query's entry is the start of its own document.
std::vector<int32_t> packed(int64_t queries, const std::vector<int32_t>& starts) {
  std::vector<int32_t> of_query;
  int32_t start = 0;
  for (int64_t i = 0; i < queries; ++i) {
    for (const int32_t s : starts) start = s == i ? s : start;
    of_query.push_back(start);
  }
  return of_query;
}

// A forward and its operations, counted over the pairs that a causal mask leaves.
Case timed(Setup s) {
  Case c = case_of(s);
  c.flops = 4.0 * double(s.batches * s.heads * s.dim) * double(s.queries) * double(s.keys + 1) / 2;
  c.bytes = 16.0 * double(s.batches * s.heads * s.dim) * double(s.queries);
  c.gradient = false;
  return c;
}

}  // namespace

std::vector<Case> attention_cases() {
  const AttentionShape open{.causal = false};
  std::vector<Case> all;
  const auto add = [&](const Setup& s) { all.push_back(case_of(s)); };
  add({"one token", 1, 1, 1, 1, 1, 8});
  add({"causal 7, dim 8", 2, 7, 7, 2, 2, 8});
  add({"causal 33, dim 48, groups 4:2", 1, 33, 33, 4, 2, 48});
  add({"causal 130, dim 64, groups 6:1", 1, 130, 130, 6, 1, 64});
  add({"causal 33, dim 20", 2, 33, 33, 2, 1, 20});
  add({"causal 9, dim 20, groups 2:1", 1, 9, 9, 2, 1, 20});
  add({"all keys 33", 1, 33, 33, 1, 1, 8, open});
  add({"all keys, 10 queries on 7", 2, 10, 7, 2, 1, 8, open});
  add({"all keys, 70 queries on 150", 1, 70, 150, 2, 2, 20, open});
  add({"window 5 of 33", 1, 33, 33, 2, 1, 8, {.window = 5}});
  add({"window 40 of 200", 1, 200, 200, 2, 1, 16, {.window = 40}});
  add({"window, not causal", 1, 20, 25, 1, 1, 8, {.causal = false, .window = 3}});
  add({"cache: 9 queries after 24", 1, 9, 33, 2, 1, 8, {.q_offset = 24}});
  add({"cache: 70 queries after 60", 1, 70, 130, 4, 2, 48, {.q_offset = 60}});
  add({"decode 1 of 130", 2, 1, 130, 4, 2, 64, {.q_offset = 129}});
  add({"decode 3 of 33, dim 20, window 7", 1, 3, 33, 2, 2, 20, {.q_offset = 30, .window = 7}});
  add({"documents", 1, 33, 33, 2, 1, 8, {}, packed(33, {5, 6, 20})});
  add({"documents over tiles", 1, 200, 200, 2, 1, 16, {}, packed(200, {60, 64, 130, 199})});
  // Queries 2 and 3 see nothing: their document starts after them.
  add({"a query sees nothing", 1, 9, 9, 2, 2, 8, {}, {0, 0, 3, 9, 2, 2, 2, 2, 2}});
  add({"a decoded query sees nothing", 1, 2, 9, 2, 1, 8, {.q_offset = 7}, {8, 8}});
  add({"fused qkv", 2, 33, 33, 4, 2, 8, {}, {}, true});
  add({"dropout", 1, 17, 17, 2, 1, 8, {}, {}, false, 0.3});
  add({"dropout over tiles", 1, 130, 130, 2, 1, 16, {}, packed(130, {50}), false, 0.1});
  add({"dropout, decode", 1, 2, 40, 2, 1, 8, {.q_offset = 38}, {}, false, 0.5});
  add({"large scores", 1, 33, 33, 1, 1, 8, {.scale = 2}});
  // Larger ones are timed by bench/attention.cpp: the reference would take too long.
  all.push_back(timed({"GPT-2, B4 T64", 4, 64, 64, 12, 12, 64, {}, {}, true}));
  all.push_back(timed({"small Llama, B1 T256", 1, 256, 256, 6, 6, 48}));
  return all;
}

}  // namespace fivefold::kernels::cases
