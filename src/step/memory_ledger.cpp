#include "step/memory_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "spec/keep.hpp"

namespace fivefold::step {
namespace {

using spec::Keep;

// Bytes that the tensors of one microbatch take.
struct Sizes {
  int64_t x;           // [N, dim]
  int64_t norm;        // statistics of one norm
  int64_t qkv, qk;     // qk: only with QK-norm, its statistics included
  int64_t out, lse;    // attention
  int64_t pre, hidden; // MLP
  int64_t dqkv, dqk;
  int64_t branch;      // a residual branch held apart for dropout
  int64_t logits, losses;

  int64_t attention() const { return qkv + qk + out + lse; }
  int64_t whole() const { return 4 * x + 2 * norm + attention() + pre + hidden; }
  int64_t kept(Keep keep) const {
    switch (keep) {
      case Keep::all: return whole();
      case Keep::products: return whole() - 2 * x - hidden;
      case Keep::input: return x;
    }
    return 0;
  }
};

Sizes sizes_of(const spec::ModelSpec& m, int64_t rows, int64_t element, int64_t statistic) {
  const int64_t q = m.q_dim(), kv = m.kv_dim(), f = m.hidden_dim;
  Sizes s{};
  s.x = rows * m.dim * element;
  s.norm = rows * statistic * (m.norm == spec::Norm::layernorm ? 2 : 1);
  s.qkv = s.dqkv = rows * (q + 2 * kv) * element;
  if (m.qk_norm) {
    s.dqk = rows * (q + kv) * element;
    s.qk = s.dqk + rows * (m.num_heads + m.num_kv_heads) * statistic;
  }
  s.out = rows * q * element;
  s.lse = rows * m.num_heads * statistic;
  s.pre = rows * (m.mlp == spec::Mlp::swiglu ? 2 * f : f) * element;
  s.hidden = rows * f * element;
  s.branch = m.residual_dropout > 0 ? s.x : 0;
  s.logits = rows * m.vocab_size * element;
  s.losses = 2 * rows * statistic;
  return s;
}

// The trainer's order of allocations, replayed.
class Replay {
 public:
  void add(int64_t bytes) { live_ += bytes; }
  // Something that lives on top of what is live now, for a moment.
  void moment(int64_t extra, const std::string& name) {
    if (live_ + extra > peak_) peak_ = live_ + extra, name_ = name;
  }
  int64_t peak() const { return peak_; }
  const std::string& name() const { return name_; }

 private:
  int64_t live_ = 0, peak_ = 0;
  std::string name_;
};

void forward_layer(Replay& replay, const Sizes& s, Keep keep, int64_t layer) {
  // The input is live already (it was the layer before's output).
  const std::string name = fmt::format("forward of layer {}", layer);
  replay.moment(s.whole() - s.x + s.x + s.branch, name);
  replay.add(s.kept(keep) - s.x);  // and x stays
  replay.add(s.x);                 // the output
}

void backward_layer(Replay& replay, const Sizes& s, Keep keep, int64_t layer) {
  const std::string name = fmt::format("backward of layer {}", layer);
  const int64_t restored = s.whole() - s.kept(keep);
  // The output's gradient dy is live already; dh2 comes first, then the MLP's, then the rest.
  replay.moment(restored + s.x + s.branch + s.hidden, name);
  const int64_t both = restored + 2 * s.x + s.branch;  // dh2, dx1
  replay.moment(both + s.x + s.branch + s.out + s.dqkv + s.dqk, name);       // dh1, dout
  replay.moment(both + s.x + s.branch + s.dqkv + s.dqk + s.x, name);         // dh1, dx
  replay.add(-s.kept(keep));  // tape and work go; dy went into the work, dx takes its place
}

}  // namespace

MemoryLedger memory_of(const spec::RunSpec& run, const spec::BatchPlan& batch) {
  const spec::ModelSpec& m = run.model;
  const bool bf16 = run.training.mixed_precision_param == "bfloat16";
  const bool f64 = run.training.mixed_precision_param == "float64";
  const int64_t element = bf16 ? 2 : f64 ? 8 : 4, wide = f64 ? 8 : 4;
  const int64_t rows = batch.micro_batch_size * run.training.seq_len;
  const int64_t count = spec::count_parameters(m).total();
  const Sizes s = sizes_of(m, rows, element, wide);

  MemoryLedger ledger;
  ledger.parameter = count * element;
  ledger.gradient = count * wide;
  ledger.optimizer = count * (2 * wide + (bf16 ? 4 : 0));
  ledger.logits = s.logits;

  const std::vector<Keep> keep_of_layer = spec::keep_of(run.activation_checkpoint, m.num_layers);
  Replay replay;
  replay.add(s.x);  // the embedding's output
  int64_t kept = 0;
  for (int64_t layer = 0; layer < m.num_layers; ++layer) {
    const Keep keep = keep_of_layer[size_t(layer)];
    forward_layer(replay, s, keep, layer);
    kept += s.kept(keep);
    ledger.kept_per_layer = std::max(ledger.kept_per_layer, s.kept(keep));
  }
  // The last output is the head's input.
  replay.add(s.x + s.norm + s.logits);
  replay.moment(s.losses, "the loss");
  replay.moment(2 * s.x, "backward of the head");
  replay.add(-(2 * s.x + s.norm + s.logits) + s.x);  // the head's tape goes, its dx stays
  for (int64_t layer = m.num_layers; layer-- > 0;) {
    backward_layer(replay, s, keep_of_layer[size_t(layer)], layer);
  }
  ledger.activation = replay.peak();
  ledger.peak_moment = replay.name();

  const auto line = [&](std::string what, std::string arithmetic, int64_t bytes) {
    ledger.lines.push_back({std::move(what), std::move(arithmetic), bytes});
  };
  line("parameters", fmt::format("{} x {}", count, element), ledger.parameter);
  line("gradients", fmt::format("{} x {}", count, wide), ledger.gradient);
  line("optimizer (two moments" + std::string(bf16 ? ", float32 weights)" : ")"),
       fmt::format("{} x {}", count, 2 * wide + (bf16 ? 4 : 0)), ledger.optimizer);
  line("activations kept by the layers",
       fmt::format("{} layers, up to {} each", m.num_layers, ledger.kept_per_layer), kept);
  line("logits", fmt::format("{} x {} x {}", rows, m.vocab_size, element), s.logits);
  return ledger;
}

double model_flops_per_token(const spec::ModelSpec& m, int64_t seq_len) {
  const double q = double(m.q_dim()), kv = double(m.kv_dim()), dim = double(m.dim);
  const double mlp = (m.mlp == spec::Mlp::swiglu ? 3.0 : 2.0) * dim * double(m.hidden_dim);
  const double weights =
      double(m.num_layers) * (dim * (2 * q + 2 * kv) + mlp) + dim * double(m.vocab_size);
  // Token t sees t of the seq_len keys (or the window's): on average about half.
  double visible = (double(seq_len) + 1) / 2;
  if (m.sliding_window > 0 && m.sliding_window < seq_len) {
    const double w = double(m.sliding_window), t = double(seq_len);
    visible = (w * (w + 1) / 2 + (t - w) * w) / t;
  }
  const double attention = 2.0 * double(m.num_layers) * q * visible;  // scores and values
  return 6 * weights + 6 * attention;
}

}  // namespace fivefold::step
