#include "comm/mpi.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "comm/call.hpp"
#include "comm/fold.hpp"
#include "comm/mpi_runtime.hpp"

namespace fivefold::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int hello_tag = 1, scatter_tag = 2, gather_tag = 3, broadcast_tag = 4;

// What ranks tell each other first: the call, and an operand that is small enough to ride along.
struct Hello {
  static constexpr int64_t inline_bytes = 128;
  Call call;
  std::byte small[inline_bytes] = {};
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, std::string axis, const Options& options)
      : comm_(comm), axis_(std::move(axis)), options_(options) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view axis() const override { return axis_; }
  Meter meter() const override { return {bytes_sent_.load(), messages_sent_.load()}; }

  Status all_reduce(View data, Reduce reduce) override;
  Status broadcast(View data, int root) override;
  Status barrier() override { return enter({.op = Op::barrier}, {}); }
  void set_timeout(std::chrono::milliseconds timeout) override { options_.timeout = timeout; }
  Result<std::unique_ptr<Communicator>> duplicate(std::string axis) override;
  void abandon(const std::string& reason) override { MpiRuntime::of_process().abandon(reason); }

 private:
  Status enter(Call call, View data);
  Status wait(Transfers& transfers);
  Status broken_by(Status status);  // the group is unusable after an error
  Status reduce_scattered(std::byte* data, const Call& call);
  void charge(const Meter& cost) {
    bytes_sent_ += cost.bytes_sent;
    messages_sent_ += cost.messages_sent;
  }

  MPI_Comm comm_;
  std::string axis_;
  Options options_;
  int rank_ = 0, size_ = 1;
  Call call_;  // the one under way
  Clock::time_point deadline_;
  std::optional<Error> broken_;
  std::vector<Hello> hellos_;
  std::vector<std::byte> staged_;                          // one segment of each peer
  std::atomic<int64_t> bytes_sent_{0}, messages_sent_{0};  // read while a call is under way
};

Status MpiCommunicator::wait(Transfers& transfers) {
  MpiRuntime& runtime = MpiRuntime::of_process();
  return broken_by(runtime.wait(transfers, deadline_, [&](const std::vector<int>& missing) {
    return timeout_of(axis_, call_, size_, missing, options_.timeout);
  }));
}

Status MpiCommunicator::broken_by(Status status) {
  if (status) return status;
  broken_ = status.error();
  // Who comes later would otherwise wait for this rank as long again.
  if (broken_->code == Error::Code::timeout) MpiRuntime::of_process().abandon(broken_->message);
  return status;
}

Status MpiCommunicator::enter(Call call, View data) {
  if (broken_) {
    return fail(Error::Code::peer_lost, "{}: {}, after the group had failed: {}", axis_,
                to_string(call), broken_->message);
  }
  if (const auto error = MpiRuntime::of_process().abandoned()) return tl::unexpected(*error);
  call.sequence = call_.sequence + 1;
  call_ = call;
  deadline_ = Clock::now() + options_.timeout;
  hellos_.resize(size_t(size_));
  Hello& mine = hellos_[size_t(rank_)];
  mine.call = call;
  const int64_t bytes = data.data == nullptr ? 0 : data.count() * int64_t(size_of(data.dtype));
  if (bytes > 0 && bytes <= Hello::inline_bytes) std::memcpy(mine.small, data.data, size_t(bytes));

  Transfers transfers;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    TRY(transfers.receive(&hellos_[size_t(peer)], sizeof(Hello), peer, hello_tag, comm_));
    TRY(transfers.send(&mine, sizeof(Hello), peer, hello_tag, comm_));
  }
  TRY(wait(transfers));
  std::vector<Call> calls;
  for (const Hello& hello : hellos_) calls.push_back(hello.call);
  return broken_by(agree(axis_, calls));
}

Status MpiCommunicator::all_reduce(View data, Reduce reduce) {
  CHECK(data.contiguous() && can_fold(data.dtype), "all_reduce of a strided view or {}",
        name_of(data.dtype));
  const Call call{
      .count = data.count(), .op = Op::all_reduce, .reduce = reduce, .dtype = data.dtype};
  TRY(enter(call, data));
  charge(cost_of_all_reduce(call.count, call.dtype, size_, rank_));
  auto* bytes = static_cast<std::byte*>(data.data);
  if (call.count * int64_t(size_of(call.dtype)) > Hello::inline_bytes) {
    return reduce_scattered(bytes, call);
  }
  // Everybody has everything already.
  std::vector<const std::byte*> sources;
  for (const Hello& hello : hellos_) sources.push_back(hello.small);
  fold(reduce, call.dtype, sources, std::span(&bytes, 1), call.count);
  return {};
}

