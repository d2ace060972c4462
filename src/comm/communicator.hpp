#pragma once
// A group of ranks that call the same collectives in the same order. The trainer knows only this
// interface; whether ranks are threads of one process or MPI processes is settled where the world
// is made (threads.hpp, mpi.hpp).
//
// Every call blocks its caller until its result is there, and no longer than the deadline. After
// any error the group is unusable. One thread at a time may call; work that overlaps with other
// calls uses a duplicate. Ranks whose calls do not match (op, count, dtype, reduction, root) all
// get invalid_input with both calls named.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "tensor/view.hpp"

namespace fivefold::comm {

enum class Reduce : uint8_t { sum, max, min };

// What this rank has put on the wire since the start.
struct Meter {
  int64_t bytes_sent = 0;
  int64_t messages_sent = 0;
};

struct Options {
  std::chrono::milliseconds timeout{100'000};  // of each call
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The mesh axis that it serves, for messages and meters: "world", "dp", …
  virtual std::string_view axis() const = 0;
  virtual Meter meter() const = 0;

  // data becomes the element-wise reduction over all ranks.
  //
  // Shape    equal counts and dtypes (f32, f64, bf16, i64) on every rank; flat; any count, also 0.
  // Order    ((r0 + r1) + r2) + …, in rank order for every element: the same bits on all ranks,
  //          runs and transports. bf16 is summed in float32 and rounded once.
  // Errors   timeout (axis, op, sequence number, ranks missing), peer_lost.
  // Cost     2 (n-1)/n of data's bytes sent per rank (reduce-scatter, then all-gather).
  virtual Status all_reduce(View data, Reduce reduce) = 0;
  // data of `root` to all.
  //
  // Shape    as for all_reduce, any dtype.
  // Cost     (n-1) times data's bytes sent by the root.
  virtual Status broadcast(View data, int root) = 0;
  virtual Status barrier() = 0;
  // The deadline of the calls from here on, and of groups duplicated from this one. Every rank sets
  // the same.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

  // The same ranks as a group of their own, whose calls do not mix with this one's. Collective.
  virtual Result<std::unique_ptr<Communicator>> duplicate(std::string axis) = 0;

  // Tells the others that this rank gives up, so that their next call (or the one they wait in)
  // ends with peer_lost and `reason` instead of a timeout; in every group of the launch, since it
  // is the rank that stops. Never blocks. Any thread may call it.
  virtual void abandon(const std::string& reason) = 0;
};

}  // namespace fivefold::comm
