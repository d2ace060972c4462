#include "comm/call.hpp"

#include <fmt/ranges.h>

namespace fivefold::comm {

std::string to_string(const Call& call) {
  constexpr std::string_view reductions[] = {"sum", "max", "min"};
  switch (call.op) {
    case Op::all_reduce:
      return fmt::format("all_reduce ({}) of {} {}", reductions[size_t(call.reduce)], call.count,
                         name_of(call.dtype));
    case Op::broadcast:
      return fmt::format("broadcast of {} {} from rank {}", call.count, name_of(call.dtype),
                         call.root);
    case Op::barrier:
      return "barrier";
    case Op::duplicate:
      return "duplicate";
  }
  return "an unknown call";
}

Status agree(std::string_view axis, std::span<const Call> calls) {
  for (size_t rank = 1; rank < calls.size(); ++rank) {
    if (calls[rank] == calls[0]) continue;
    return invalid_input(
        "{}: the ranks call different collectives: rank 0 call {}, {}; rank {} call {}, {}; start "
        "every rank with the same program and run file",
        axis, calls[0].sequence, to_string(calls[0]), rank, calls[rank].sequence,
        to_string(calls[rank]));
  }
  return {};
}

Error timeout_of(std::string_view axis, const Call& call, int ranks, std::span<const int> missing,
                 std::chrono::milliseconds timeout) {
  return {
      Error::Code::timeout,
      fmt::format("{}: {}, call {}: no sign of {} of {} within {} s; look for why it stopped, or "
                  "raise comm.train_timeout_seconds if it is only slow",
                  axis, to_string(call), call.sequence, list_of(missing), ranks,
                  double(timeout.count()) / 1000)};
}

std::string list_of(std::span<const int> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace fivefold::comm
