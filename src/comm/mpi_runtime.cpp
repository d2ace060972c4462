#include "comm/mpi_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace fivefold::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int reason_tag = 1;

// How eagerly to look again. Messages advance only while somebody looks, so polling is MPI's price;
// but cores that others compute on are given back soon.
class Patience {
 public:
  explicit Patience(bool own_core) : spins_(own_core ? 2000 : 20) {}
  void reset() { idle_ = 0; }
  void wait() {
    ++idle_;
    if (idle_ <= spins_) return;
    if (idle_ <= spins_ + 500) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  int spins_, idle_ = 0;
};

}  // namespace

Status status_of(int mpi_result, const char* what) {
  if (mpi_result == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(mpi_result, text, &length);
  return fail(Error::Code::peer_lost, "{}: {}", what, std::string_view(text, size_t(length)));
}

MPI_Request* Transfers::add(int peer) {
  peers_.push_back(peer);
  requests_.push_back(MPI_REQUEST_NULL);
  return &requests_.back();
}

Status Transfers::send(const void* data, int64_t bytes, int to, int tag, MPI_Comm comm) {
  return status_of(MPI_Isend(data, int(bytes), MPI_BYTE, to, tag, comm, add(to)), "MPI_Isend");
}

Status Transfers::receive(void* data, int64_t bytes, int from, int tag, MPI_Comm comm) {
  return status_of(MPI_Irecv(data, int(bytes), MPI_BYTE, from, tag, comm, add(from)), "MPI_Irecv");
}

Result<Transfers::Progress> Transfers::look() {
  int count = 0;
  done_.resize(requests_.size());
  TRY(status_of(MPI_Testsome(int(requests_.size()), requests_.data(), &count, done_.data(),
                             MPI_STATUSES_IGNORE),
                "MPI_Testsome"));
  if (count == 0) return Progress::none;
  if (count != MPI_UNDEFINED) return Progress::some;
  requests_.clear();
  peers_.clear();
  return Progress::all;
}

std::vector<int> Transfers::cancel() {
  std::vector<int> missing;
  for (size_t i = 0; i < requests_.size(); ++i) {
    MPI_Request& request = requests_[i];
    if (request == MPI_REQUEST_NULL) continue;
    if (peers_[i] >= 0) {
      missing.push_back(peers_[i]);
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  requests_.clear();
  peers_.clear();
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

MpiRuntime& MpiRuntime::of_process() {
  static MpiRuntime runtime;
  return runtime;
}

MpiRuntime::~MpiRuntime() {
  int finalized = 0;
  if (!started_ || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  hear();
  const auto start = Clock::now();
  MPI_Request all_here = MPI_REQUEST_NULL;
  int done = 0;
  bool broken = MPI_Ibarrier(control_, &all_here) != MPI_SUCCESS;
  while (!broken && done == 0) {
    broken = MPI_Test(&all_here, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    if (done != 0) break;
    hear();
    // After a failure the others need just long enough to say so themselves.
    if (Clock::now() - start > (is_abandoned_ ? std::chrono::milliseconds(3000) : timeout_)) break;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (broken || done == 0) MPI_Abort(MPI_COMM_WORLD, 1);
  const std::lock_guard lock(mutex_);
  if (heard_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&heard_);
    MPI_Wait(&heard_, MPI_STATUS_IGNORE);  // local: a cancelled receive completes at once
  }
  MPI_Finalize();
}

Status MpiRuntime::start_mpi() {
  int initialized = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    MPI_Query_thread(&provided);
  } else if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
    return io_error("MPI did not start");
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    if (initialized == 0) MPI_Finalize();
    return io_error(
        "this MPI gives thread level {} and Fivefold needs MPI_THREAD_MULTIPLE ({}); use a "
        "build of MPI with support for threads, or ranks as threads of one process",
        provided, MPI_THREAD_MULTIPLE);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  return {};
}

Status MpiRuntime::start(std::chrono::milliseconds timeout) {
  if (started_) return {};
  TRY(start_mpi());
  started_ = true;
  timeout_ = timeout;
  control_ = TRY(duplicate(MPI_COMM_WORLD, timeout));
  TRY(count_local_ranks(timeout));
  const std::lock_guard lock(mutex_);
  return listen();
}

Status MpiRuntime::listen() {
  return status_of(MPI_Irecv(incoming_.data(), reason_bytes, MPI_BYTE, MPI_ANY_SOURCE, reason_tag,
                             control_, &heard_),
                   "MPI_Irecv");
}

Status MpiRuntime::count_local_ranks(std::chrono::milliseconds timeout) {
  std::vector<char> names(size_t(size_) * MPI_MAX_PROCESSOR_NAME);
  char* mine = names.data() + size_t(rank_) * MPI_MAX_PROCESSOR_NAME;
  int length = 0;
  MPI_Get_processor_name(mine, &length);
  Transfers transfers;
  TRY(status_of(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, names.data(), MPI_MAX_PROCESSOR_NAME,
                               MPI_BYTE, control_, transfers.add()),
                "MPI_Iallgather"));
  TRY(wait(transfers, Clock::now() + timeout, [&](const auto&) {
    return Error{Error::Code::timeout, "not all ranks of the launch started in time"};
  }));
  local_ranks_ = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const char* name = names.data() + size_t(rank) * MPI_MAX_PROCESSOR_NAME;
    if (std::strncmp(name, mine, MPI_MAX_PROCESSOR_NAME) == 0) ++local_ranks_;
  }
  return {};
}

Result<MPI_Comm> MpiRuntime::duplicate(MPI_Comm comm, std::chrono::milliseconds timeout) {
  MPI_Comm twin = MPI_COMM_NULL;
  Transfers transfers;
  TRY(status_of(MPI_Comm_idup(comm, &twin, transfers.add()), "MPI_Comm_idup"));
  TRY(wait(transfers, Clock::now() + timeout, [&](const auto&) {
    return Error{Error::Code::timeout,
                 fmt::format("not all ranks came to duplicate their group within {} s",
                             double(timeout.count()) / 1000)};
  }));
  MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
  return twin;
}

Status MpiRuntime::wait(Transfers& transfers, Clock::time_point deadline, const Late& late) {
  Patience patience(local_ranks_ <= int(std::thread::hardware_concurrency()));
  for (int64_t looks = 0;; ++looks) {
    const Transfers::Progress progress = TRY(transfers.look());
    if (progress == Transfers::Progress::all) return {};
    if (progress == Transfers::Progress::some) {
      patience.reset();
      continue;
    }
    patience.wait();
    if (looks % 16 != 15) continue;
    if (const std::optional<Error> error = abandoned()) {
      transfers.cancel();
      return tl::unexpected(*error);
    }
    if (Clock::now() >= deadline) return tl::unexpected(late(transfers.cancel()));
  }
}

void MpiRuntime::abandon(const std::string& reason) {
  if (!started_) return;
  const std::lock_guard lock(mutex_);
  if (reason_) return;
  const std::string text =
      fmt::format("rank {} gave up: {}", rank_, reason).substr(0, reason_bytes);
  reason_ = Error{Error::Code::peer_lost, text};
  is_abandoned_ = true;
  outgoing_.assign(text.begin(), text.end());
  outgoing_.resize(reason_bytes);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(outgoing_.data(), reason_bytes, MPI_BYTE, rank, reason_tag, control_, &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

std::optional<Error> MpiRuntime::abandoned() {
  if (!is_abandoned_) hear();
  if (!is_abandoned_) return {};
  const std::lock_guard lock(mutex_);
  return reason_;
}

void MpiRuntime::hear() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || heard_ == MPI_REQUEST_NULL || reason_) return;
  int came = 0;
  if (MPI_Test(&heard_, &came, MPI_STATUS_IGNORE) != MPI_SUCCESS || came == 0) return;
  reason_ = Error{Error::Code::peer_lost,
                  std::string(incoming_.data(), strnlen(incoming_.data(), reason_bytes))};
  is_abandoned_ = true;
}

}  // namespace fivefold::comm
