#include "kernels/cases/harness.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

namespace fivefold::kernels::cases {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double element(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::f32:
      return double(t.flat<float>()[size_t(i)]);
    case DType::f64:
      return t.flat<double>()[size_t(i)];
    case DType::bf16:
      return double(to_float(t.flat<bf16>()[size_t(i)]));
    case DType::i32:
      return t.flat<int32_t>()[size_t(i)];
    case DType::i64:
      return double(t.flat<int64_t>()[size_t(i)]);
  }
  return 0;
}

void set_element(Tensor& t, int64_t i, double value) {
  switch (t.dtype()) {
    case DType::f32:
      t.flat<float>()[size_t(i)] = float(value);
      return;
    case DType::f64:
      t.flat<double>()[size_t(i)] = value;
      return;
    case DType::bf16:
      t.flat<bf16>()[size_t(i)] = to_bf16(float(value));
      return;
    case DType::i32:
      t.flat<int32_t>()[size_t(i)] = int32_t(value);
      return;
    case DType::i64:
      t.flat<int64_t>()[size_t(i)] = int64_t(value);
      return;
  }
}

void fill(Tensor& t, double value) {
  for (int64_t i = 0; i < t.count(); ++i) set_element(t, i, value);
}

// Standard normal times `scale`. Beyond a prime number of elements they repeat: a vocabulary's
// table need not cost a logarithm an element.
void fill_normal(Tensor& t, const std::string& name, double scale) {
  constexpr int64_t period = 65521;
  const Random random(1, stream_of(name));
  for (int64_t i = 0; i < t.count(); ++i) {
    set_element(t, i, i < period ? scale * random.normal(uint64_t(i)) : element(t, i - period));
  }
}

Tensor copy_of(Memory& memory, const Tensor& t) {
  if (!t) return {};
  Tensor copy(memory, Category::workspace, t.dtype(), t.shape());
  if (t.bytes() > 0) std::memcpy(copy.view().data, t.view().data, t.bytes());
  return copy;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.view().data, b.view().data, a.bytes()) == 0);
}

bool is_weight(const Case& c, size_t input) { return input < c.weight.size() && c.weight[input]; }

Tensor make_input(Memory& memory, const Case& c, const Operand& operand, DType dtype) {
  const std::string name = c.name + "/" + operand.name;
  if (operand.kind != Operand::Kind::indices) {
    Tensor t(memory, Category::workspace, dtype, operand.shape);
    fill_normal(t, name, operand.scale);
    return t;
  }
  Tensor t(memory, Category::workspace, DType::i32, operand.shape);
  const auto ids = t.flat<int32_t>();
  const Random random(1, stream_of(name));
  CHECK(operand.values.empty() || operand.values.size() == ids.size(), "{}: {} values for {}", name,
        operand.values.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = operand.values.empty() ? int32_t(random.below(i, uint64_t(operand.limit)))
                                    : operand.values[i];
  }
  return t;
}

// All tensors of one run of a case.
struct Operands {
  Tensors in, out, dout, din;
};

// The same contents each time. What an op must write starts as NaN; what it must add to, as 0.
Operands make_operands(Memory& memory, const Case& c, DType dtype) {
  Operands o;
  const DType accumulator = accumulator_of(dtype);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    o.in.push_back(make_input(memory, c, c.inputs[i], dtype));
    if (c.inputs[i].kind != Operand::Kind::normal) {
      o.din.emplace_back();
      continue;
    }
    o.din.emplace_back(memory, Category::workspace, is_weight(c, i) ? accumulator : dtype,
                       c.inputs[i].shape);
    fill(o.din.back(), is_weight(c, i) ? 0 : nan);
  }
  for (const Operand& operand : c.outputs) {
    const bool statistics = operand.kind == Operand::Kind::statistics;
    o.out.emplace_back(memory, Category::workspace, statistics ? accumulator : dtype,
                       operand.shape);
    fill(o.out.back(), nan);
    if (statistics) continue;
    o.dout.emplace_back(memory, Category::workspace, dtype, operand.shape);
    fill_normal(o.dout.back(), c.name + "/d" + operand.name, 1);
  }
  return o;
}

Tensors copies_of(Memory& memory, const Tensors& tensors) {
  Tensors copies;
  for (const Tensor& t : tensors) copies.push_back(copy_of(memory, t));
  return copies;
}

