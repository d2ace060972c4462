#pragma once

#include "comm/communicator.hpp"

namespace fivefold::comm {

// Runs body(world) on `ranks` threads of this process and waits for all of them. A body that
// returns an error abandons the world, so the others stop as well.
//
// Errors   the first failing rank's error (by rank, peer_lost last).
Status run_threads(int ranks, const Options& options,
                   const std::function<Status(Communicator& world)>& body);

// A group of one: every collective is a no-op.
std::unique_ptr<Communicator> alone();

}  // namespace fivefold::comm
