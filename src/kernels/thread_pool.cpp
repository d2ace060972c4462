#include "kernels/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fivefold::kernels {
namespace {

using Clock = std::chrono::steady_clock;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `word` differs from `old`: a pause loop for the usual gap between two kernels, then
// yields (another rank may need this core), then sleep. A waiter whose spinning was in vain spins
// half as long the next time: with more threads than cores spinning only takes time from others.
class Waiter {
 public:
  explicit Waiter(bool oversubscribed)
      : longest_(oversubscribed ? shortest : std::chrono::nanoseconds(50'000)), spin_(longest_) {}

  void wait(std::atomic<uint32_t>& word, uint32_t old) {
    const auto start = Clock::now();
    while (true) {
      for (int i = 0; i < 64; ++i) {
        if (word.load(std::memory_order_acquire) != old) {
          spin_ = std::min(longest_, spin_ * 2);
          return;
        }
        pause();
      }
      const auto waited = Clock::now() - start;
      if (waited > spin_) break;
      if (waited > yield_after) std::this_thread::yield();
    }
    spin_ = std::max(shortest, spin_ / 2);
    while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
  }

 private:
  static constexpr std::chrono::nanoseconds shortest{2'000};
  static constexpr std::chrono::nanoseconds yield_after{10'000};
  std::chrono::nanoseconds longest_, spin_;
};

}  // namespace

struct ThreadPool::State {
  // Each word on a cache line of its own: helpers spin on `epoch` while `running` is counted down.
  alignas(64) std::atomic<uint32_t> epoch{0};      // bodies handed out
  alignas(64) std::atomic<uint32_t> finished{0};   // the last epoch that all helpers have left
  alignas(64) std::atomic<int> running{0};         // helpers still in the body
  alignas(64) std::atomic<int> arrived{0};         // at the barrier
  alignas(64) std::atomic<uint32_t> phase{0};      // barriers passed
  const std::function<void(int)>* body = nullptr;  // published by `epoch`; null: end
  std::vector<Waiter> waiters;                     // one a thread, touched by it alone
  std::vector<std::thread> helpers;

  void help(int thread) {
    uint32_t seen = 0;
    while (true) {
      waiters[size_t(thread)].wait(epoch, seen);
      ++seen;
      if (body == nullptr) return;
      (*body)(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        finished.store(seen, std::memory_order_release);
        finished.notify_one();
      }
    }
  }

  void start(const std::function<void(int)>* next) {
    body = next;
    running.store(int(helpers.size()), std::memory_order_relaxed);
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  CHECK(threads >= 1, "a pool of {} threads", threads);
  const unsigned cores = std::thread::hardware_concurrency();
  state_->waiters.assign(size_t(threads), Waiter(cores != 0 && unsigned(threads) > cores));
  state_->helpers.reserve(size_t(threads - 1));
  for (int t = 1; t < threads; ++t) {
    state_->helpers.emplace_back([this, t] { state_->help(t); });
  }
}

ThreadPool::~ThreadPool() {
  if (threads_ > 1) state_->start(nullptr);
  for (std::thread& helper : state_->helpers) helper.join();
}

void ThreadPool::run(const std::function<void(int)>& body) {
  if (threads_ == 1) return body(0);
  const uint32_t before = state_->finished.load(std::memory_order_relaxed);
  state_->start(&body);
  body(0);
  state_->waiters[0].wait(state_->finished, before);
}

void ThreadPool::parallel_for(int64_t count, int64_t grain,
                              const std::function<void(int64_t, int64_t)>& body) {
  CHECK(grain >= 1, "a grain of {}", grain);
  if (count <= 0) return;
  const int64_t chunks = (count + grain - 1) / grain;
  if (threads_ == 1 || chunks == 1) return body(0, count);
  run([&](int thread) {
    const int64_t begin = chunks * thread / threads_ * grain;
    const int64_t end = std::min(count, chunks * (thread + 1) / threads_ * grain);
    if (begin < end) body(begin, end);
  });
}

void ThreadPool::barrier() {
  if (threads_ == 1) return;
  State& s = *state_;
  const uint32_t phase = s.phase.load(std::memory_order_relaxed);
  if (s.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    s.arrived.store(0, std::memory_order_relaxed);
    s.phase.store(phase + 1, std::memory_order_release);
    s.phase.notify_all();
    return;
  }
  // Not the thread's own waiter: which thread comes here first changes, so nothing is learnt.
  Waiter(false).wait(s.phase, phase);
}

}  // namespace fivefold::kernels