// Segment by segment: every rank collects its slice from all, folds it, and sends the result to
// all, while the next segment's collection is already under way. Segments keep the staging small
// and each message far below MPI's limit of 2 GiB.
Status MpiCommunicator::reduce_scattered(std::byte* data, const Call& call) {
  const auto width = int64_t(size_of(call.dtype));
  const int64_t segment =
      std::clamp<int64_t>((4 << 20) / std::max(size_ - 1, 1), 16 << 10, 1 << 20) / width;
  const auto part_of = [&](int rank, int64_t index) -> Slice {
    const Slice slice = slice_of(call.count, size_, rank);
    return {std::min(slice.begin + index * segment, slice.end),
            std::min(slice.begin + (index + 1) * segment, slice.end)};
  };
  staged_.resize(size_t(size_ * segment * width));

  Transfers transfers;
  const auto collect = [&](int64_t index) -> Status {
    const Slice own = part_of(rank_, index);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Slice theirs = part_of(peer, index);
      if (own.count() > 0) {
        TRY(transfers.receive(staged_.data() + peer * segment * width, own.count() * width, peer,
                              scatter_tag, comm_));
      }
      if (theirs.count() > 0) {
        TRY(transfers.send(data + theirs.begin * width, theirs.count() * width, peer, scatter_tag,
                           comm_));
      }
    }
    return {};
  };
  const auto spread = [&](int64_t index) -> Status {
    const Slice own = part_of(rank_, index);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Slice theirs = part_of(peer, index);
      if (theirs.count() > 0) {
        TRY(transfers.receive(data + theirs.begin * width, theirs.count() * width, peer, gather_tag,
                              comm_));
      }
      if (own.count() > 0) {
        TRY(transfers.send(data + own.begin * width, own.count() * width, peer, gather_tag, comm_));
      }
    }
    return {};
  };

  // The first slice is the longest: it has as many segments as any.
  const int64_t segments = (slice_of(call.count, size_, 0).count() + segment - 1) / segment;
  TRY(collect(0));
  TRY(wait(transfers));
  for (int64_t index = 0; index < segments; ++index) {
    std::vector<const std::byte*> sources;
    const Slice own = part_of(rank_, index);
    std::byte* mine = data + own.begin * width;
    for (int rank = 0; rank < size_; ++rank) {
      sources.push_back(rank == rank_ ? mine : staged_.data() + rank * segment * width);
    }
    fold(call.reduce, call.dtype, sources, std::span(&mine, 1), own.count());
    TRY(spread(index));
    if (index + 1 < segments) TRY(collect(index + 1));
    TRY(wait(transfers));
  }
  return {};
}

Status MpiCommunicator::broadcast(View data, int root) {
  CHECK(data.contiguous() && 0 <= root && root < size_, "broadcast from rank {} of {}", root,
        size_);
  TRY(enter({.count = data.count(), .root = root, .op = Op::broadcast, .dtype = data.dtype}, data));
  const int64_t bytes = data.count() * int64_t(size_of(data.dtype));
  if (bytes == 0) return {};
  if (rank_ == root) charge({bytes * (size_ - 1), size_ - 1});
  auto* at = static_cast<std::byte*>(data.data);
  if (bytes <= Hello::inline_bytes) {
    if (rank_ != root) std::memcpy(at, hellos_[size_t(root)].small, size_t(bytes));
    return {};
  }
  constexpr int64_t piece = 64 << 20;
  for (int64_t begin = 0; begin < bytes; begin += piece) {
    const int64_t size = std::min(piece, bytes - begin);
    Transfers transfers;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_ || (rank_ != root && peer != root)) continue;
      if (rank_ == root) {
        TRY(transfers.send(at + begin, size, peer, broadcast_tag, comm_));
      } else {
        TRY(transfers.receive(at + begin, size, root, broadcast_tag, comm_));
      }
    }
    TRY(wait(transfers));
  }
  return {};
}

Result<std::unique_ptr<Communicator>> MpiCommunicator::duplicate(std::string axis) {
  TRY(enter({.op = Op::duplicate}, {}));
  const auto twin = MpiRuntime::of_process().duplicate(comm_, options_.timeout);
  TRY(broken_by(twin.map([](MPI_Comm) {})));
  return std::make_unique<MpiCommunicator>(*twin, std::move(axis), options_);
}

int64_t number_in(const char* text) { return text == nullptr ? 0 : std::atoll(text); }

// srun tells every task the size of its step; a plain sbatch script is not a step with tasks.
int64_t slurm_tasks() {
  return std::getenv("SLURM_PROCID") == nullptr ? 0
                                                : number_in(std::getenv("SLURM_STEP_NUM_TASKS"));
}

}  // namespace

bool under_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return slurm_tasks() > 1;
}

Result<std::unique_ptr<Communicator>> mpi_world(const Options& options) {
  MpiRuntime& runtime = MpiRuntime::of_process();
  TRY(runtime.start(options.timeout));
  auto world = std::make_unique<MpiCommunicator>(
      TRY(runtime.duplicate(MPI_COMM_WORLD, options.timeout)), "world", options);
  if (world->size() == 1 && slurm_tasks() > 1) {
    return io_error(
        "srun started {} tasks but MPI knows of one; start with srun --mpi=pmix (srun "
        "--mpi=list shows what this Slurm has), or with mpirun",
        slurm_tasks());
  }
  return world;
}

int mpi_local_ranks() { return MpiRuntime::of_process().local_ranks(); }

}  // namespace fivefold::comm
