#pragma once

#include "comm/communicator.hpp"
#include "parameter/parameter_set.hpp"

namespace fivefold::parallel {

// Every rank gets the values of `root`.
Status broadcast_parameters(const ParameterSet& parameters, comm::Communicator& group,
                            int root = 0);

// Whether all ranks hold the same bits.
// Errors   invalid_input, naming the ranks that differ from rank 0; on every rank alike.
Status verify_same_parameters(const ParameterSet& parameters, comm::Communicator& group);

}  // namespace fivefold::parallel
