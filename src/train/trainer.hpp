#pragma once
// One rank's part of a training run.

#include <atomic>
#include <string>

#include "comm/communicator.hpp"
#include "train/reporter.hpp"

namespace fivefold::train {

struct Environment {
  comm::Communicator& world;       // all ranks; today they are all data-parallel replicas
  Reporter* reporter = nullptr;    // rank 0's; may be empty elsewhere
  const std::atomic<bool>& stop;   // set to end after the current step, with a checkpoint
  int threads = 1;                 // of this rank
  std::string transport;           // for the start screen: "threads", "mpi"
};

// Trains from the latest checkpoint of the run's folder (or from checkpoint.initial_load_path, or
// from fresh weights) to training.steps, writing metrics.jsonl and checkpoints under dump_folder.
// Every rank calls it with the same run.
//
// On resume the run file's values hold from the next step on: the learning rate of step s is always
// learning_rate(run file, s). Changed keys are reported; a change that would make it another run
// (model, precision, seed, sequence length, tokenizer) is refused.
//
// Errors   invalid_input, io; not_finite with the part of the model, the step and the last good
//          checkpoint; timeout and peer_lost from the group.
Status train(const spec::RunSpec& run, const Environment& environment);

}  // namespace fivefold::train
