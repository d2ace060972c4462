#include "parallel/data/gradient_reducer.hpp"

#include <algorithm>
#include <chrono>

namespace fivefold::parallel {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

GradientReducer::GradientReducer(const ParameterSet& parameters,
                                 std::unique_ptr<comm::Communicator> group,
                                 const ReducerOptions& options)
    : parameters_(parameters),
      group_(std::move(group)),
      threaded_(options.overlap && group_->size() > 1),
      ready_(parameters.all().size()) {
  const int64_t width = int64_t(size_of(accumulator_of(parameters.dtype())));
  CHECK(options.bucket_bytes >= width, "a gradient bucket of {} bytes", options.bucket_bytes);
  const int64_t elements = options.bucket_bytes / width;
  for (int64_t end = parameters.count(); end > 0; end -= elements) {
    buckets_.push_back({.begin = std::max<int64_t>(end - elements, 0), .end = end});
  }
  if (threaded_) thread_ = std::thread([this] { communicate(); });
}

GradientReducer::~GradientReducer() {
  if (!threaded_) return;
  bool unfinished = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    unfinished = in_step_;
  }
  if (unfinished) group_->abandon("stopped in the middle of a step");
  changed_.notify_all();
  thread_.join();
}

void GradientReducer::start_step() {
  CHECK(!in_step_, "begin() before the last step's finish()");
  in_step_ = true;
  sent_ = 0;
  communicating_ = 0;
  std::fill(ready_.begin(), ready_.end(), false);
  for (Bucket& bucket : buckets_) bucket.missing = bucket.end - bucket.begin;
}

void GradientReducer::begin() {
  const std::lock_guard lock(mutex_);
  start_step();
}

void GradientReducer::mark_elements(int64_t begin, int64_t end) {
  for (Bucket& bucket : buckets_) {
    const int64_t covered = std::min(end, bucket.end) - std::max(begin, bucket.begin);
    if (covered > 0) bucket.missing -= covered;
  }
}

void GradientReducer::mark_ready(size_t first, size_t last) {
  const std::vector<Parameter>& all = parameters_.all();
  CHECK(first <= last && last < all.size(), "parameters {} to {} of {}", first, last, all.size());
  {
    const std::lock_guard lock(mutex_);
    CHECK(in_step_, "mark_ready() outside begin() and finish()");
    for (size_t i = first; i <= last; ++i) {
      CHECK(!ready_[i], "{} is ready twice", all[i].spec.name);
      ready_[i] = true;
    }
    mark_elements(all[first].offset, all[last].offset + all[last].count);
  }
  changed_.notify_all();
}

Status GradientReducer::reduce(const Bucket& bucket) {
  return group_->all_reduce(parameters_.gradients().slice(0, bucket.begin, bucket.end),
                            comm::Reduce::sum);
}

void GradientReducer::communicate() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return stopping_ || (in_step_ && sent_ < buckets_.size() && buckets_[sent_].missing == 0);
    });
    if (stopping_) return;
    if (status_) {
      const Bucket bucket = buckets_[sent_];
      lock.unlock();
      const auto start = Clock::now();
      Status status = reduce(bucket);
      const double seconds = seconds_since(start);
      lock.lock();
      communicating_ += seconds;
      if (!status) status_ = std::move(status);
    }
    ++sent_;
    changed_.notify_all();
  }
}

Status GradientReducer::finish() {
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  CHECK(in_step_, "finish() without begin()");
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  if (threaded_) {
    changed_.notify_all();
    changed_.wait(lock, [this] { return sent_ == buckets_.size(); });
  } else if (group_->size() > 1) {
    for (; sent_ < buckets_.size() && status_; ++sent_) status_ = reduce(buckets_[sent_]);
    communicating_ = seconds_since(start);
  }
  in_step_ = false;
  times_ = {.communicating = communicating_,
            .waited = seconds_since(start),
            .buckets = group_->size() > 1 ? bucket_count() : 0};
  return status_;
}

}  // namespace fivefold::parallel
