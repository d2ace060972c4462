#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/run.hpp"

namespace fivefold::spec {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  int64_t global, micro, accumulation, degree, ranks;
  int64_t expected_global, expected_accumulation;
  const char* error;  // null: legal
};

constexpr Case cases[] = {
    {"derived from one rank", 0, 4, 0, -1, 1, 4, 1, nullptr},
    {"derived from ranks", 0, 4, 0, -1, 7, 28, 1, nullptr},
    {"derived from accumulation", 0, 4, 3, -1, 2, 24, 3, nullptr},
    {"accumulation derived", 48, 4, 0, -1, 3, 48, 4, nullptr},
    {"accumulation agrees", 48, 4, 4, -1, 3, 48, 4, nullptr},
    {"accumulation disagrees", 48, 4, 5, -1, 3, 0, 0,
     "training.gradient_accumulation_steps = 5: global_batch_size 48 over 3 ranks x "
     "micro_batch_size 4 "
     "makes 4; use that"},
    {"does not divide", 50, 4, 0, -1, 3, 0, 0,
     "training.global_batch_size = 50: is not a multiple of 3 ranks x micro_batch_size 4 = 12; use "
     "48 or "
     "60"},
    {"less than one microbatch", 5, 4, 0, -1, 3, 0, 0, "use 12"},
    {"degree agrees", 12, 4, 0, 3, 3, 12, 1, nullptr},
    {"degree disagrees", 12, 4, 0, 2, 3, 0, 0,
     "parallelism.data_parallel_replicate_degree = 2: the run has 3 ranks; use 3, or -1"},
    {"cannot overflow", 0, 1 << 20, 0, -1, int64_t{1} << 60, 0, 0, "makes too many sequences"},
};

TEST(PlanBatch, DividesOrNamesTheNearest) {
  for (const Case& c : cases) {
    RunSpec run;
    run.training.global_batch_size = c.global;
    run.training.micro_batch_size = c.micro;
    run.training.gradient_accumulation_steps = c.accumulation;
    run.parallelism.data_parallel_replicate_degree = c.degree;
    const Result<BatchPlan> plan = plan_batch(run, c.ranks);
    ASSERT_EQ(plan.has_value(), c.error == nullptr) << c.name;
    if (plan) {
      EXPECT_EQ(plan->global_batch_size, c.expected_global) << c.name;
      EXPECT_EQ(plan->accumulation_steps, c.expected_accumulation) << c.name;
      EXPECT_EQ(plan->ranks * plan->micro_batch_size * plan->accumulation_steps,
                plan->global_batch_size)
          << c.name;
    } else {
      EXPECT_THAT(plan.error().message, HasSubstr(c.error)) << c.name;
    }
  }
}

// The nearest legal sizes that a refusal names are legal, and nothing between them is.
TEST(PlanBatch, NamesTheNearestLegalSizes) {
  for (int64_t ranks = 1; ranks <= 7; ++ranks) {
    for (int64_t global = 1; global <= 60; ++global) {
      RunSpec run;
      run.training.micro_batch_size = 3;
      run.training.global_batch_size = global;
      const Result<BatchPlan> plan = plan_batch(run, ranks);
      EXPECT_EQ(plan.has_value(), global % (3 * ranks) == 0);
      if (plan) continue;
      const int64_t above = (global / (3 * ranks) + 1) * 3 * ranks;
      EXPECT_TRUE(plan.error().message.ends_with(std::to_string(above))) << plan.error().message;
    }
  }
}

}  // namespace
}  // namespace fivefold::spec
