#pragma once

#include <cstdint>

#include "spec/run.hpp"

namespace fivefold::optim {

// The learning rate of `step` (from 1) in a run of `steps`:
//
//   warm-up   step <= w:           lr * step / w                   w = warmup_steps
//   stable    step <= steps - d:   lr                              d = round(decay_ratio * steps),
//   decay     after:               lr * (m + (1 - m) * f(p))           at most steps - w
//
// with m = min_lr_factor, p = (step - (steps - d)) / d, so that p = 1 at the last step, and f(p) =
// 1 - p (linear), 1 - sqrt(p) (sqrt) or (1 + cos(pi p)) / 2 (cosine). Past `steps` it stays where
// it ended.
//
// Requires  a decay_type of those three (load_run accepts no other); step >= 1.
// Source    Loshchilov & Hutter, "SGDR", 2017 (cosine); Hägele et al., "Scaling laws and
//           compute-optimal training beyond fixed training durations", 2024 (1 - sqrt, WSD).
double learning_rate(const spec::OptimizerSpec& optimizer, const spec::LrSchedulerSpec& schedule,
                     int64_t steps, int64_t step);

}  // namespace fivefold::optim
