#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/check.hpp"
#include "data/loader.hpp"

namespace fivefold::data {

struct Prefetcher::State {
  const Loader& loader;
  std::function<Request(int64_t)> request_at;
  size_t depth;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Result<Batch>> ready;
  bool stopping = false;
  std::thread worker;

  State(const Loader& from, std::function<Request(int64_t)> requests, size_t most)
      : loader(from), request_at(std::move(requests)), depth(most) {}

  void run() {
    for (int64_t i = 0;; ++i) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopping || ready.size() < depth; });
        if (stopping) return;
      }
      const Request request = request_at(i);
      Result<Batch> batch = loader.load(request.split, request.first, request.count);
      const bool failed = !batch;
      {
        const std::lock_guard lock(mutex);
        ready.push_back(std::move(batch));
      }
      changed.notify_all();
      if (failed) return;  // nothing comes after an error
    }
  }
};

Prefetcher::Prefetcher(const Loader& loader, std::function<Request(int64_t)> request_at,
                       int64_t depth)
    : state_(std::make_unique<State>(loader, std::move(request_at),
                                     size_t(std::max<int64_t>(depth, 1)))) {
  state_->worker = std::thread([state = state_.get()] { state->run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->worker.join();
}

Result<Batch> Prefetcher::next() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->ready.empty(); });
  // An error stays at the front: it is what every later call returns.
  if (!state_->ready.front()) return state_->ready.front();
  Result<Batch> batch = std::move(state_->ready.front());
  state_->ready.pop_front();
  lock.unlock();
  state_->changed.notify_all();
  return batch;
}

}  // namespace fivefold::data