Operands copy_of(Memory& memory, const Operands& o) {
  return {copies_of(memory, o.in), copies_of(memory, o.out), copies_of(memory, o.dout),
          copies_of(memory, o.din)};
}

void run(const Case& c, Context& ctx, Operands& o) {
  c.forward(ctx, o.in, o.out);
  if (c.backward) c.backward(ctx, o.in, o.out, o.dout, o.din);
}

// What is compared after a run, in the order of results().
std::vector<std::string> result_names(const Case& c) {
  std::vector<std::string> names;
  for (const Operand& operand : c.outputs) names.push_back(operand.name);
  for (const Operand& operand : c.inputs) {
    if (c.backward && operand.kind == Operand::Kind::normal) names.push_back("d" + operand.name);
  }
  return names;
}

std::vector<const Tensor*> results(const Case& c, const Operands& o) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : o.out) all.push_back(&t);
  for (const Tensor& t : o.din) {
    if (c.backward && t) all.push_back(&t);
  }
  return all;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-12;
    case DType::bf16:
      return 0x1p-8;
    default:
      return 1e-5;
  }
}

// Empty, or what is wrong with `got`.
std::string judge(const Tensor& got, const Tensor& expected) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double a = element(got, i), b = element(expected, i);
    if (std::isinf(b) && a == b) continue;  // a log-sum-exp of nothing
    if (!std::isfinite(a) || !std::isfinite(b)) {
      return fmt::format("element {} is {}, the reference has {}", i, a, b);
    }
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  if (error <= tolerance_of(got.dtype())) return {};
  return fmt::format("relative error {:.2e} in {}", error, name_of(got.dtype()));
}

// The operands of one dtype before any run, and after the reference's.
struct Expected {
  Operands start, end;
};

// The faults of one backend setting, each under `where`. Returns the operands of its run.
Operands compare_one(const Case& c, Context& ctx, const Expected& expected,
                     const std::string& where, std::vector<std::string>& faults) {
  const auto names = result_names(c);
  Operands first = copy_of(ctx.memory, expected.start);
  run(c, ctx, first);
  const auto got = results(c, first), want = results(c, expected.end);
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string fault = judge(*got[i], *want[i]);
    if (!fault.empty()) faults.push_back(fmt::format("{}: {}: {}", where, names[i], fault));
  }
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (same_bits(first.in[i], expected.start.in[i])) continue;
    faults.push_back(fmt::format("{}: input {} was changed", where, c.inputs[i].name));
  }
  Operands second = copy_of(ctx.memory, expected.start);
  run(c, ctx, second);
  const auto repeated = results(c, second);
  for (size_t i = 0; i < got.size(); ++i) {
    if (same_bits(*got[i], *repeated[i])) continue;
    faults.push_back(fmt::format("{}: {}: two runs differ", where, names[i]));
  }
  return first;
}

std::vector<Isa> isas_here() {
  std::vector<Isa> isas = {Isa::portable};
  if (best_isa() != Isa::portable) isas.push_back(Isa::avx2);
  if (best_isa() == Isa::avx512) isas.push_back(Isa::avx512);
  return isas;
}

// sum(dout * out) of a forward with the reference.
double loss(const Case& c, Context& ctx, Operands& o) {
  c.forward(ctx, o.in, o.out);
  double sum = 0;
  size_t next = 0;
  for (size_t k = 0; k < o.out.size(); ++k) {
    if (c.outputs[k].kind == Operand::Kind::statistics) continue;
    const auto out = o.out[k].flat<double>(), dout = o.dout[next++].flat<double>();
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
  }
  return sum;
}

// The derivative of the loss along `direction` over input k.
double slope(const Case& c, Context& ctx, Operands& o, size_t k,
             const std::vector<double>& direction) {
  const double step = 1e-3 * std::min(1.0, c.inputs[k].scale);
  const auto x = o.in[k].flat<double>();
  const std::vector<double> before(x.begin(), x.end());
  const auto at = [&](double distance) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = before[i] + distance * direction[i];
    return loss(c, ctx, o);
  };
  const double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
  std::copy(before.begin(), before.end(), x.begin());
  return (8 * near - far) / (12 * step);
}

double norm_of(const Tensor& t) {
  double sum = 0;
  for (const double x : t.flat<double>()) sum += x * x;
  return std::sqrt(sum);
}

