// The kernels' timing table, and the memory-bound ops beside a bare sweep of the same bytes in the
// same run.
//   kernels [threads] [avx512|avx2|portable] [filter]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cases/harness.hpp"
#include "kernels/peak.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels.inl"
#include "kernels/cpu/each_isa.inl"

namespace {

using namespace fivefold;
using namespace fivefold::kernels;

void print_cases(Context& ctx, const std::string& filter) {
  ThreadPool single(1);
  Context reference{single, ctx.memory, Backend::reference};
  fmt::print("\nfloat32, {} threads, {}; times in ms, medians; reference: one thread\n",
             ctx.pool.threads(), name_of(ctx.isa));
  fmt::print("{:<44} {:>9} {:>16} {:>9} {:>9} {:>9}\n", "case", "forward", "rate", "backward",
             "x ref fwd", "x ref bwd");
  for (const cases::Case& c : cases::all_cases()) {
    if (!cases::is_timed(c) || c.name.find(filter) == std::string::npos) continue;
    const cases::Timing fast = cases::time_case(c, ctx, 0.4);
    const cases::Timing slow = cases::time_case(c, reference, 0.1);
    const std::string rate = c.flops > 0
                                 ? fmt::format("{:.1f} GFLOP/s", c.flops / fast.forward * 1e-9)
                                 : fmt::format("{:.1f} GB/s", c.bytes / fast.forward * 1e-9);
    fmt::print("{:<44} {:>9.3f} {:>16} {:>9.3f} {:>9.1f} {:>9.1f}\n", c.name, fast.forward * 1e3,
               rate, fast.backward * 1e3, slow.forward / fast.forward,
               slow.backward / fast.backward);
    std::fflush(stdout);
  }
}

struct Row {
  const char* name;
  double bytes;  // an element
  std::function<void()> work;
  std::vector<double> seconds = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// GPT-2's parameters: arrays far beyond every cache. All rows in turn, several rounds.
void print_memory(Context& ctx) {
  constexpr int64_t count = 124'439'808;
  const auto make = [&](DType dtype) {
    Tensor t(ctx.memory, Category::optimizer, dtype, {count});
    ctx.pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      if (dtype == DType::f32) {
        std::fill(t.flat<float>().begin() + begin, t.flat<float>().begin() + end, 0.01f);
      } else {
        std::fill(t.flat<bf16>().begin() + begin, t.flat<bf16>().begin() + end, bf16{});
      }
    });
    return t;
  };
  Tensor w = make(DType::f32), g = make(DType::f32), m = make(DType::f32), v = make(DType::f32);
  Tensor low = make(DType::bf16);
  const AdamW args{.lr = 1e-4, .weight_decay = 0.1, .step = 10};
  const auto swept = [&](auto pass) {
    return [&, pass] {
      ctx.pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
        pass(w.flat<float>().data() + begin, g.flat<float>().data() + begin,
             m.flat<float>().data() + begin, v.flat<float>().data() + begin, end - begin);
      });
    };
  };
  double norm = 0;
  std::vector<Row> rows;
  rows.push_back({"sweep (r w g m v, w w m v)", 28, swept(PICK(ctx, sweep))});
  rows.push_back({"adamw", 28, [&] { adamw(ctx, args, w, g, m, v, {}); }});
  rows.push_back({"sweep, non-temporal stores", 28, swept(PICK(ctx, sweep_streamed<float>))});
  rows.push_back({"adamw with bf16 copy", 30, [&] { adamw(ctx, args, w, g, m, v, low); }});
  rows.push_back({"sum_of_squares f32", 4, [&] { norm += sum_of_squares(ctx, g); }});
  rows.push_back({"sum_of_squares bf16", 2, [&] { norm += sum_of_squares(ctx, low); }});
  rows.push_back({"convert f32 to f32", 8, [&] { convert(ctx, g, m); }});
  rows.push_back({"convert f32 += f32", 12, [&] { convert(ctx, g, m, Write::accumulate); }});
  rows.push_back({"convert f32 to bf16", 6, [&] { convert(ctx, g, low); }});
  rows.push_back({"convert bf16 to f32", 6, [&] { convert(ctx, low, m); }});
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 10; ++round) {
    for (Row& row : rows) {
      const auto start = Clock::now();
      row.work();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) row.seconds.push_back(seconds);
    }
  }
  fmt::print("\n{} elements, {} threads, {}; 9 rounds in turn, medians (norm {:.3g})\n", count,
             ctx.pool.threads(), name_of(ctx.isa), norm);
  for (const Row& row : rows) {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.seconds.size(); ++i) {
      ratios.push_back(row.seconds[i] / row.bytes / (rows[0].seconds[i] / rows[0].bytes));
    }
    const double seconds = median(row.seconds);
    fmt::print("{:<28} {:>8.1f} ms {:>7.1f} GB/s   time per byte, of the sweep's: {:.3f}\n",
               row.name, seconds * 1e3, row.bytes * double(count) / seconds * 1e-9, median(ratios));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : int(std::thread::hardware_concurrency());
  Isa isa = best_isa();
  for (const Isa i : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (argc > 2 && name_of(i) == argv[2]) isa = std::min(isa, i);
  }
  const std::string filter = argc > 3 ? argv[3] : "";
  ThreadPool pool(std::max(1, threads));
  Memory memory;
  Context ctx{.pool = pool, .memory = memory, .isa = isa};
  fmt::print("FMA peak {:.1f} GFLOP/s\n", measure_fma_peak(pool.threads(), isa) * 1e-9);
  if (filter.empty() || filter == "memory") print_memory(ctx);
  if (filter != "memory") print_cases(ctx, filter);
  return 0;
}
