#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "kernels/cases/harness.hpp"

namespace fivefold::kernels::cases {

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

namespace {

class EachCase : public testing::TestWithParam<Case> {};

std::string lines(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += fault + "\n";
  return text;
}

TEST_P(EachCase, FastAgreesWithReference) {
  const auto faults = compare_backends(GetParam());
  EXPECT_TRUE(faults.empty()) << lines(faults);
}

TEST_P(EachCase, GradientAgreesWithFiniteDifferences) {
  const auto faults = check_gradients(GetParam());
  EXPECT_TRUE(faults.empty()) << lines(faults);
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& ch : name) ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, EachCase, testing::ValuesIn(all_cases()), test_name);

// ---- The judge is judged: each of these cases is wrong in one way that it must see.

Case sound(const std::string& name = "rmsnorm/3x5") {
  for (Case& c : all_cases()) {
    if (c.name == name) return std::move(c);
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

// The case with `spoil` called after its forward, on the cpu backend only.
Case spoiled_forward(std::function<void(Context&, Tensors& in, Tensors& out)> spoil) {
  Case c = sound();
  c.forward = [inner = c.forward, spoil](Context& ctx, Tensors& in, Tensors& out) {
    inner(ctx, in, out);
    if (ctx.backend == Backend::cpu) spoil(ctx, in, out);
  };
  return c;
}

bool mentions(const std::vector<std::string>& faults, const std::string& words) {
  for (const std::string& fault : faults) {
    if (fault.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(Judge, PassesTheSoundCase) {
  EXPECT_TRUE(compare_backends(sound()).empty());
  EXPECT_TRUE(check_gradients(sound()).empty());
}

TEST(Judge, SeesOneWrongElement) {
  const Case c = spoiled_forward([](Context&, Tensors&, Tensors& out) {
    if (out[0].dtype() == DType::f32) out[0].flat<float>()[7] *= 1.001f;
  });
  EXPECT_TRUE(mentions(compare_backends(c), "rmsnorm/3x5 float32 portable 1 threads: y: relative"));
}

TEST(Judge, SeesAnErrorOfTwoBf16Steps) {
  const Case c = spoiled_forward([](Context&, Tensors&, Tensors& out) {
    if (out[0].dtype() != DType::bf16) return;
    for (bf16& x : out[0].flat<bf16>()) x.bits = uint16_t(x.bits + 2);
  });
  EXPECT_TRUE(mentions(compare_backends(c), "y: relative error"));
}

TEST(Judge, SeesAnErrorOfFloat64InFloat32Digits) {
  const Case c = spoiled_forward([](Context&, Tensors&, Tensors& out) {
    if (out[0].dtype() != DType::f64) return;
    for (double& x : out[0].flat<double>()) x = double(float(x));
  });
  EXPECT_TRUE(mentions(compare_backends(c), "float64"));
}

TEST(Judge, SeesAnElementThatWasNotWritten) {
  Case c = sound();
  c.forward = [](Context& ctx, Tensors& in, Tensors& out) {
    const int64_t rows = ctx.backend == Backend::cpu ? 2 : 3;
    rmsnorm_forward(ctx, in[0].view().slice(0, 0, rows), in[1], 1e-5,
                    out[0].view().slice(0, 0, rows), out[1].view().slice(0, 0, rows));
  };
  EXPECT_TRUE(mentions(compare_backends(c), "y: element 10 is nan"));
}

TEST(Judge, SeesAFaultOfOneInstructionSetOrThreadCount) {
  const Case portable = spoiled_forward([](Context& ctx, Tensors&, Tensors& out) {
    if (ctx.isa == Isa::portable) fivefold::kernels::gelu_forward(ctx, out[0], out[0]);
  });
  EXPECT_TRUE(mentions(compare_backends(portable), "portable"));
  EXPECT_FALSE(mentions(compare_backends(portable), "avx2"));
  const Case three = spoiled_forward([](Context& ctx, Tensors&, Tensors& out) {
    if (ctx.pool.threads() == 3) fivefold::kernels::gelu_forward(ctx, out[0], out[0]);
  });
  EXPECT_TRUE(mentions(compare_backends(three), "3 threads"));
  EXPECT_FALSE(mentions(compare_backends(three), "2 threads"));
}

TEST(Judge, SeesBitsThatDependOnTheNumberOfThreads) {
  const Case c = spoiled_forward([](Context& ctx, Tensors&, Tensors& out) {
    if (out[0].dtype() != DType::f64) return;
    double& x = out[0].flat<double>()[0];
    x *= 1 + ctx.pool.threads() * 1e-15;
  });
  EXPECT_TRUE(mentions(compare_backends(c), "y: not the bits of 1 thread"));
}

TEST(Judge, SeesRunsThatDiffer) {
  const Case c = spoiled_forward([runs = 0](Context&, Tensors&, Tensors& out) mutable {
    if (out[0].dtype() == DType::f64) out[0].flat<double>()[0] *= 1 + ++runs * 1e-15;
  });
  EXPECT_TRUE(mentions(compare_backends(c), "two runs differ"));
}

TEST(Judge, SeesAChangedInput) {
  const Case c = spoiled_forward([](Context&, Tensors& in, Tensors&) {
    if (in[1].dtype() == DType::f32) in[1].flat<float>()[0] = 5;
  });
  EXPECT_TRUE(mentions(compare_backends(c), "input w was changed"));
}

// A term of the gradient left out, on both backends alike.
TEST(Judge, SeesAWrongGradient) {
  Case input = sound();
  input.backward = [inner = input.backward](Context& ctx, Tensors& in, Tensors& out, Tensors& dout,
                                            Tensors& din) {
    inner(ctx, in, out, dout, din);
    for (double& x : din[0].flat<double>()) x *= 1 + 1e-6;
  };
  EXPECT_TRUE(mentions(check_gradients(input), "rmsnorm/3x5: dx along random direction"));
  EXPECT_FALSE(mentions(check_gradients(input), "dw"));
  Case one = sound();
  one.backward = [inner = one.backward](Context& ctx, Tensors& in, Tensors& out, Tensors& dout,
                                        Tensors& din) {
    inner(ctx, in, out, dout, din);
    din[1].flat<double>()[3] += 1e-5;
  };
  EXPECT_TRUE(mentions(check_gradients(one), "dw along element 3"));
  EXPECT_FALSE(mentions(check_gradients(one), "dw along element 2"));
}

TEST(Judge, SeesAGradientThatIsNaN) {
  Case c = sound();
  c.backward = [](Context&, Tensors&, Tensors&, Tensors&, Tensors&) {};
  EXPECT_TRUE(mentions(check_gradients(c), "dx"));
  EXPECT_TRUE(mentions(check_gradients(c), "dw"));
}

TEST(Cases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Case& c : all_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  EXPECT_GT(names.size(), 40u);
}

}  // namespace
}  // namespace fivefold::kernels::cases
