// Times a training step (forward, backward, AdamW) of a preset on random tokens, in one process, as
// bench/train_step.py sets it beside its peer. Prints one JSON line.
//   train_step --model gpt2_124m --micro-batch 4 --seq-len 64 --threads 2 --steps 6

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "kernels/peak.hpp"
#include "model/model.hpp"
#include "optim/optimizer.hpp"
#include "step/memory_ledger.hpp"

namespace fivefold {
namespace {

struct Options {
  std::string model = "gpt2_124m", dtype = "float32", engine = "automatic", checkpointing = "none";
  int64_t micro_batch = 4, seq_len = 64, steps = 6, warmup = 2;
  int threads = 2;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status run(const Options& o) {
  const spec::ModelSpec spec = TRY(spec::load_model(o.model));
  Memory memory;
  kernels::ThreadPool pool(o.threads);
  kernels::Context ctx{pool, memory};
  if (o.engine == "openblas") ctx.matmul = kernels::MatmulEngine::openblas;
  const DType dtype = o.dtype == "bfloat16" ? DType::bf16 : o.dtype == "float64" ? DType::f64 : DType::f32;
  ParameterSet parameters(memory, spec::parameters_of(spec), dtype, true);
  model::Model model(spec, parameters, ctx,
                     spec::keep_of({.mode = o.checkpointing}, spec.num_layers), o.seq_len, 0);
  optim::AdamWOptimizer optimizer(ctx, parameters, {.lr = 1e-4, .weight_decay = 0.1});
  initialize(parameters, 0, optimizer.weights());

  const int64_t rows = o.micro_batch * o.seq_len;
  std::vector<int32_t> tokens(static_cast<size_t>(rows)), targets(tokens.size()),
      positions(tokens.size());
  std::vector<double> total, forward, backward, update;
  double loss = 0;
  const double fma_peak = kernels::measure_fma_peak(o.threads, ctx.isa);
  for (int64_t i = 0; i < o.steps + o.warmup; ++i) {
    const Random random(1, uint64_t(i));
    for (size_t n = 0; n < tokens.size(); ++n) {
      tokens[n] = int32_t(random.below(2 * n, uint64_t(spec.vocab_size)));
      targets[n] = int32_t(random.below(2 * n + 1, uint64_t(spec.vocab_size)));
      positions[n] = int32_t(n % size_t(o.seq_len));
    }
    model::Input input;
    input.sequences = o.micro_batch;
    input.seq_len = o.seq_len;
    input.tokens = ConstView(tokens.data(), DType::i32, {rows});
    input.targets = ConstView(targets.data(), DType::i32, {rows});
    input.positions = ConstView(positions.data(), DType::i32, {rows});
    const double t0 = now();
    model::Tape tape;
    loss = model.forward(input, tape) / double(rows);
    const double t1 = now();
    model.backward(input, tape, {});
    const double t2 = now();
    const double norm = optimizer.gradient_norm(ctx) / double(rows);
    optimizer.step(ctx, 1e-4, i + 1, 1 / double(rows) / std::max(1.0, norm));
    parameters.zero_gradients();
    const double t3 = now();
    if (i < o.warmup) continue;
    total.push_back(t3 - t0);
    forward.push_back(t1 - t0);
    backward.push_back(t2 - t1);
    update.push_back(t3 - t2);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double seconds = median(total), per_second = double(rows) / seconds;
  fmt::print("{{\"model\": \"{}\", \"parameters\": {}, \"dtype\": \"{}\", \"engine\": \"{}\", "
             "\"isa\": \"{}\", \"micro_batch\": {}, \"seq_len\": {}, \"threads\": {}, \"ms\": {:.2f}, "
             "\"best_ms\": {:.2f}, \"forward_ms\": {:.2f}, \"backward_ms\": {:.2f}, "
             "\"optimizer_ms\": {:.2f}, \"tokens_per_s\": {:.1f}, \"gflops\": {:.1f}, "
             "\"fma_peak_gflops\": {:.1f}, \"mfu\": {:.4f}, \"loss\": {:.4f}, \"peak_rss_mib\": {}, "
             "\"peak_tensor_mib\": {}}}\n",
             spec.name, parameters.count(), o.dtype, o.engine, kernels::name_of(ctx.isa),
             o.micro_batch, o.seq_len, o.threads, seconds * 1e3,
             *std::min_element(total.begin(), total.end()) * 1e3, median(forward) * 1e3,
             median(backward) * 1e3, median(update) * 1e3, per_second,
             per_second * step::model_flops_per_token(spec, o.seq_len) / 1e9, fma_peak / 1e9,
             per_second * step::model_flops_per_token(spec, o.seq_len) / fma_peak, loss,
             usage.ru_maxrss / 1024, memory.at_total_peak().total() >> 20);
  return {};
}

}  // namespace
}  // namespace fivefold

int main(int argc, char** argv) {
  fivefold::Options o;
  CLI::App app("Times a training step");
  app.add_option("--model", o.model);
  app.add_option("--micro-batch", o.micro_batch);
  app.add_option("--seq-len", o.seq_len);
  app.add_option("--threads", o.threads);
  app.add_option("--steps", o.steps);
  app.add_option("--warmup", o.warmup);
  app.add_option("--dtype", o.dtype)->check(CLI::IsMember({"float32", "bfloat16", "float64"}));
  app.add_option("--engine", o.engine)->check(CLI::IsMember({"automatic", "openblas"}));
  app.add_option("--activation-checkpoint", o.checkpointing)
      ->check(CLI::IsMember({"none", "selective", "full"}));
  CLI11_PARSE(app, argc, argv);
  const fivefold::Status status = fivefold::run(o);
  if (status) return 0;
  fmt::print(stderr, "error: {}\n", status.error().message);
  return fivefold::exit_code(status.error().code);
}
