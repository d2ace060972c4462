#pragma once
// What a rank says about a collective when it enters it, so that ranks that disagree are told apart
// by name instead of waiting for each other.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace fivefold::comm {

enum class Op : uint8_t { all_reduce, broadcast, barrier, duplicate };

// Plain bytes: MPI sends it as it is.
struct Call {
  int64_t sequence = 0;  // of this group, from 1
  int64_t count = 0;
  int32_t root = 0;
  Op op = Op::barrier;
  Reduce reduce = Reduce::sum;
  DType dtype = DType::f32;
  uint8_t unused = 0;
  friend bool operator==(const Call&, const Call&) = default;
};

// "all_reduce (sum) of 1000 float32", "broadcast of 5 int64 from rank 0", "barrier"
std::string to_string(const Call& call);

// Ok when all ranks entered the same call, else which rank does what.
// Errors   invalid_input.
Status agree(std::string_view axis, std::span<const Call> calls);

// "dp: all_reduce (sum) of 1000 float32, call 17: no sign of ranks 1, 3 of 4 within 100 s; …"
Error timeout_of(std::string_view axis, const Call& call, int ranks, std::span<const int> missing,
                 std::chrono::milliseconds timeout);

// "rank 1", "ranks 1, 3"
std::string list_of(std::span<const int> ranks);

}  // namespace fivefold::comm
