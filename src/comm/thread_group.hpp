#pragma once
// The meeting place of ranks that are threads of one process. Internal to comm/threads.cpp.
//
// One word counts all arrivals so far and carries the failure flag, so that "the last rank came"
// and "a rank gave up" exclude each other: a rank that leaves with an error is certain that no peer
// will touch its buffer any more.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/call.hpp"

namespace fivefold::comm {

class ThreadWorld;

// What a rank shows to the others during one call.
struct alignas(64) Slot {
  static constexpr int64_t inline_bytes = 128;
  Call call;
  std::byte* data = nullptr;
  class ThreadGroup* created = nullptr;       // by rank 0 of a duplicate
  alignas(64) std::byte small[inline_bytes];  // small operands travel with the arrival
};

class ThreadGroup {
 public:
  ThreadGroup(ThreadWorld& world, int ranks, std::string axis);

  int size() const { return int(entered_.size()); }
  const std::string& axis() const { return axis_; }
  ThreadWorld& world() { return world_; }

  // Two slots a rank, by the parity of the call: a fast rank may fill the next call's while a slow
  // one still reads this one's.
  Slot& slot(int rank, int64_t sequence) { return slots_[size_t(2 * rank + int(sequence & 1))]; }

  // Arrives, and waits until every rank has: `arrivals` of each so far, this one included.
  // Errors   timeout, peer_lost; this rank then has not arrived, or nobody will ever pass.
  Status meet(int rank, const Call& call, int64_t arrivals, std::chrono::milliseconds timeout);
  // The same where leaving early is no option, since peers work on this rank's buffer: no deadline
  // and no failure. Every rank has passed `meet` of the same call, so each is on its way here and
  // only copies memory in between.
  void meet_after_work(int64_t arrivals);

  // Ends every wait, now and later, with `error`; only the first one counts. `sequence` is the call
  // that it came from, -1: none.
  void give_up(const Error& error, int64_t sequence);

 private:
  static constexpr uint64_t failed = 1, one = 2;  // bits of state_: the flag, an arrival
  bool passed(int64_t arrivals) const;
  bool is_failed() const { return (state_.load() & failed) != 0; }
  bool arrive(int64_t arrivals, bool despite_failure);
  template <class Ready>
  bool wait_briefly(const Ready& ready);
  Status time_out(const Call& call, int64_t arrivals, std::chrono::milliseconds timeout);
  Status refused(const Call& call, bool waited);

  ThreadWorld& world_;
  std::string axis_;
  std::vector<Slot> slots_;
  std::vector<std::atomic<int64_t>> entered_;  // the last call that each rank entered
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Error> error_;    // set with the flag
  int64_t failed_sequence_ = -1;  // the call that timed out; -1: abandoned
};

// Owns the groups of one run_threads, which all end together.
class ThreadWorld {
 public:
  ThreadGroup& add(int ranks, std::string axis);
  // A rank that gives up does so in every group.
  void abandon(int rank, const std::string& reason);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadGroup>> groups_;
  std::optional<Error> abandoned_;
};

}  // namespace fivefold::comm
