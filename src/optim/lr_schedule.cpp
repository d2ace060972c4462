#include "optim/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"

namespace fivefold::optim {
namespace {

double decay(const std::string& type, double progress) {
  if (type == "linear") return 1 - progress;
  if (type == "sqrt") return 1 - std::sqrt(progress);
  CHECK(type == "cosine", "lr_scheduler.decay_type = {}", type);
  return (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace

double learning_rate(const spec::OptimizerSpec& optimizer, const spec::LrSchedulerSpec& schedule,
                     int64_t steps, int64_t step) {
  CHECK(step >= 1, "step {}", step);
  const int64_t warmup = std::max<int64_t>(schedule.warmup_steps, 0);
  if (step <= warmup) return optimizer.lr * double(step) / double(warmup);
  const int64_t decaying = std::clamp<int64_t>(std::llround(schedule.decay_ratio * double(steps)),
                                               0, std::max<int64_t>(steps - warmup, 0));
  const int64_t decayed = step - (steps - decaying);
  if (decaying == 0 || decayed <= 0) return optimizer.lr;
  const double progress = std::min(double(decayed) / double(decaying), 1.0);
  const double least = schedule.min_lr_factor;
  return optimizer.lr * (least + (1 - least) * decay(schedule.decay_type, progress));
}

}  // namespace fivefold::optim
