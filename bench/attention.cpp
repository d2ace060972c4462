// Attention and cross-entropy at the sizes of a training step, against the machine's own peak:
// median of several runs. Operations are counted over the pairs of query and key that a causal mask
// leaves, 4 D a pair forward and 10 D backward, so computing masked pairs shows as a loss.
//
//   bench_attention [threads] [avx512|avx2|portable]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/peak.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

double median_seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  body();
  std::vector<double> seconds;
  const auto start = Clock::now();
  while (seconds.size() < 5 || (Clock::now() - start < std::chrono::milliseconds(700))) {
    const auto before = Clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + long(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

Tensor filled(Memory& memory, DType dtype, const Shape& shape) {
  Tensor t(memory, Category::activation, dtype, shape);
  const Random random(1, 2);
  for (int64_t i = 0; i < t.count(); ++i) {
    const float x = float(random.uniform(uint64_t(i)) * 2 - 1);
    if (dtype == DType::f32) {
      t.flat<float>()[size_t(i)] = x;
    } else {
      t.flat<bf16>()[size_t(i)] = to_bf16(x);
    }
  }
  return t;
}

void attention(Context& ctx, const char* name, int64_t b, int64_t tq, int64_t tk, int64_t h,
               int64_t g, int64_t d, DType dtype, double dropout_rate, double peak) {
  Memory& memory = ctx.memory;
  const bool training = tq == tk;
  Tensor qkv = filled(memory, dtype, {b, tk, h + 2 * g, d});
  Tensor dqkv = filled(memory, dtype, {b, tk, h + 2 * g, d});
  Tensor out = filled(memory, dtype, {b, tq, h, d}), dout = filled(memory, dtype, {b, tq, h, d});
  Tensor lse(memory, Category::activation, DType::f32, {b, h, tq});
  const auto part = [&](Tensor& t, int64_t from, int64_t to) {
    return t.view().slice(2, from, to);
  };
  const AttentionShape shape{.q_offset = tk - tq, .scale = 1 / std::sqrt(double(d))};
  std::vector<int64_t> tokens(size_t(b * tq));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = int64_t(i);
  std::optional<AttentionDropout> dropout;
  if (dropout_rate > 0)
    dropout = {dropout_rate, Random(1, 1), {tokens.data(), DType::i64, {b, tq}}};
  const View q = part(qkv, 0, h).slice(1, 0, tq), k = part(qkv, h, h + g),
             v = part(qkv, h + g, h + 2 * g);
  const double forward =
      median_seconds([&] { attention_forward(ctx, shape, q, k, v, {}, dropout, out, lse); });
  const double pairs =
      double(b * h) * (training ? double(tq) * double(tq + 1) / 2 : double(tq) * double(tk));
  const double flops = 4 * double(d) * pairs;
  std::printf("%-34s fwd %9.3f ms %6.1f GFLOP/s %3.0f %%", name, forward * 1e3,
              flops / forward * 1e-9, 100 * flops / forward / peak);
  if (training) {
    const double backward = median_seconds([&] {
      attention_backward(ctx, shape, dout, q, k, v, out, lse, {}, dropout, part(dqkv, 0, h),
                         part(dqkv, h, h + g), part(dqkv, h + g, h + 2 * g));
    });
    std::printf("   bwd %9.3f ms %6.1f GFLOP/s %3.0f %%", backward * 1e3,
                2.5 * flops / backward * 1e-9, 250 * flops / backward / peak);
  } else {
    std::printf("   keys and values at %.1f GB/s",
                2.0 * double(b * g * tk * d) * double(size_of(dtype)) / forward * 1e-9);
  }
  std::printf("\n");
}

void cross_entropy(Context& ctx, int64_t rows, int64_t classes) {
  Tensor logits = filled(ctx.memory, DType::f32, {rows, classes});
  Tensor losses(ctx.memory, Category::activation, DType::f32, {rows});
  Tensor lse(ctx.memory, Category::activation, DType::f32, {rows});
  Tensor targets(ctx.memory, Category::activation, DType::i32, {rows});
  targets.zero();
  const double forward =
      median_seconds([&] { cross_entropy_forward(ctx, logits, targets, losses, lse); });
  const double backward =
      median_seconds([&] { cross_entropy_backward(ctx, logits, targets, lse, 1e-3); });
  const double bytes = 4.0 * double(rows * classes);
  std::printf(
      "cross-entropy %5ld x %5ld           fwd %9.3f ms %6.1f GB/s read"
      "         bwd %9.3f ms %6.1f GB/s read and written\n",
      long(rows), long(classes), forward * 1e3, bytes / forward * 1e-9, backward * 1e3,
      2 * bytes / backward * 1e-9);
}

int run(int threads, Isa isa) {
  ThreadPool pool(threads);
  Memory memory;
  Context ctx{.pool = pool, .memory = memory, .isa = isa};
  const double peak = measure_fma_peak(threads, isa);
  std::printf("%d threads, %s, FMA peak %.1f GFLOP/s\n", threads, name_of(isa).data(), peak * 1e-9);
  attention(ctx, "GPT-2 B4 T64", 4, 64, 64, 12, 12, 64, DType::f32, 0, peak);
  attention(ctx, "GPT-2 B4 T256", 4, 256, 256, 12, 12, 64, DType::f32, 0, peak);
  attention(ctx, "GPT-2 B1 T1024", 1, 1024, 1024, 12, 12, 64, DType::f32, 0, peak);
  attention(ctx, "small Llama B8 T256 D48", 8, 256, 256, 6, 6, 48, DType::f32, 0, peak);
  attention(ctx, "grouped B1 T1024 H8 G2 D128", 1, 1024, 1024, 8, 2, 128, DType::f32, 0, peak);
  attention(ctx, "one group B1 T1024 H8 G1 D64", 1, 1024, 1024, 8, 1, 64, DType::f32, 0, peak);
  attention(ctx, "GPT-2 B4 T256 bfloat16", 4, 256, 256, 12, 12, 64, DType::bf16, 0, peak);
  attention(ctx, "GPT-2 B4 T256 dropout 0.1", 4, 256, 256, 12, 12, 64, DType::f32, 0.1, peak);
  attention(ctx, "decode B1 Tk4096 H12 D64", 1, 1, 4096, 12, 12, 64, DType::f32, 0, peak);
  attention(ctx, "decode B8 Tk1024 H8 G2 D128", 8, 1, 1024, 8, 2, 128, DType::f32, 0, peak);
  cross_entropy(ctx, 256, 50257);
  cross_entropy(ctx, 2048, 32000);
  return 0;
}

}  // namespace
}  // namespace fivefold::kernels

int main(int argc, char** argv) {
  using namespace fivefold::kernels;
  Isa isa = best_isa();
  for (const Isa known : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (argc > 2 && name_of(known) == argv[2]) isa = known;
  }
  return run(argc > 1 ? std::atoi(argv[1]) : 2, isa);
}
