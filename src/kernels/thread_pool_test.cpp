#include "kernels/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fivefold::kernels {
namespace {

TEST(ThreadPool, RunCallsEachThreadOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> calls(size_t(threads), 0);
    for (int i = 0; i < 500; ++i) pool.run([&](int t) { ++calls[size_t(t)]; });
    EXPECT_EQ(calls, std::vector<int>(size_t(threads), 500)) << threads << " threads";
  }
}

TEST(ThreadPool, HelpersWakeFromSleep) {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // long past the spinning
    pool.run([&](int) { ++calls; });
  }
  EXPECT_EQ(calls, 15);
}

TEST(ThreadPool, ParallelForCoversTheRangeInGrains) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 8, 9, 64, 1001}) {
      for (const int64_t grain : {1, 8, 64, 5000}) {
        std::vector<int> seen(size_t(count), 0);
        std::atomic<bool> aligned = true;
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          if (begin % grain != 0 || (end != count && end % grain != 0)) aligned = false;
          for (int64_t i = begin; i < end; ++i) ++seen[size_t(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(size_t(count), 1)) << count << " by " << grain;
        EXPECT_TRUE(aligned) << count << " by " << grain << ", " << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, BarrierSeparatesPhases) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::vector<int> value(size_t(threads), 0);
    std::atomic<int> wrong = 0;
    pool.run([&](int t) {
      for (int round = 1; round <= 200; ++round) {
        value[size_t(t)] = round;
        pool.barrier();
        for (const int v : value) wrong += v != round;
        pool.barrier();
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ThreadPool, ManyPoolsAtOnce) {
  constexpr int ranks = 4;
  std::vector<int64_t> sums(ranks, 0);
  std::vector<std::thread> workers;
  for (int rank = 0; rank < ranks; ++rank) {
    workers.emplace_back([&, rank] {
      ThreadPool pool(2);
      std::vector<int64_t> part(2, 0);
      for (int i = 0; i < 200; ++i) {
        pool.run([&](int t) {
          part[size_t(t)] += i;
          pool.barrier();
        });
      }
      sums[size_t(rank)] = part[0] + part[1];
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(sums, std::vector<int64_t>(ranks, 2 * 199 * 200 / 2));
}

TEST(ThreadPoolDeathTest, RefusesNoThreads) { EXPECT_DEATH(ThreadPool(0), "a pool of 0 threads"); }

}  // namespace
}  // namespace fivefold::kernels
