#pragma once
// The threads of one rank: the caller and threads - 1 helpers. No other pool exists in a rank, so
// cores are never oversubscribed by a library's own.

#include <cstdint>
#include <functional>
#include <memory>

namespace fivefold::kernels {

class ThreadPool {
 public:
  // Requires threads >= 1. One thread means that everything runs on the caller.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return threads_; }

  // Calls body(thread) once on each thread, thread in [0, threads()), and waits for all.
  // Not reentrant: body must not call run on the same pool.
  void run(const std::function<void(int thread)>& body);

  // Calls body(begin, end) on disjoint ranges that cover [0, count); every range but the last is a
  // multiple of `grain`. Which thread takes which range is not fixed: body's result for an index
  // must not depend on the range that it came in.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end)>& body);

  // Inside a body of run only, and by every thread of the pool: returns once all have called it.
  void barrier();

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace fivefold::kernels
