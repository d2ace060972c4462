#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

using Kind = Operand::Kind;

Case lookup(int64_t rows, int64_t columns, int64_t classes, std::vector<int32_t> ids = {}) {
  Case c;
  c.name = fmt::format("embedding/{}x{}of{}{}", rows, columns, classes, ids.empty() ? "" : "same");
  c.inputs = {{"ids", Kind::indices, {rows}, 1, classes, std::move(ids)},
              {"table", Kind::normal, {classes, columns}}};
  c.outputs = {{"y", Kind::output, {rows, columns}}};
  c.weight = {false, true};
  c.any_threads = true;
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    embedding_forward(ctx, in[0], in[1], out[0]);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    embedding_backward(ctx, in[0], dout[0], din[1]);
  };
  return c;
}

// Learned positions are added to what is there.
Case added(int64_t rows, int64_t columns, int64_t classes) {
  Case c = lookup(rows, columns, classes);
  c.name = fmt::format("embedding/added/{}x{}of{}", rows, columns, classes);
  c.inputs.push_back({"base", Kind::normal, {rows, columns}});
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    convert(ctx, in[2], out[0]);
    embedding_forward(ctx, in[0], in[1], out[0], Write::accumulate);
  };
  c.backward = [](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    embedding_backward(ctx, in[0], dout[0], din[1]);
    convert(ctx, dout[0], din[2]);
  };
  return c;
}

}  // namespace

std::vector<Case> embedding_cases() {
  std::vector<Case> cases;
  cases.push_back(lookup(1, 1, 1));
  cases.push_back(lookup(7, 5, 3));
  cases.push_back(lookup(40, 16, 100));
  cases.push_back(lookup(33, 170, 11));
  cases.push_back(lookup(9, 33, 4, std::vector<int32_t>(9, 2)));
  cases.push_back(added(6, 19, 4));
  Case big = lookup(1024, 768, 8192);
  big.gradient = false;
  big.bytes = 2.0 * 4 * 1024 * 768;
  cases.push_back(std::move(big));
  return cases;
}

}  // namespace fivefold::kernels::cases
