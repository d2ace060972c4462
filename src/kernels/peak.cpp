#include "kernels/peak.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/peak.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Choice {
  Isa isa;
};

}  // namespace

double measure_fma_peak(int threads, Isa isa) {
  const Choice choice{isa};
  const auto burst = PICK(choice, fma_burst);
  ThreadPool pool(threads);
  std::vector<double> flops(size_t(threads), 0);
  const auto slice = [&](int64_t iterations) {
    const auto start = Clock::now();
    pool.run([&](int thread) {
      float sink = 0;
      flops[size_t(thread)] = burst(iterations, &sink);
      CHECK(sink == 0, "the multiplications of the peak measurement diverged: {}", sink);
    });
    double total = 0;
    for (const double f : flops) total += f;
    return total / seconds_since(start);
  };
  // A slice of about 5 ms, sized by a trial that also wakes the cores.
  constexpr int64_t trial = 200'000;
  double rate = 0;
  for (int i = 0; i < 5; ++i) rate = std::max(rate, slice(trial));
  const double per_iteration = (flops[0] / trial) * threads;
  const auto iterations = int64_t(5e-3 * rate / per_iteration);
  std::vector<double> rates;
  for (int i = 0; i < 15; ++i) rates.push_back(slice(iterations));
  return median(rates);
}

double measure_sweep_bandwidth(int threads) {
  const Choice choice{best_isa()};
  const auto pass = PICK(choice, sweep);
  ThreadPool pool(threads);
  Memory memory;
  constexpr int64_t count = 16 << 20;  // four arrays of 64 MiB
  Tensor arrays[4];
  for (Tensor& array : arrays) array = Tensor(memory, Category::workspace, DType::f32, {count});
  float* at[4];
  for (int i = 0; i < 4; ++i) at[i] = arrays[i].flat<float>().data();
  pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
    for (float* array : at) std::fill(array + begin, array + end, 0.0f);
  });
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) {
    const auto start = Clock::now();
    pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      pass(at[0] + begin, at[1] + begin, at[2] + begin, at[3] + begin, end - begin);
    });
    rates.push_back(28.0 * double(count) / seconds_since(start));
  }
  return median(rates);
}

}  // namespace fivefold::kernels
