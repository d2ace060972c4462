#pragma once
// Data parallelism over replicas: every rank holds all parameters, and gradients are summed over
// the ranks in buckets while the backward pass still computes the next ones.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/communicator.hpp"
#include "parameter/parameter_set.hpp"

namespace fivefold::parallel {

struct ReducerOptions {
  int64_t bucket_bytes = 25 << 20;
  bool overlap = true;  // off: everything in finish(). The bits are the same.
};

// Of the last step, in seconds.
struct ReducerTimes {
  double communicating = 0;  // inside all-reduce
  double waited = 0;         // the caller inside finish(): what was not hidden
  int64_t buckets = 0;
};

// Sums ParameterSet::gradients over the ranks of `group`, in place.
//
// Buckets are ranges of the flat buffer cut from its end, because the backward pass finishes the
// last parameters first. They go out in that fixed order on all ranks, each as soon as all its
// parameters are ready and its predecessors are out, from a thread of the reducer's own. A
// parameter that is ready out of order (a tied embedding) only waits.
//
// Order    every element in rank order (Communicator::all_reduce): the bits depend neither on the
//          bucket size nor on overlap.
// Thread   the group is the reducer's alone from here on; calls come from one thread, and the
//          gradients of a parameter are not touched between mark_ready and finish.
class GradientReducer {
 public:
  // `group`: the ranks that hold replicas. With one rank no thread is started.
  GradientReducer(const ParameterSet& parameters, std::unique_ptr<comm::Communicator> group,
                  const ReducerOptions& options);
  // In the middle of a step (backward failed), gives the group up rather than wait for the peers.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before the backward pass of a step's last microbatch.
  void begin();
  // Nothing more will be added to the gradients of parameters first to last (inclusive, indices
  // into ParameterSet::all()). Each parameter at most once a step.
  void mark_ready(size_t first, size_t last);
  // Takes the rest as ready, and waits until all sums are there.
  // Errors   of the group's all_reduce; the reducer is then unusable.
  Status finish();

  int64_t bucket_count() const { return int64_t(buckets_.size()); }
  const ReducerTimes& times() const { return times_; }
  comm::Meter meter() const { return group_->meter(); }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;  // elements
    int64_t missing = 0;         // of them, not ready yet
  };
  void start_step();                               // under mutex_
  void mark_elements(int64_t begin, int64_t end);  // under mutex_
  void communicate();                              // the thread
  Status reduce(const Bucket& bucket);

  const ParameterSet& parameters_;
  std::unique_ptr<comm::Communicator> group_;
  const bool threaded_;
  std::vector<Bucket> buckets_;  // in sending order
  ReducerTimes times_;

  std::mutex mutex_;  // guards what follows and Bucket::missing
  std::condition_variable changed_;
  bool in_step_ = false, stopping_ = false;
  size_t sent_ = 0;  // buckets whose sums are there (or that failed)
  double communicating_ = 0;
  Status status_;
  std::vector<bool> ready_;  // by parameter
  std::thread thread_;
};

}  // namespace fivefold::parallel
