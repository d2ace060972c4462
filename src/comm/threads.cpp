#include "comm/threads.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "comm/fold.hpp"
#include "comm/thread_group.hpp"

namespace fivefold::comm {
namespace {

int64_t bytes_of(View data) { return data.count() * int64_t(size_of(data.dtype)); }

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup& group, int rank, const Options& options)
      : group_(group), rank_(rank), options_(options) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  std::string_view axis() const override { return group_.axis(); }
  Meter meter() const override { return {bytes_sent_.load(), messages_sent_.load()}; }

  Status all_reduce(View data, Reduce reduce) override;
  Status broadcast(View data, int root) override;
  Status barrier() override { return enter({.op = Op::barrier}, {}, nullptr); }
  void set_timeout(std::chrono::milliseconds timeout) override { options_.timeout = timeout; }
  Result<std::unique_ptr<Communicator>> duplicate(std::string axis) override;
  void abandon(const std::string& reason) override { group_.world().abandon(rank_, reason); }

 private:
  // Shows the call and its operand to the others, and returns when all are here and agree.
  Status enter(Call call, View data, ThreadGroup* created);
  Slot& slot(int rank) { return group_.slot(rank, sequence_); }
  void leave() { group_.meet_after_work(++arrivals_); }
  void charge(const Meter& cost) {
    bytes_sent_ += cost.bytes_sent;
    messages_sent_ += cost.messages_sent;
  }

  ThreadGroup& group_;
  int rank_;
  Options options_;
  int64_t sequence_ = 0;
  int64_t arrivals_ = 0;
  std::atomic<int64_t> bytes_sent_{0}, messages_sent_{0};  // read while a call is under way
};

Status ThreadCommunicator::enter(Call call, View data, ThreadGroup* created) {
  call.sequence = ++sequence_;
  Slot& mine = slot(rank_);
  mine.call = call;
  mine.data = static_cast<std::byte*>(data.data);
  mine.created = created;
  const int64_t bytes = data.data == nullptr ? 0 : bytes_of(data);
  if (bytes > 0 && bytes <= Slot::inline_bytes) std::memcpy(mine.small, data.data, size_t(bytes));
  TRY(group_.meet(rank_, call, ++arrivals_, options_.timeout));

  std::vector<Call> calls(static_cast<size_t>(size()));
  for (int rank = 0; rank < size(); ++rank) calls[size_t(rank)] = slot(rank).call;
  const Status agreed = agree(axis(), calls);
  if (!agreed) group_.give_up(agreed.error(), call.sequence);
  return agreed;
}

Status ThreadCommunicator::all_reduce(View data, Reduce reduce) {
  CHECK(data.contiguous() && can_fold(data.dtype), "all_reduce of a strided view or {}",
        name_of(data.dtype));
  const int64_t count = data.count();
  TRY(enter({.count = count, .op = Op::all_reduce, .reduce = reduce, .dtype = data.dtype}, data,
            nullptr));
  charge(cost_of_all_reduce(count, data.dtype, size(), rank_));
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> outputs;
  if (bytes_of(data) <= Slot::inline_bytes) {
    // Everybody folds everything: there is nothing to wait for afterwards.
    for (int rank = 0; rank < size(); ++rank) sources.push_back(slot(rank).small);
    outputs.push_back(static_cast<std::byte*>(data.data));
    fold(reduce, data.dtype, sources, outputs, count);
    return {};
  }
  // Each rank folds its slice and writes the result to all, so every byte is touched once.
  const Slice slice = slice_of(count, size(), rank_);
  for (int rank = 0; rank < size(); ++rank) {
    outputs.push_back(slot(rank).data + slice.begin * int64_t(size_of(data.dtype)));
    sources.push_back(outputs.back());
  }
  fold(reduce, data.dtype, sources, outputs, slice.count());
  leave();
  return {};
}

Status ThreadCommunicator::broadcast(View data, int root) {
  CHECK(data.contiguous() && 0 <= root && root < size(), "broadcast from rank {} of {}", root,
        size());
  TRY(enter({.count = data.count(), .root = root, .op = Op::broadcast, .dtype = data.dtype}, data,
            nullptr));
  const int64_t bytes = bytes_of(data);
  if (rank_ == root && bytes > 0) charge({bytes * (size() - 1), size() - 1});
  const bool small = bytes <= Slot::inline_bytes;
  const std::byte* from = small ? slot(root).small : slot(root).data;
  if (rank_ != root && bytes > 0) std::memcpy(data.data, from, size_t(bytes));
  if (!small) leave();
  return {};
}

Result<std::unique_ptr<Communicator>> ThreadCommunicator::duplicate(std::string axis) {
  ThreadGroup* created = rank_ == 0 ? &group_.world().add(size(), std::move(axis)) : nullptr;
  TRY(enter({.op = Op::duplicate}, {}, created));
  return std::make_unique<ThreadCommunicator>(*slot(0).created, rank_, options_);
}

class Alone final : public Communicator {
 public:
  explicit Alone(std::string axis) : axis_(std::move(axis)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view axis() const override { return axis_; }
  Meter meter() const override { return {}; }
  Status all_reduce(View data, Reduce) override {
    CHECK(data.contiguous() && can_fold(data.dtype), "all_reduce of a strided view or {}",
          name_of(data.dtype));
    return {};
  }
  Status broadcast(View, int root) override {
    CHECK(root == 0, "broadcast from rank {} of 1", root);
    return {};
  }
  Status barrier() override { return {}; }
  void set_timeout(std::chrono::milliseconds) override {}
  Result<std::unique_ptr<Communicator>> duplicate(std::string axis) override {
    return std::make_unique<Alone>(std::move(axis));
  }
  void abandon(const std::string&) override {}

 private:
  std::string axis_;
};

// The first by rank, but the cause before its consequences.
Status worst_of(const std::vector<Status>& results) {
  const Status* consequence = nullptr;
  for (const Status& result : results) {
    if (result) continue;
    if (result.error().code != Error::Code::peer_lost) return result;
    if (consequence == nullptr) consequence = &result;
  }
  return consequence == nullptr ? Status{} : *consequence;
}

}  // namespace

Status run_threads(int ranks, const Options& options,
                   const std::function<Status(Communicator& world)>& body) {
  CHECK(ranks >= 1, "{} ranks", ranks);
  if (ranks == 1) return body(*alone());
  ThreadWorld world;
  ThreadGroup& group = world.add(ranks, "world");
  std::vector<Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadCommunicator communicator(group, rank, options);
      Status& result = results[size_t(rank)];
      result = body(communicator);
      if (!result) communicator.abandon(result.error().message);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return worst_of(results);
}

std::unique_ptr<Communicator> alone() { return std::make_unique<Alone>("world"); }

}  // namespace fivefold::comm
