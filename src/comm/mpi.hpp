#pragma once

#include "comm/communicator.hpp"

namespace fivefold::comm {

// Whether this process was started by mpirun or by Slurm's srun as one of several ranks (or by
// mpirun as the only one). Reads the environment only.
bool under_mpi();

// All processes of the launch. Initialises MPI at the first call and finalises it at exit.
// Errors   io when MPI cannot be initialised with thread support.
Result<std::unique_ptr<Communicator>> mpi_world(const Options& options);

// Ranks of this launch that run on this machine. Known after mpi_world; 1 before.
int mpi_local_ranks();

}  // namespace fivefold::comm