// Medians, after a run that is not counted.
template <class F>
double median_seconds(double budget, const F& f) {
  using Clock = std::chrono::steady_clock;
  f();
  std::vector<double> times;
  double spent = 0;
  while (times.empty() || (spent < budget && times.size() < 1000)) {
    const auto start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    spent += times.back();
  }
  std::nth_element(times.begin(), times.begin() + int64_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto family : {linear_cases, embedding_cases, norm_cases, rope_cases, attention_cases,
                            activation_cases, cross_entropy_cases}) {
    for (Case& c : family()) all.push_back(std::move(c));
  }
  return all;
}

std::vector<std::string> compare_backends(const Case& c) {
  Memory memory;
  std::vector<std::string> faults;
  const auto names = result_names(c);
  const std::vector<Isa> isas = is_timed(c) ? std::vector<Isa>{best_isa()} : isas_here();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    ThreadPool single(1);
    Context reference{single, memory, Backend::reference};
    Expected expected;
    expected.start = make_operands(memory, c, dtype);
    expected.end = copy_of(memory, expected.start);
    run(c, reference, expected.end);
    for (const Isa isa : isas) {
      Operands of_one_thread;
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        Context ctx{pool, memory, Backend::cpu, isa};
        const std::string where =
            fmt::format("{} {} {} {} threads", c.name, name_of(dtype), name_of(isa), threads);
        Operands end = compare_one(c, ctx, expected, where, faults);
        if (threads == 1) {
          of_one_thread = std::move(end);
          continue;
        }
        if (!c.any_threads) continue;
        const auto one = results(c, of_one_thread), many = results(c, end);
        for (size_t i = 0; i < one.size(); ++i) {
          if (same_bits(*one[i], *many[i])) continue;
          faults.push_back(fmt::format("{}: {}: not the bits of 1 thread", where, names[i]));
        }
      }
    }
  }
  return faults;
}

std::vector<std::string> check_gradients(const Case& c) {
  std::vector<std::string> faults;
  if (!c.gradient || !c.backward) return faults;
  Memory memory;
  ThreadPool pool(1);
  Context ctx{pool, memory, Backend::reference};
  Operands o = make_operands(memory, c, DType::f64);
  run(c, ctx, o);
  double all = 0;
  for (const Tensor& t : o.din) {
    if (t) all = std::hypot(all, norm_of(t));
  }
  for (size_t k = 0; k < o.in.size(); ++k) {
    if (c.inputs[k].kind != Operand::Kind::normal) continue;
    const auto gradient = o.din[k].flat<double>();
    const double unit = std::max(norm_of(o.din[k]), 1e-3 * all);
    std::vector<double> direction(gradient.size());
    const auto check = [&](const std::string& along) {
      double expected = 0;
      for (size_t i = 0; i < direction.size(); ++i) expected += gradient[i] * direction[i];
      const double measured = slope(c, ctx, o, k, direction);
      // Written so that NaN fails.
      if (std::abs(measured - expected) <= 1e-7 * unit) return;
      faults.push_back(fmt::format("{}: d{} along {}: {:.9g}, by finite differences {:.9g}", c.name,
                                   c.inputs[k].name, along, expected, measured));
    };
    for (int trial = 0; trial < 3; ++trial) {
      const Random random(uint64_t(trial) + 2, stream_of(c.name + "/" + c.inputs[k].name));
      for (size_t i = 0; i < direction.size(); ++i) direction[i] = random.normal(i);
      check(fmt::format("random direction {}", trial));
    }
    if (direction.size() > 64) continue;
    for (size_t i = 0; i < direction.size(); ++i) {
      std::fill(direction.begin(), direction.end(), 0);
      direction[i] = 1;
      check(fmt::format("element {}", i));
    }
  }
  return faults;
}

bool is_timed(const Case& c) { return c.flops > 0 || c.bytes > 0; }

Timing time_case(const Case& c, Context& ctx, double seconds) {
  Operands o = make_operands(ctx.memory, c, DType::f32);
  Timing timing;
  timing.forward = median_seconds(seconds / 2, [&] { c.forward(ctx, o.in, o.out); });
  if (c.backward) {
    timing.backward =
        median_seconds(seconds / 2, [&] { c.backward(ctx, o.in, o.out, o.dout, o.din); });
  }
  return timing;
}

}  // namespace fivefold::kernels::cases
