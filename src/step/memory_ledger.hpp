#pragma once
// The memory of one rank in a training step, from the run file alone: what the trainer will hold in
// each category, exactly, and at which moment most. Every term is a tensor of the model; the test
// beside the trainer compares the ledger with the counters of a real run, byte for byte.

#include <cstdint>
#include <string>
#include <vector>

#include "spec/run.hpp"

namespace fivefold::step {

struct LedgerLine {
  std::string what;        // "layer 0-11: attention output"
  std::string arithmetic;  // "12 x 1024 x 768 x 4"
  int64_t bytes = 0;
};

struct MemoryLedger {
  int64_t parameter = 0, gradient = 0, optimizer = 0;
  int64_t activation = 0;      // at the peak
  int64_t logits = 0;          // the part of a step that the head alone needs
  int64_t kept_per_layer = 0;  // activations that one layer keeps for its backward pass (largest)
  std::string peak_moment;     // "backward of layer 11"
  std::vector<LedgerLine> lines;

  int64_t total() const { return parameter + gradient + optimizer + activation; }
};

// Kernel scratch and communication buffers are not in it: they do not grow with the model's depth
// and are reported as measured.
MemoryLedger memory_of(const spec::RunSpec& run, const spec::BatchPlan& batch);

// Floating-point operations that a training step spends on one token, forward and backward: 6 for
// each weight of a matrix product (the look-up of an embedding is none), and for attention's two
// products 6 * 2 * layers * q_dim * the mean number of keys that a token sees (causal: about half of
// seq_len). Recomputation is not counted: this is the numerator of MFU, not of HFU.
// Source   Chowdhery et al., PaLM, 2022, appendix B, with the causal half left out.
double model_flops_per_token(const spec::ModelSpec& model, int64_t seq_len);

}  // namespace fivefold::step
