#include "comm/threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "comm/world_cases.hpp"

namespace fivefold::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Options patient{milliseconds(60'000)};

std::string text_of(const Status& status) { return status ? "" : status.error().message; }

class Worlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Worlds, testing::Values(1, 2, 3, 4, 7));

TEST_P(Worlds, AllReduceIsTheSerialFoldToTheBit) {
  EXPECT_EQ(text_of(run_threads(GetParam(), patient, cases::all_reduces)), "");
}
TEST_P(Worlds, BroadcastGivesTheRootsData) {
  EXPECT_EQ(text_of(run_threads(GetParam(), patient, cases::broadcasts)), "");
}
TEST_P(Worlds, MetersCountWhatTheContractSays) {
  EXPECT_EQ(text_of(run_threads(GetParam(), patient, cases::meters)), "");
}
TEST_P(Worlds, DuplicatesAreIndependent) {
  EXPECT_EQ(text_of(run_threads(GetParam(), patient, cases::duplicates)), "");
}

TEST_P(Worlds, ABarrierHoldsEverybodyBack) {
  std::atomic<int> arrived{0};
  const int ranks = GetParam();
  EXPECT_EQ(text_of(run_threads(ranks, patient,
                                [&](Communicator& world) -> Status {
                                  for (int round = 1; round <= 50; ++round) {
                                    ++arrived;
                                    TRY(world.barrier());
                                    if (arrived < round * ranks)
                                      return invalid_input("passed early");
                                    TRY(world.barrier());
                                  }
                                  return {};
                                })),
            "");
  EXPECT_EQ(arrived, 50 * ranks);
}

TEST_P(Worlds, TwoGroupsWorkFromTwoThreadsOfARank) {
  EXPECT_EQ(text_of(run_threads(
                GetParam(), patient,
                [](Communicator& world) -> Status {
                  const auto twin = TRY(world.duplicate("dp"));
                  Status other;
                  std::thread thread([&] {
                    for (int i = 0; i < 30 && other; ++i) {
                      other = cases::all_reduce_is_the_serial_fold<float>(*twin, Reduce::sum, 3000);
                    }
                  });
                  Status mine;
                  for (int i = 0; i < 30 && mine; ++i) {
                    mine = cases::all_reduce_is_the_serial_fold<double>(world, Reduce::sum, 2000);
                  }
                  thread.join();
                  TRY(mine);
                  return other;
                })),
            "");
}

// The results of all ranks, since run_threads reports one.
std::vector<Status> run_all(int ranks, const Options& options,
                            const std::function<Status(Communicator&)>& body) {
  std::vector<Status> results(static_cast<size_t>(ranks));
  (void)run_threads(ranks, options, [&](Communicator& world) -> Status {
    results[size_t(world.rank())] = body(world);
    return {};
  });
  return results;
}

TEST(Threads, AMissedDeadlineNamesAxisCallAndMissingRanks) {
  const auto results = run_all(4, Options{milliseconds(100)}, [](Communicator& world) -> Status {
    const auto group = TRY(world.duplicate("dp"));
    TRY(group->barrier());
    if (world.rank() == 1 || world.rank() == 3) return {};
    std::vector<float> data(100);
    return group->all_reduce(View(data.data(), DType::f32, {100}), Reduce::sum);
  });
  for (const int rank : {0, 2}) {
    ASSERT_FALSE(results[size_t(rank)]);
    EXPECT_EQ(results[size_t(rank)].error().code, Error::Code::timeout);
    EXPECT_THAT(text_of(results[size_t(rank)]),
                HasSubstr("dp: all_reduce (sum) of 100 float32, call 2: no sign of ranks 1, 3 of 4 "
                          "within 0.1 s"));
  }
  EXPECT_TRUE(results[1] && results[3]);
}

TEST(Threads, WhoComesAfterATimeoutIsTurnedAway) {
  std::atomic<bool> timed_out{false};
  const auto results = run_all(2, Options{milliseconds(50)}, [&](Communicator& world) -> Status {
    if (world.rank() == 0) {
      const Status status = world.barrier();
      timed_out = true;
      return status;
    }
    while (!timed_out) std::this_thread::yield();
    return world.barrier();
  });
  EXPECT_EQ(results[0].error().code, Error::Code::timeout);
  EXPECT_EQ(results[1].error().code, Error::Code::peer_lost);
  EXPECT_THAT(text_of(results[1]), AllOf(HasSubstr("no longer wait"), HasSubstr("rank 1 of 2")));
}

TEST(Threads, AbandonWakesWhoWaitsInAnyGroup) {
  const auto results = run_all(3, patient, [](Communicator& world) -> Status {
    const auto group = TRY(world.duplicate("dp"));
    if (world.rank() == 2) {
      world.abandon("disk full");
      return {};
    }
    return world.rank() == 0 ? group->barrier() : world.barrier();
  });
  for (const int rank : {0, 1}) {
    ASSERT_FALSE(results[size_t(rank)]);
    EXPECT_EQ(results[size_t(rank)].error().code, Error::Code::peer_lost);
    EXPECT_THAT(text_of(results[size_t(rank)]), HasSubstr("rank 2 gave up: disk full"));
  }
}

TEST(Threads, AFailingBodyStopsTheOthersAndItsErrorIsReported) {
  const Status status = run_threads(4, patient, [](Communicator& world) -> Status {
    if (world.rank() == 2) return io_error("cannot write the log");
    for (;;) TRY(world.barrier());
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::io);
  EXPECT_EQ(status.error().message, "cannot write the log");
}

struct Mismatch {
  const char* name;
  std::function<Status(Communicator&)> first, second;
  const char* text;
};

Status reduce(Communicator& world, DType dtype, int64_t count, Reduce op) {
  std::vector<double> data(2000);
  return world.all_reduce(View(data.data(), dtype, {count}), op);
}

TEST(Threads, CallsThatDoNotMatchAreReportedByName) {
  const Mismatch mismatches[] = {
      {"op", [](auto& w) { return w.barrier(); },
       [](auto& w) { return reduce(w, DType::f32, 10, Reduce::sum); },
       "rank 0 call 1, barrier; rank 2 call 1, all_reduce (sum) of 10 float32"},
      {"count", [](auto& w) { return reduce(w, DType::f32, 10, Reduce::sum); },
       [](auto& w) { return reduce(w, DType::f32, 1000, Reduce::sum); }, "of 1000 float32"},
      {"dtype", [](auto& w) { return reduce(w, DType::f32, 1000, Reduce::sum); },
       [](auto& w) { return reduce(w, DType::f64, 1000, Reduce::sum); }, "of 1000 float64"},
      {"reduction", [](auto& w) { return reduce(w, DType::f32, 1000, Reduce::sum); },
       [](auto& w) { return reduce(w, DType::f32, 1000, Reduce::max); }, "all_reduce (max)"},
      {"root",
       [](auto& w) {
         double x = 0;
         return w.broadcast(View(&x, DType::f64, {1}), 0);
       },
       [](auto& w) {
         double x = 0;
         return w.broadcast(View(&x, DType::f64, {1}), 1);
       },
       "of 1 float64 from rank 1"},
  };
  for (const Mismatch& m : mismatches) {
    const auto results = run_all(3, patient, [&](Communicator& world) {
      return world.rank() == 2 ? m.second(world) : m.first(world);
    });
    for (const Status& result : results) {
      ASSERT_FALSE(result) << m.name;
      EXPECT_EQ(result.error().code, Error::Code::invalid_input) << m.name;
      EXPECT_THAT(text_of(result), AllOf(HasSubstr("world"), HasSubstr(m.text))) << m.name;
    }
  }
}

TEST(Threads, AfterAMismatchTheGroupIsUnusable) {
  const auto results = run_all(2, patient, [](Communicator& world) -> Status {
    (void)reduce(world, DType::f32, world.rank() + 1, Reduce::sum);
    return world.barrier();
  });
  for (const Status& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Error::Code::peer_lost);
  }
}

TEST(Threads, AloneEveryCollectiveIsFree) {
  const auto world = alone();
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(text_of(cases::all_reduces(*world)), "");
  EXPECT_EQ(text_of(cases::broadcasts(*world)), "");
  EXPECT_EQ(world->meter().bytes_sent, 0);
  EXPECT_TRUE(world->barrier());
}

// Failures at random moments: whatever the interleaving, nobody hangs, nobody crashes, and a call
// that reports success has the right sums.
TEST(Threads, RanksThatGiveUpAtRandomNeverCorruptTheOthers) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed, 1);
    const int quitter = int(random.below(0, 4));
    const int quits_at = int(random.below(1, 6));
    const Status status = run_threads(4, patient, [&](Communicator& world) -> Status {
      for (int call = 0;; ++call) {
        if (world.rank() == quitter && call == quits_at) return io_error("seed {}", seed);
        // Buffers of the call's own: a peer that still wrote to them would be seen by sanitizers.
        TRY(cases::all_reduce_is_the_serial_fold<float>(world, Reduce::sum, 2000));
      }
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Error::Code::io) << text_of(status);
  }
}

}  // namespace
}  // namespace fivefold::comm
