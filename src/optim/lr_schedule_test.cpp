#include "optim/lr_schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fivefold::optim {
namespace {

struct Case {
  const char* name;
  const char* decay_type;
  int64_t warmup_steps;
  double decay_ratio, min_lr_factor;
  int64_t steps, step;
  double expected;  // of lr = 1
};

// Exact values, from the formula in the header with numbers that decimal arithmetic gives by hand.
const Case cases[] = {
    {"first step of the warm-up", "cosine", 10, 1, 0.1, 100, 1, 0.1},
    {"middle of the warm-up", "cosine", 10, 1, 0.1, 100, 5, 0.5},
    {"the warm-up ends at lr", "cosine", 10, 1, 0.1, 100, 10, 1},
    {"no warm-up starts in the decay", "linear", 0, 1, 0, 100, 1, 0.99},
    {"linear, half way", "linear", 10, 1, 0.1, 100, 55, 0.55},
    {"linear, last step", "linear", 10, 1, 0.1, 100, 100, 0.1},
    {"cosine, a third of the way", "cosine", 10, 1, 0, 100, 40, 0.75},
    {"cosine, half way", "cosine", 10, 1, 0.1, 100, 55, 0.55},
    {"cosine, last step", "cosine", 10, 1, 0.1, 100, 100, 0.1},
    {"sqrt, a quarter of the way", "sqrt", 0, 1, 0, 100, 25, 0.5},
    {"sqrt, last step", "sqrt", 0, 1, 0.25, 100, 100, 0.25},
    {"stable before the decay", "linear", 10, 0.2, 0, 100, 50, 1},
    {"stable to its last step", "linear", 10, 0.2, 0, 100, 80, 1},
    {"first step of the decay", "linear", 10, 0.2, 0, 100, 81, 0.95},
    {"decay of a fifth, half way", "linear", 10, 0.2, 0.5, 100, 90, 0.75},
    {"no decay at all", "cosine", 10, 0, 0.1, 100, 100, 1},
    {"the decay gives way to the warm-up", "linear", 60, 0.8, 0, 100, 80, 0.5},
    {"a share that is no whole number is rounded", "linear", 0, 0.25, 0, 10, 8, 2.0 / 3},
    {"past the end", "cosine", 10, 1, 0.1, 100, 150, 0.1},
    {"a warm-up longer than the run", "cosine", 200, 1, 0.1, 100, 100, 0.5},
};

TEST(LearningRate, Table) {
  for (const Case& c : cases) {
    const spec::OptimizerSpec optimizer{.lr = 1};
    const spec::LrSchedulerSpec schedule{c.warmup_steps, c.decay_type, c.decay_ratio,
                                         c.min_lr_factor};
    EXPECT_NEAR(learning_rate(optimizer, schedule, c.steps, c.step), c.expected, 1e-15) << c.name;
  }
}

TEST(LearningRate, ScalesWithLr) {
  const spec::LrSchedulerSpec schedule{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate({.lr = 3e-4}, schedule, 100, 2), 1.5e-4);
}

// Rises, stays, falls; never above lr nor below its least.
TEST(LearningRate, HasOnePeak) {
  for (const char* type : {"linear", "sqrt", "cosine"}) {
    for (const double ratio : {0.0, 0.3, 1.0}) {
      const spec::LrSchedulerSpec schedule{7, type, ratio, 0.1};
      double last = 0;
      for (int64_t step = 1; step <= 60; ++step) {
        const double lr = learning_rate({.lr = 2}, schedule, 50, step);
        if (step <= 7) {
          EXPECT_GT(lr, last) << type << step;
        } else {
          EXPECT_LE(lr, last) << type << step;
          EXPECT_GE(lr, 0.2 - 1e-15) << type << step;
        }
        last = lr;
      }
    }
  }
}

}  // namespace
}  // namespace fivefold::optim
