#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

using Kind = Operand::Kind;
constexpr double eps = 1e-5;

Case rmsnorm(int64_t rows, int64_t columns, double scale = 1) {
  Case c;
  c.name = fmt::format("rmsnorm/{}x{}{}", rows, columns, scale == 1 ? "" : "scaled");
  c.inputs = {{"x", Kind::normal, {rows, columns}, scale}, {"w", Kind::normal, {columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}}, {"rstd", Kind::statistics, {rows}}};
  c.weight = {false, true};
  c.any_threads = true;
  c.gradient = rows * columns <= 4096;
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    rmsnorm_forward(ctx, in[0], in[1], eps, out[0], out[1]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    rmsnorm_backward_input(ctx, dout[0], in[0], in[1], out[1], din[0]);
    rmsnorm_backward_weight(ctx, dout[0], in[0], out[1], din[1]);
  };
  return c;
}

Case layernorm(int64_t rows, int64_t columns) {
  Case c;
  c.name = fmt::format("layernorm/{}x{}", rows, columns);
  c.inputs = {{"x", Kind::normal, {rows, columns}},
              {"w", Kind::normal, {columns}},
              {"b", Kind::normal, {columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}},
               {"mean", Kind::statistics, {rows}},
               {"rstd", Kind::statistics, {rows}}};
  c.weight = {false, true, true};
  c.any_threads = true;
  c.gradient = rows * columns <= 4096;
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    layernorm_forward(ctx, in[0], in[1], in[2], eps, out[0], out[1], out[2]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    layernorm_backward_input(ctx, dout[0], in[0], in[1], out[1], out[2], din[0]);
    layernorm_backward_weight(ctx, dout[0], in[0], out[1], out[2], din[1], din[2]);
  };
  return c;
}

// y in the place of x, dx in that of dy.
Case rmsnorm_in_place(int64_t rows, int64_t columns) {
  Case c = rmsnorm(rows, columns);
  c.name = fmt::format("rmsnorm/in place/{}x{}", rows, columns);
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    convert(ctx, in[0], out[0]);
    rmsnorm_forward(ctx, out[0], in[1], eps, out[0], out[1]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    convert(ctx, dout[0], din[0]);
    rmsnorm_backward_weight(ctx, din[0], in[0], out[1], din[1]);
    rmsnorm_backward_input(ctx, din[0], in[0], in[1], out[1], din[0]);
  };
  return c;
}

// A residual connection: x is also passed on, so that dx is added to what came back through it.
template <class Base>
Case residual(Base base, const char* name) {
  Case c = base;
  c.name = fmt::format("{}/residual", name);
  c.outputs.push_back({"skip", Kind::output, c.inputs[0].shape});
  const bool centred = c.inputs.size() == 3;
  c.forward = [inner = base.forward](Context& ctx, Tensors& in, Tensors& out) {
    inner(ctx, in, out);
    convert(ctx, in[0], out.back());
  };
  c.backward = [centred](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    convert(ctx, dout[1], din[0]);
    if (centred) {
      layernorm_backward_input(ctx, dout[0], in[0], in[1], out[1], out[2], din[0],
                               Write::accumulate);
      layernorm_backward_weight(ctx, dout[0], in[0], out[1], out[2], din[1], din[2]);
    } else {
      rmsnorm_backward_input(ctx, dout[0], in[0], in[1], out[1], din[0], Write::accumulate);
      rmsnorm_backward_weight(ctx, dout[0], in[0], out[1], din[1]);
    }
  };
  return c;
}

// Heads [1, 1 + H) of a fused [N, H + 2, D] projection, as QK-norm sees them: two strides.
Case rmsnorm_of_heads(int64_t rows, int64_t heads, int64_t width) {
  Case c;
  c.name = fmt::format("rmsnorm/heads/{}x{}x{}", rows, heads, width);
  c.inputs = {{"x", Kind::normal, {rows, heads + 2, width}}, {"w", Kind::normal, {width}}};
  c.outputs = {{"y", Kind::output, {rows, heads, width}},
               {"rstd", Kind::statistics, {rows, heads}}};
  c.weight = {false, true};
  c.any_threads = true;
  c.forward = [heads](Context& ctx, Tensors& in, Tensors& out) {
    rmsnorm_forward(ctx, in[0].view().slice(1, 1, 1 + heads), in[1], eps, out[0], out[1]);
  };
  c.backward = [heads](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    const View x = in[0].view().slice(1, 1, 1 + heads);
    din[0].zero();
    rmsnorm_backward_input(ctx, dout[0], x, in[1], out[1], din[0].view().slice(1, 1, 1 + heads));
    rmsnorm_backward_weight(ctx, dout[0], x, out[1], din[1]);
  };
  return c;
}

}  // namespace

std::vector<Case> norm_cases() {
  std::vector<Case> cases;
  constexpr int64_t shapes[][2] = {{1, 3}, {3, 5}, {33, 17}, {7, 64}, {2, 769}, {90, 40}};
  for (const auto& [rows, columns] : shapes) {
    cases.push_back(rmsnorm(rows, columns));
    cases.push_back(layernorm(rows, columns));
  }
  cases.push_back(rmsnorm(4, 24, 1e-3));  // eps matters
  cases.push_back(rmsnorm_in_place(6, 37));
  cases.push_back(residual(rmsnorm(9, 21), "rmsnorm"));
  cases.push_back(residual(layernorm(9, 21), "layernorm"));
  cases.push_back(rmsnorm_of_heads(5, 3, 16));
  cases.push_back(rmsnorm_of_heads(4, 1, 20));
  // Several blocks of rows in the weight gradient, the last one ragged.
  cases.push_back(rmsnorm(101, 2050));
  cases.push_back(layernorm(101, 2050));
  for (Case c : {rmsnorm(1024, 768), layernorm(1024, 768)}) {
    c.bytes = 2.0 * 4 * 1024 * 768;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace fivefold::kernels::cases
