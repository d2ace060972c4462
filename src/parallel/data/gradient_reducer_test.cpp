#include "parallel/data/gradient_reducer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "base/random.hpp"
#include "comm/threads.hpp"
#include "parallel/data/same_start.hpp"

namespace fivefold::parallel {
namespace {

using comm::Communicator;
using testing::HasSubstr;

constexpr comm::Options patient{std::chrono::milliseconds(60'000)};

std::string text_of(const Status& status) { return status ? "" : status.error().message; }

// Seven parameters of uneven sizes, 1,543 elements.
std::vector<spec::ParameterSpec> some_parameters() {
  std::vector<spec::ParameterSpec> specs;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{40, 16}, {16}, {16, 16}, {7}, {16, 32}, {48}, {64}}) {
    spec::ParameterSpec spec;
    spec.name = fmt::format("p{}", specs.size());
    spec.shape = shape;
    specs.push_back(spec);
  }
  return specs;
}

template <class T>
void fill(const ParameterSet& set, const Parameter& p, int rank, int64_t step) {
  const Random random{uint64_t(step), uint64_t(rank)};
  for (int64_t i = 0; i < p.count; ++i) {
    set.gradients().as<T>()[p.offset + i] = T(random.normal(uint64_t(p.offset + i)));
  }
}

// In rank order, as the contract says.
template <class T>
std::vector<T> serial_sum(int64_t count, int ranks, int64_t step) {
  std::vector<T> sum(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      const T x = T(Random(uint64_t(step), uint64_t(rank)).normal(uint64_t(i)));
      sum[size_t(i)] = rank == 0 ? x : sum[size_t(i)] + x;
    }
  }
  return sum;
}

using Backward = std::function<void(GradientReducer&, const std::function<void(size_t)>& compute)>;

// The model's own order: head first, embedding last, some layers as ranges.
void in_order(GradientReducer& reducer, const std::function<void(size_t)>& compute) {
  compute(6);
  compute(5);
  reducer.mark_ready(5, 6);
  compute(4);
  reducer.mark_ready(4, 4);
  compute(3);
  compute(2);
  compute(1);
  reducer.mark_ready(1, 3);
  compute(0);
  reducer.mark_ready(0, 0);
}

// Against the buckets' order, and the last two parameters left to finish().
void out_of_order(GradientReducer& reducer, const std::function<void(size_t)>& compute) {
  for (size_t i = 0; i < 7; ++i) compute(i);
  for (const size_t i : {0, 3, 1, 5, 2}) reducer.mark_ready(i, i);
}

template <class T>
Status steps_match(Communicator& world, const ReducerOptions& options, const Backward& backward) {
  Memory memory;
  ParameterSet set(memory, some_parameters(), DTypeOf<T>::value, true);
  GradientReducer reducer(set, TRY(world.duplicate("dp")), options);
  for (int64_t step = 1; step <= 5; ++step) {
    reducer.begin();
    backward(reducer, [&](size_t i) { fill<T>(set, set.all()[i], world.rank(), step); });
    TRY(reducer.finish());
    const std::vector<T> want = serial_sum<T>(set.count(), world.size(), step);
    if (std::memcmp(want.data(), set.gradients().data, want.size() * sizeof(T)) != 0) {
      return invalid_input("step {}: other bits on rank {}", step, world.rank());
    }
    if (world.size() > 1 && reducer.times().buckets != reducer.bucket_count()) {
      return invalid_input("{} buckets reduced", reducer.times().buckets);
    }
  }
  return {};
}

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(World, Ranks, testing::Values(1, 2, 3, 4));

TEST_P(Ranks, SumsAreTheSerialFoldWhateverBucketsOrderAndOverlap) {
  for (const int64_t bucket_bytes : {4, 100, 1024, 25 << 20}) {
    if (bucket_bytes == 4 && GetParam() > 2) continue;  // 1,543 buckets: two ranks say enough
    for (const bool overlap : {true, false}) {
      for (const Backward& backward : {Backward(in_order), Backward(out_of_order)}) {
        const ReducerOptions options{bucket_bytes, overlap};
        EXPECT_EQ(text_of(comm::run_threads(GetParam(), patient,
                                            [&](Communicator& world) {
                                              return steps_match<float>(world, options, backward);
                                            })),
                  "")
            << bucket_bytes << " bytes, overlap " << overlap;
      }
    }
  }
}

TEST_P(Ranks, Float64GradientsToo) {
  EXPECT_EQ(text_of(comm::run_threads(GetParam(), patient,
                                      [](Communicator& world) {
                                        return steps_match<double>(world, {1000, true}, in_order);
                                      })),
            "");
}

TEST_P(Ranks, SendsTwiceTheBytesButOneShare) {
  const int ranks = GetParam();
  const Status status = comm::run_threads(ranks, patient, [&](Communicator& world) -> Status {
    Memory memory;
    ParameterSet set(memory, some_parameters(), DType::bf16, true);
    set.zero_gradients();
    GradientReducer reducer(set, TRY(world.duplicate("dp")), {.bucket_bytes = 500});
    reducer.begin();
    TRY(reducer.finish());
    int64_t sent = reducer.meter().bytes_sent;
    TRY(world.all_reduce(View(&sent, DType::i64, {1}), comm::Reduce::sum));
    if (sent == 2 * (ranks - 1) * set.count() * 4) return {};
    return invalid_input("{} bytes", sent);
  });
  EXPECT_EQ(text_of(status), "");
}

TEST(GradientReducer, CutsBucketsFromTheEnd) {
  Memory memory;
  ParameterSet set(memory, some_parameters(), DType::f32, true);
  ASSERT_EQ(set.count(), 1543);
  EXPECT_EQ(GradientReducer(set, comm::alone(), {.bucket_bytes = 4000}).bucket_count(), 2);
  EXPECT_EQ(GradientReducer(set, comm::alone(), {.bucket_bytes = 4 * 1543}).bucket_count(), 1);
  EXPECT_EQ(GradientReducer(set, comm::alone(), {.bucket_bytes = 4}).bucket_count(), 1543);
}

// A bucket leaves while backward is still at work: the last parameter is only computed once the
// peers have seen the first bucket's sum arrive in this rank's own buffer.
TEST(GradientReducer, ABucketIsOutBeforeTheBackwardPassEnds) {
  std::atomic<bool> first_is_out{false};
  const Status status = comm::run_threads(2, patient, [&](Communicator& world) -> Status {
    Memory memory;
    ParameterSet set(memory, some_parameters(), DType::f32, true);
    set.zero_gradients();
    GradientReducer reducer(set, TRY(world.duplicate("dp")), {.bucket_bytes = 64 * 4});
    reducer.begin();
    reducer.mark_ready(6, 6);
    while (reducer.meter().bytes_sent == 0) std::this_thread::yield();
    first_is_out = true;
    return reducer.finish();
  });
  EXPECT_EQ(text_of(status), "");
  EXPECT_TRUE(first_is_out);
}

TEST(GradientReducer, APeerThatStopsInMidStepEndsTheOthers) {
  const Status status = comm::run_threads(3, patient, [&](Communicator& world) -> Status {
    Memory memory;
    ParameterSet set(memory, some_parameters(), DType::f32, true);
    set.zero_gradients();
    GradientReducer reducer(set, TRY(world.duplicate("dp")), {.bucket_bytes = 1000});
    reducer.begin();
    reducer.mark_ready(4, 6);
    if (world.rank() == 1) return fail(Error::Code::not_finite, "NaN in layer 3");
    return reducer.finish();
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::not_finite);
}

TEST(GradientReducer, AnErrorIsReportedByEveryLaterFinish) {
  std::atomic<bool> judged{false};
  const Status status =
      comm::run_threads(2, {std::chrono::milliseconds(50)}, [&](Communicator& world) -> Status {
        Memory memory;
        ParameterSet set(memory, some_parameters(), DType::f32, true);
        set.zero_gradients();
        auto group = TRY(world.duplicate("dp"));
        if (world.rank() == 1) {
          // Silent rather than in another call, whose own deadline might pass first.
          while (!judged) std::this_thread::yield();
          return {};
        }
        GradientReducer reducer(set, std::move(group), {});
        reducer.begin();
        const Status first = reducer.finish();
        reducer.begin();
        const Status second = reducer.finish();
        judged = true;
        if (first || second) return invalid_input("success without a peer");
        return second;
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::timeout);
  EXPECT_THAT(text_of(status), HasSubstr("dp: all_reduce (sum) of 1543 float32, call 1: no sign of "
                                         "rank 1 of 2"));
}

TEST(SameStart, NamesTheRanksThatDiffer) {
  const Status status = comm::run_threads(4, patient, [&](Communicator& world) -> Status {
    Memory memory;
    ParameterSet set(memory, some_parameters(), DType::bf16, false);
    std::memset(set.values().data, 0, size_t(set.count()) * 2);
    TRY(verify_same_parameters(set, world));
    if (world.rank() % 2 == 1) set.values().as<bf16>()[1000 + world.rank()].bits = 1;
    return verify_same_parameters(set, world);
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::invalid_input);
  EXPECT_THAT(text_of(status), HasSubstr("rank 1, 3 differ from rank 0's"));
}

TEST(SameStart, ABroadcastMakesThemEqual) {
  EXPECT_EQ(text_of(comm::run_threads(3, patient,
                                      [&](Communicator& world) -> Status {
                                        Memory memory;
                                        ParameterSet set(memory, some_parameters(), DType::f32,
                                                         false);
                                        for (float& x : set.values().flat<float>()) {
                                          x = float(world.rank());
                                        }
                                        TRY(broadcast_parameters(set, world, 2));
                                        TRY(verify_same_parameters(set, world));
                                        if (set.values().as<float>()[7] == 2) return {};
                                        return invalid_input("not the root's values");
                                      })),
            "");
}

}  // namespace
}  // namespace fivefold::parallel
