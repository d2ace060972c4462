#include "comm/thread_group.hpp"

#include <thread>

namespace fivefold::comm {
namespace {

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadGroup::ThreadGroup(ThreadWorld& world, int ranks, std::string axis)
    : world_(world), axis_(std::move(axis)), slots_(size_t(2 * ranks)), entered_(size_t(ranks)) {}

bool ThreadGroup::passed(int64_t arrivals) const {
  return int64_t(state_.load() / one) >= arrivals * size();
}

bool ThreadGroup::arrive(int64_t arrivals, bool despite_failure) {
  uint64_t state = state_.load();
  do {
    if ((state & failed) != 0 && !despite_failure) return false;
  } while (!state_.compare_exchange_weak(state, state + one));
  // Sequentially consistent on both sides: either this sees the sleeper, or the sleeper sees the
  // arrival before it sleeps.
  if (passed(arrivals) && sleepers_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  return true;
}

// Spinning pays only while every rank has a core; yielding lets the others of a core arrive; after
// that the core belongs to whoever computes.
template <class Ready>
bool ThreadGroup::wait_briefly(const Ready& ready) {
  const bool own_core = size() <= int(std::thread::hardware_concurrency());
  const int spins = own_core ? 2000 : 20;
  for (int i = 0; i < spins; ++i) {
    if (ready()) return true;
    pause_core();
  }
  for (int i = 0; i < 64; ++i) {
    if (ready()) return true;
    std::this_thread::yield();
  }
  return ready();
}

Status ThreadGroup::meet(int rank, const Call& call, int64_t arrivals,
                         std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  entered_[size_t(rank)].store(call.sequence);
  if (!arrive(arrivals, false)) return refused(call, false);
  const auto settled = [&] { return passed(arrivals) || is_failed(); };
  if (!wait_briefly(settled)) {
    std::unique_lock lock(mutex_);
    ++sleepers_;
    wake_.wait_until(lock, deadline, settled);
    --sleepers_;
  }
  if (passed(arrivals)) return {};  // also when it failed later
  return time_out(call, arrivals, timeout);
}

void ThreadGroup::meet_after_work(int64_t arrivals) {
  arrive(arrivals, true);
  const auto done = [&] { return passed(arrivals); };
  if (wait_briefly(done)) return;
  std::unique_lock lock(mutex_);
  ++sleepers_;
  wake_.wait(lock, done);
  --sleepers_;
}

Status ThreadGroup::time_out(const Call& call, int64_t arrivals,
                             std::chrono::milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    uint64_t state = state_.load();
    do {
      if (int64_t(state / one) >= arrivals * size()) return {};  // the last one came just now
    } while ((state & failed) == 0 && !state_.compare_exchange_weak(state, state | failed));
    if (!error_) {
      std::vector<int> missing;
      for (int rank = 0; rank < size(); ++rank) {
        if (entered_[size_t(rank)].load() < call.sequence) missing.push_back(rank);
      }
      error_ = timeout_of(axis_, call, size(), missing, timeout);
      failed_sequence_ = call.sequence;
    }
  }
  wake_.notify_all();
  return refused(call, true);
}

Status ThreadGroup::refused(const Call& call, bool waited) {
  const std::lock_guard lock(mutex_);
  const Error& error = *error_;
  if (failed_sequence_ < 0 || (waited && failed_sequence_ == call.sequence)) {
    return tl::unexpected(error);
  }
  return fail(Error::Code::peer_lost, "{}: {}, call {}: the others no longer wait: {}", axis_,
              to_string(call), call.sequence, error.message);
}

void ThreadGroup::give_up(const Error& error, int64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error;
    failed_sequence_ = sequence;
    state_.fetch_or(failed);
  }
  wake_.notify_all();
}

ThreadGroup& ThreadWorld::add(int ranks, std::string axis) {
  const std::lock_guard lock(mutex_);
  groups_.push_back(std::make_unique<ThreadGroup>(*this, ranks, std::move(axis)));
  if (abandoned_) groups_.back()->give_up(*abandoned_, -1);
  return *groups_.back();
}

void ThreadWorld::abandon(int rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (abandoned_) return;
  abandoned_ = Error{Error::Code::peer_lost, fmt::format("rank {} gave up: {}", rank, reason)};
  for (const auto& group : groups_) group->give_up(*abandoned_, -1);
}

}  // namespace fivefold::comm
