#pragma once
// What a run tells the outside. The trainer prints nothing; the command line implements this.

#include <cstdint>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "spec/run.hpp"
#include "step/memory_ledger.hpp"
#include "tensor/memory.hpp"

namespace fivefold::train {

struct StartInfo {
  const spec::RunSpec* run = nullptr;
  spec::BatchPlan batch;
  spec::ParameterCount parameters;
  step::MemoryLedger expected;
  int64_t train_tokens = 0, validation_tokens = 0;
  double flops_per_token = 0;
  double peak_flops_per_second = 0;  // measured on this machine, all ranks' threads together
  int threads = 1;                   // a rank
  std::string transport;             // "threads", "mpi"
  uint64_t weights_hash = 0;         // of the values training starts from
  std::string weights_from;          // the file they were read from; empty: initialised
  int64_t first_step = 1;
  std::vector<std::string> changed_on_resume;  // "optimizer.lr: 0.0003 -> 0.0001"
};

struct StepReport {
  int64_t step = 0, steps = 0;
  double loss = 0;       // nats per token, mean over the step's global batch
  double grad_norm = 0;  // before clipping
  double lr = 0;
  int64_t tokens = 0;    // seen so far, over all ranks
  double seconds = 0;    // of this step
  double tokens_per_second = 0;   // a moving mean over some ten steps
  double mfu = 0;                 // against peak_flops_per_second
  double comm_seconds = 0, comm_exposed_seconds = 0;  // gradient reduction; what backward did not hide
  int64_t memory_bytes = 0;       // live peak of this rank
  double seconds_left = 0;
};

struct ValidationReport {
  int64_t step = 0;
  double loss = 0;
  double bits_per_byte = 0;
  int64_t tokens = 0;
};

struct Summary {
  int64_t last_step = 0;
  double loss = 0, validation_loss = 0, validation_bits_per_byte = 0;
  double seconds = 0, tokens_per_second = 0, mfu = 0;
  MemoryUse peak;           // of each category
  MemoryUse at_total_peak;
  step::MemoryLedger expected;
  uint64_t weights_hash = 0;
  int64_t comm_bytes_sent = 0;  // this rank
  std::string last_checkpoint;
  bool interrupted = false;
};

// Called on rank 0 only, from the training thread.
class Reporter {
 public:
  virtual ~Reporter() = default;
  // The run was finished before: `checkpoint` holds its last step.
  virtual void already_done(int64_t step, const std::string& checkpoint) = 0;
  virtual void started(const StartInfo&) = 0;
  virtual void stepped(const StepReport&) = 0;  // every step; the reporter picks what to show
  virtual void validated(const ValidationReport&) = 0;
  virtual void saved(int64_t step, const std::string& path) = 0;
  virtual void finished(const Summary&) = 0;
};

}  // namespace fivefold::train
