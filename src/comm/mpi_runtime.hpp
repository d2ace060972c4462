#pragma once
// The process's share in the launch: MPI's start and end, the channel on which a rank says that it
// gives up, and waiting with a deadline. Internal to comm/mpi*.cpp.
//
// MPI itself exists once in a process and cannot be started again after its end, so this is the one
// object of Fivefold that a process has only one of.

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace fivefold::comm {

// Transfers under way, and whom each of them waits for.
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers() { cancel(); }

  Status send(const void* data, int64_t bytes, int to, int tag, MPI_Comm comm);
  Status receive(void* data, int64_t bytes, int from, int tag, MPI_Comm comm);
  // Any other operation's request, of nobody in particular. MPI cannot cancel it: after an error
  // its buffers are lost.
  MPI_Request* add() { return add(-1); }

  enum class Progress : uint8_t { none, some, all };
  Result<Progress> look();
  // Those that are not through are given up: the peers that they waited for.
  std::vector<int> cancel();

 private:
  MPI_Request* add(int peer);
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_, done_;
};

class MpiRuntime {
 public:
  static MpiRuntime& of_process();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;
  // Waits a while for the other ranks to come to their ends too, then ends MPI; a rank that does
  // not come is ended by MPI_Abort, because MPI_Finalize would wait for it without a deadline.
  ~MpiRuntime();

  // Starts MPI at the first call. Collective.
  Status start(std::chrono::milliseconds timeout);
  bool started() const { return started_; }
  int local_ranks() const { return local_ranks_; }

  // A communicator of the same ranks. Collective. Never freed, since MPI_Comm_free may wait for the
  // others without a deadline; MPI ends them all.
  Result<MPI_Comm> duplicate(MPI_Comm comm, std::chrono::milliseconds timeout);

  // Waits for all of them, which are gone afterwards. On an error the rest are cancelled.
  // Errors   timeout, as `late` words it from the peers that were waited for; peer_lost.
  using Late = std::function<Error(const std::vector<int>& missing)>;
  Status wait(Transfers& transfers, std::chrono::steady_clock::time_point deadline,
              const Late& late);

  // Tells all ranks of the launch. Never blocks; only the first reason counts.
  void abandon(const std::string& reason);
  // What a rank, this one included, said when it gave up.
  std::optional<Error> abandoned();

 private:
  static constexpr int reason_bytes = 1024;

  MpiRuntime() = default;
  Status start_mpi();
  Status listen();  // posts the receive of the next reason
  Status count_local_ranks(std::chrono::milliseconds timeout);
  void hear();  // takes in a reason that has come

  bool started_ = false;
  int rank_ = 0, size_ = 1, local_ranks_ = 1;
  std::chrono::milliseconds timeout_{0};
  MPI_Comm control_ = MPI_COMM_NULL;

  std::atomic<bool> is_abandoned_{false};
  std::mutex mutex_;  // guards what follows
  std::optional<Error> reason_;
  MPI_Request heard_ = MPI_REQUEST_NULL;
  std::vector<char> incoming_ = std::vector<char>(reason_bytes);
  std::vector<char> outgoing_;  // outlives its sends
};

// Ok for MPI_SUCCESS, else peer_lost with MPI's own words.
Status status_of(int mpi_result, const char* what);

}  // namespace fivefold::comm
