#include <cmath>

#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

using Kind = Operand::Kind;

// (cos, sin) of position * 10000^(-2i/D).
std::vector<double> angle_table(int64_t positions, int64_t half) {
  std::vector<double> table;
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = double(p) * std::pow(10000.0, -double(i) / double(half));
      table.push_back(std::cos(angle));
      table.push_back(std::sin(angle));
    }
  }
  return table;
}

// `skipped` heads before the rotated ones make x a strided view.
Case rotate(int64_t rows, int64_t heads, int64_t width, int64_t skipped = 0) {
  const int64_t positions = 50;
  Case c;
  c.name = fmt::format("rope/{}x{}x{}{}", rows, heads, width, skipped > 0 ? "strided" : "");
  const Shape shape = {rows, skipped + heads, width};
  c.inputs = {{"x", Kind::normal, shape}, {"positions", Kind::indices, {rows}, 1, positions}};
  c.outputs = {{"y", Kind::output, shape}};
  c.any_threads = true;
  const auto turn = [=, table = angle_table(positions, width / 2)](
                        Context& ctx, Tensor& from, Tensor& ids, Tensor& to, Rotation rotation) {
    convert(ctx, from, to);
    rope(ctx, to.view().slice(1, skipped, skipped + heads), ids,
         ConstView(table.data(), DType::f64, {positions, width / 2, 2}), rotation);
  };
  c.forward = [turn](Context& ctx, Tensors& in, Tensors& out) {
    turn(ctx, in[0], in[1], out[0], Rotation::forward);
  };
  c.backward = [turn](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    turn(ctx, dout[0], in[1], din[0], Rotation::backward);
  };
  return c;
}

}  // namespace

std::vector<Case> rope_cases() {
  std::vector<Case> cases;
  cases.push_back(rotate(1, 1, 2));
  cases.push_back(rotate(5, 3, 10));
  cases.push_back(rotate(7, 2, 64));
  cases.push_back(rotate(4, 2, 64, 3));
  cases.push_back(rotate(3, 1, 300));
  Case big = rotate(1024, 12, 64);
  big.gradient = false;
  big.bytes = 4.0 * 4 * 1024 * 768;  // the copy's too
  cases.push_back(std::move(big));
  return cases;
}

}  // namespace fivefold::kernels::cases
