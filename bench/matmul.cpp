// Matrix products of real models: our packed kernels and OpenBLAS in turn, in one run, each beside
// this run's own FMA peak.
//   matmul [threads] [rounds] [avx512|avx2|portable] [filter]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kernels/matmul.hpp"
#include "kernels/peak.hpp"
#include "tensor/tensor.hpp"

namespace {

using namespace fivefold;
using namespace fivefold::kernels;
using Clock = std::chrono::steady_clock;

enum class Form { forward, backward_input, backward_weight };
constexpr const char* form_names[] = {"fwd", "dgrad", "wgrad"};

struct Layer {
  const char* name;
  int64_t rows, in, out;
};
constexpr Layer layers[] = {
    {"gpt2 proj", 256, 768, 768},       {"gpt2 qkv", 256, 768, 2304},
    {"gpt2 up", 256, 768, 3072},        {"gpt2 down", 256, 3072, 768},
    {"gpt2 head", 256, 768, 50257},     {"gpt2 proj", 1024, 768, 768},
    {"gpt2 qkv", 1024, 768, 2304},      {"gpt2 up", 1024, 768, 3072},
    {"gpt2 down", 1024, 3072, 768},     {"gpt2 head", 1024, 768, 50257},
    {"llama proj", 2048, 288, 288},     {"llama qkv", 2048, 288, 864},
    {"llama gate+up", 2048, 288, 1536}, {"llama down", 2048, 768, 288},
    {"llama head", 2048, 288, 4096},    {"llama head", 2048, 288, 32000},
    {"one token", 1, 768, 3072},        {"four tokens", 4, 768, 3072},
};

struct Operands {
  Operands(Memory& memory, const Layer& l) {
    const auto make = [&](int64_t rows, int64_t columns) {
      Tensor tensor(memory, Category::workspace, DType::f32, {rows, columns});
      float value = 0.25f;
      for (float& e : tensor.flat<float>())
        e = value = value > 0.5f ? value - 0.77f : value + 0.11f;
      return tensor;
    };
    x = make(l.rows, l.in);
    w = make(l.out, l.in);
    y = make(l.rows, l.out);
    dx = make(l.rows, l.in);
    dw = make(l.out, l.in);
  }
  void compute(Context& ctx, Form form) {
    switch (form) {
      case Form::forward:
        return linear_forward(ctx, x, w, {}, y);
      case Form::backward_input:
        return linear_backward_input(ctx, y, w, dx);
      case Form::backward_weight:
        return linear_backward_weight(ctx, y, x, dw, {});
    }
  }
  Tensor x, w, y, dx, dw;
};

double seconds(Operands& o, Context& ctx, Form form, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) o.compute(ctx, form);
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : int(std::thread::hardware_concurrency());
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  Isa isa = best_isa();
  for (const Isa i : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (argc > 3 && name_of(i) == argv[3]) isa = std::min(isa, i);
  }
  const std::string filter = argc > 4 ? argv[4] : "";
  ThreadPool pool(threads);
  Memory memory;
  Context packed{.pool = pool, .memory = memory, .isa = isa, .matmul = MatmulEngine::packed};
  Context openblas{.pool = pool, .memory = memory, .isa = isa, .matmul = MatmulEngine::openblas};
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  fmt::print("float32, {} threads, packed {}, OpenBLAS kernels {} (OPENBLAS_CORETYPE {})\n",
             threads, name_of(isa), openblas_core(), forced == nullptr ? "unset" : forced);
  fmt::print("{:<14} {:>5} {:>5} {:>6}  {:<5} {:>8} {:>8} {:>6} {:>8} {:>6}\n", "layer", "rows",
             "in", "out", "form", "packed", "openblas", "ratio", "peak", "share");

  double work = 0, packed_time = 0, openblas_time = 0, peak_time = 0;
  for (const Layer& l : layers) {
    Operands o(memory, l);
    for (const Form form : {Form::forward, Form::backward_input, Form::backward_weight}) {
      if (l.rows < 8 && form != Form::forward) continue;
      const std::string row = fmt::format("{:<14} {:>5} {:>5} {:>6}  {:<5}", l.name, l.rows, l.in,
                                          l.out, form_names[int(form)]);
      if (row.find(filter) == std::string::npos) continue;
      const double flop = 2.0 * double(l.rows) * double(l.in) * double(l.out);
      const int repeats = std::max(1, int(0.03 / seconds(o, packed, form, 1)));
      seconds(o, openblas, form, 1);
      std::vector<double> a, b, c;
      for (int r = 0; r < rounds; ++r) {
        a.push_back(seconds(o, packed, form, repeats));
        b.push_back(seconds(o, openblas, form, repeats));
        c.push_back(measure_fma_peak(threads, isa));
      }
      const double peak = median(c), ours = median(a), theirs = median(b);
      fmt::print("{} {:>8.1f} {:>8.1f} {:>6.2f} {:>8.1f} {:>5.1f}%\n", row, flop / ours * 1e-9,
                 flop / theirs * 1e-9, theirs / ours, peak * 1e-9, 100 * flop / ours / peak);
      std::fflush(stdout);
      if (l.rows < 8) continue;
      work += flop;
      packed_time += ours;
      openblas_time += theirs;
      peak_time += flop / peak;
    }
  }
  fmt::print(
      "all of 8 rows or more: packed {:.1f}, OpenBLAS {:.1f} GFLOP/s, ratio {:.2f}, share of "
      "peak {:.1f}%\n",
      work / packed_time * 1e-9, work / openblas_time * 1e-9, openblas_time / packed_time,
      100 * peak_time / packed_time);
  return 0;
}
