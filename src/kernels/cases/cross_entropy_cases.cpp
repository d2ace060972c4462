#include <cstring>

#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {
namespace {

struct Setup {
  std::string name;
  int64_t rows = 1, classes = 1;
  double scale = 1;                   // of the logits
  std::vector<int32_t> targets = {};  // drawn when empty
};

// The op's gradient is that of a scaled sum of losses, so that sum is the case's output.
template <class T>
void scaled_sum(const Tensor& losses, double scale, Tensor& total) {
  Accumulator<T> sum = 0;
  for (const auto loss : losses.flat<Accumulator<T>>()) sum += loss;
  store(total.flat<T>()[0], sum * Accumulator<T>(scale));
}

double first_element(const Tensor& t) {
  if (t.dtype() == DType::f64) return t.flat<double>()[0];
  return t.dtype() == DType::f32 ? t.flat<float>()[0] : to_float(t.flat<bf16>()[0]);
}

Case case_of(const Setup& s) {
  using Kind = Operand::Kind;
  Case c;
  c.name = "cross_entropy/" + s.name;
  Operand targets{"targets", Kind::indices, {s.rows}};
  targets.limit = s.classes;
  targets.values = s.targets;
  c.inputs = {{"logits", Kind::normal, {s.rows, s.classes}, s.scale}, targets};
  c.outputs = {{"sum", Kind::output, {1}},
               {"losses", Kind::statistics, {s.rows}},
               {"lse", Kind::statistics, {s.rows}}};
  const double scale = 1.0 / double(s.rows);
  c.forward = [scale](Context& ctx, Tensors& in, Tensors& out) {
    cross_entropy_forward(ctx, in[0], in[1], out[1], out[2]);
    switch (in[0].dtype()) {
      case DType::f64:
        return scaled_sum<double>(out[1], scale, out[0]);
      case DType::f32:
        return scaled_sum<float>(out[1], scale, out[0]);
      default:
        return scaled_sum<bf16>(out[1], scale, out[0]);
    }
  };
  c.backward = [scale](Context& ctx, Tensors& in, Tensors& out, Tensors& dout, Tensors& din) {
    std::memcpy(din[0].view().data, in[0].view().data, in[0].bytes());
    cross_entropy_backward(ctx, din[0], in[1], out[2], scale * first_element(dout[0]));
  };
  c.gradient = s.rows * s.classes <= 1000;
  return c;
}

}  // namespace

std::vector<Case> cross_entropy_cases() {
  std::vector<Case> all;
  for (const Setup& s : std::vector<Setup>{
           {"1x1", 1, 1},
           {"3x2", 3, 2},
           {"5x17", 5, 17},
           {"4x33, one ignored", 4, 33, 1, {3, -1, 0, 32}},
           {"2x64, all ignored", 2, 64, 1, {-1, -1}},
           {"7x130, spread", 7, 130, 10},
           {"3x1024", 3, 1024},
           {"2x5003", 2, 5003, 4},
       }) {
    all.push_back(case_of(s));
  }
  Case timed = case_of({"8x50257", 8, 50257});
  timed.bytes = 4.0 * 8 * 50257;
  all.push_back(timed);
  return all;
}

}  // namespace fivefold::kernels::cases
