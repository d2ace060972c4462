#include <cstring>

#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

struct Sizes {
  const char* name;
  int64_t rows, in, out;
  bool bias = false;
  int64_t slack = 0;        // columns of x and y that belong to nobody: strided rows
  bool accumulate = false;  // y starts as an input
  bool timed = false;
};

// Around the micro-tiles, the blocks of K and powers of two; what a model really runs is timed.
constexpr Sizes table[] = {
    {"one of all", 1, 1, 1},
    {"one row, odd sizes", 1, 7, 33, true},
    {"one column", 7, 33, 1},
    {"one input", 5, 1, 49, true},
    {"no input", 3, 0, 5, true},
    {"few rows", 7, 40, 33},
    {"a tile", 8, 48, 48, true},
    {"past a tile", 9, 49, 50, true},
    {"powers of two", 16, 64, 32},
    {"strided rows", 13, 20, 17, true, 3},
    {"strided by a power of two", 8, 24, 24, false, 8},
    {"accumulates", 11, 19, 23, false, 0, true},
    {"accumulates, bias, strided", 6, 30, 10, true, 5, true},
    {"over a block of K", 4, 401, 6, true},
    {"GPT-2 up, 256 tokens", 256, 768, 3072, true, 0, false, true},
    {"GPT-2 down, 256 tokens", 256, 3072, 768, true, 0, false, true},
    {"Llama up, 2048 tokens", 2048, 288, 768, false, 0, false, true},
    {"one token", 1, 768, 3072, false, 0, false, true},
};

Case make(const Sizes& s) {
  Case c;
  c.name = std::string("linear/") + s.name;
  c.inputs = {{.name = "x", .shape = {s.rows, s.in + s.slack}},
              {.name = "w", .shape = {s.out, s.in}, .scale = s.in > 64 ? 0.05 : 0.5}};
  c.weight = {false, true};
  size_t bias = 0, start = 0;  // positions among the inputs; 0: absent
  if (s.bias) {
    bias = c.inputs.size();
    c.inputs.push_back({.name = "bias", .shape = {s.out}});
    c.weight.push_back(true);
  }
  if (s.accumulate) {
    start = c.inputs.size();
    c.inputs.push_back({.name = "y before", .shape = {s.rows, s.out + s.slack}});
    c.weight.push_back(false);
  }
  c.outputs = {{.name = "y", .kind = Operand::Kind::output, .shape = {s.rows, s.out + s.slack}}};

  c.forward = [=](Context& ctx, Tensors& in, Tensors& out) {
    out[0].zero();  // the slack
    if (start != 0) std::memcpy(out[0].view().data, in[start].view().data, in[start].bytes());
    linear_forward(ctx, in[0].view().slice(1, 0, s.in), in[1],
                   bias != 0 ? ConstView(in[bias]) : ConstView(), out[0].view().slice(1, 0, s.out),
                   s.accumulate ? Write::accumulate : Write::overwrite);
  };
  c.backward = [=](Context& ctx, Tensors& in, Tensors&, Tensors& dout, Tensors& din) {
    const View dy = dout[0].view().slice(1, 0, s.out);
    din[0].zero();
    linear_backward_input(ctx, dy, in[1], din[0].view().slice(1, 0, s.in));
    linear_backward_weight(ctx, dy, in[0].view().slice(1, 0, s.in), din[1],
                           bias != 0 ? View(din[bias]) : View());
    if (start != 0) std::memcpy(din[start].view().data, dout[0].view().data, dout[0].bytes());
  };
  if (s.timed) {
    c.flops = 2.0 * double(s.rows) * double(s.in) * double(s.out);
    c.bytes = 4.0 * double(s.rows * s.in + s.in * s.out + s.rows * s.out);
    c.gradient = false;
  }
  return c;
}

}  // namespace

std::vector<Case> linear_cases() {
  std::vector<Case> cases;
  for (const Sizes& s : table) cases.push_back(make(s));
  return cases;
}

}  // namespace fivefold::kernels::cases
