#include <fmt/format.h>

#include "base/check.hpp"
#include "spec/run.hpp"

namespace fivefold::spec {
namespace {

// "use 12 or 16", "use 4": the multiples of `unit` next to `n`.
std::string nearest(int64_t n, int64_t unit) {
  const int64_t below = n / unit * unit;
  if (below == 0) return fmt::format("use {}", unit);
  return fmt::format("use {} or {}", below, below + unit);
}

}  // namespace

Result<BatchPlan> plan_batch(const RunSpec& run, int64_t ranks) {
  CHECK(ranks >= 1, "{} ranks", ranks);
  const TrainingSpec& t = run.training;
  const int64_t degree = run.parallelism.data_parallel_replicate_degree;
  if (degree != -1 && degree != ranks) {
    return invalid_input(
        "parallelism.data_parallel_replicate_degree = {}: the run has {} rank{}; use "
        "{}, or -1 for the ranks that there are",
        degree, ranks, ranks == 1 ? "" : "s", ranks);
  }
  BatchPlan plan{ranks, t.global_batch_size, t.micro_batch_size, t.gradient_accumulation_steps};
  int64_t unit = 0;  // sequences of one microbatch on every rank
  if (t.micro_batch_size < 1 || __builtin_mul_overflow(ranks, t.micro_batch_size, &unit) ||
      unit > int64_t{1} << 40) {
    return invalid_input(
        "training.micro_batch_size = {}: makes too many sequences with {} ranks; use "
        "less",
        t.micro_batch_size, ranks);
  }
  if (plan.global_batch_size == 0) {
    if (plan.accumulation_steps == 0) plan.accumulation_steps = 1;
    plan.global_batch_size = unit * plan.accumulation_steps;
    return plan;
  }
  if (plan.global_batch_size % unit != 0) {
    return invalid_input(
        "training.global_batch_size = {}: is not a multiple of {} rank{} x "
        "micro_batch_size {} = {}; {}",
        plan.global_batch_size, ranks, ranks == 1 ? "" : "s", t.micro_batch_size, unit,
        nearest(plan.global_batch_size, unit));
  }
  const int64_t accumulation = plan.global_batch_size / unit;
  if (plan.accumulation_steps != 0 && plan.accumulation_steps != accumulation) {
    return invalid_input(
        "training.gradient_accumulation_steps = {}: global_batch_size {} over {} "
        "rank{} x micro_batch_size {} makes {}; use that, or 0 to derive it",
        plan.accumulation_steps, plan.global_batch_size, ranks, ranks == 1 ? "" : "s",
        t.micro_batch_size, accumulation);
  }
  plan.accumulation_steps = accumulation;
  return plan;
}

}  // namespace fivefold::spec
