#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

using Kind = Operand::Kind;

Case swiglu(int64_t rows, int64_t columns, double scale = 1) {
  Case c;
  c.name = fmt::format("swiglu/{}x{}{}", rows, columns, scale == 1 ? "" : "scaled");
  c.inputs = {{"gate", Kind::normal, {rows, columns}, scale},
              {"up", Kind::normal, {rows, columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}}};
  c.any_threads = true;
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    swiglu_forward(ctx, in[0], in[1], out[0]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    swiglu_backward(ctx, dout[0], in[0], in[1], din[0], din[1]);
  };
  return c;
}

// y where gate was, and the gradients where gate and up were.
Case swiglu_in_place(int64_t rows, int64_t columns) {
  Case c = swiglu(rows, columns);
  c.name = fmt::format("swiglu/in place/{}x{}", rows, columns);
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    convert(ctx, in[0], out[0]);
    swiglu_forward(ctx, out[0], in[1], out[0]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    convert(ctx, in[0], din[0]);
    convert(ctx, in[1], din[1]);
    swiglu_backward(ctx, dout[0], din[0], din[1], din[0], din[1]);
  };
  return c;
}

// Gate and up side by side in one [N, 2 F] projection.
Case swiglu_fused(int64_t rows, int64_t columns) {
  Case c;
  c.name = fmt::format("swiglu/fused/{}x{}", rows, columns);
  c.inputs = {{"both", Kind::normal, {rows, 2 * columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}}};
  c.any_threads = true;
  c.forward = [columns](Context& ctx, Tensors& in, Tensors& out) {
    const View both = in[0];
    swiglu_forward(ctx, both.slice(1, 0, columns), both.slice(1, columns, 2 * columns), out[0]);
  };
  c.backward = [columns](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    const View both = in[0], dboth = din[0];
    swiglu_backward(ctx, dout[0], both.slice(1, 0, columns), both.slice(1, columns, 2 * columns),
                    dboth.slice(1, 0, columns), dboth.slice(1, columns, 2 * columns));
  };
  return c;
}

Case gelu(int64_t rows, int64_t columns, double scale = 1) {
  Case c;
  c.name = fmt::format("gelu/{}x{}{}", rows, columns, scale == 1 ? "" : "scaled");
  c.inputs = {{"x", Kind::normal, {rows, columns}, scale}};
  c.outputs = {{"y", Kind::output, {rows, columns}}};
  c.any_threads = true;
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) { gelu_forward(ctx, in[0], out[0]); };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    gelu_backward(ctx, dout[0], in[0], din[0]);
  };
  return c;
}

Case gelu_in_place(int64_t rows, int64_t columns) {
  Case c = gelu(rows, columns);
  c.name = fmt::format("gelu/in place/{}x{}", rows, columns);
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    convert(ctx, in[0], out[0]);
    gelu_forward(ctx, out[0], out[0]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    convert(ctx, in[0], din[0]);
    gelu_backward(ctx, dout[0], din[0], din[0]);
  };
  return c;
}

Case dropped(int64_t rows, int64_t columns, double rate) {
  Case c;
  c.name = fmt::format("dropout/{}x{}", rows, columns);
  c.inputs = {{"x", Kind::normal, {rows, columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}}};
  c.any_threads = true;
  std::vector<int64_t> tokens;
  for (int64_t n = 0; n < rows; ++n) tokens.push_back(1'000'000'007 * n);
  const auto drop = [=](Context& ctx, Tensor& from, Tensor& to) {
    convert(ctx, from, to);
    dropout(ctx, to, rate, Random(3, stream_of("cases")),
            ConstView(tokens.data(), DType::i64, {rows}));
  };
  c.forward = [drop](Context& ctx, Tensors& in, Tensors& out) { drop(ctx, in[0], out[0]); };
  c.backward = [drop](Context& ctx, Tensors&, Tensors&, Tensors& dout, Tensors& din) {
    drop(ctx, dout[0], din[0]);
  };
  return c;
}

Case timed(Case c, double bytes) {
  c.bytes = bytes;
  c.gradient = false;
  return c;
}

}  // namespace

std::vector<Case> activation_cases() {
  std::vector<Case> cases;
  constexpr int64_t shapes[][2] = {{1, 1}, {3, 5}, {4, 16}, {9, 37}};
  for (const auto& [rows, columns] : shapes) {
    cases.push_back(swiglu(rows, columns));
    cases.push_back(gelu(rows, columns));
    cases.push_back(dropped(rows, columns, 0.3));
  }
  cases.push_back(swiglu(8, 30, 40));  // both ends of the sigmoid
  cases.push_back(gelu(8, 30, 10));
  cases.push_back(gelu(8, 31, 1e-3));
  cases.push_back(swiglu_in_place(5, 22));
  cases.push_back(gelu_in_place(5, 22));
  cases.push_back(swiglu_fused(5, 22));
  const double elements = 1024.0 * 3072;
  cases.push_back(timed(swiglu(1024, 3072), 3 * 4 * elements));
  cases.push_back(timed(gelu(1024, 3072), 2 * 4 * elements));
  cases.push_back(timed(dropped(1024, 768, 0.1), 4 * 4 * 1024.0 * 768));  // the copy's too
  return cases;
}

}  // namespace fivefold::kernels::cases
