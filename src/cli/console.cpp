#include "cli/console.hpp"

#include <unistd.h>

#include <cstdio>

#include "base/quantity.hpp"
#include "base/text.hpp"
#include "base/version.hpp"

namespace fivefold::cli {
namespace {

std::string size(int64_t bytes) { return to_string(Bytes{double(bytes)}); }

std::string share(double x) { return fmt::format("{:.1f} %", 100 * x); }

}  // namespace

Console::Console(int64_t log_freq) : log_freq_(log_freq), terminal_(::isatty(STDOUT_FILENO) == 1) {}

void Console::line(const std::string& text) {
  if (progress_shown_) fmt::print("\r\033[K");
  progress_shown_ = false;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Console::already_done(int64_t step, const std::string& checkpoint) {
  line(fmt::format("nothing to do: {} holds step {}, the run's last; raise training.steps to go on, or "
                   "choose another dump_folder to start anew", checkpoint, step));
}

void Console::started(const train::StartInfo& s) {
  const spec::RunSpec& run = *s.run;
  const spec::ModelSpec& m = run.model;
  line(fmt::format("fivefold {}{}{}", version, run.description.empty() ? "" : ": ",
                   run.description));
  line(fmt::format("model    {} ({}): {} layers, dim {}, {} heads, {} key-value heads, hidden {}, "
                   "vocabulary {}",
                   m.name, spec::name_of(m.architecture), m.num_layers, m.dim, m.num_heads,
                   m.num_kv_heads, m.hidden_dim, m.vocab_size));
  line(fmt::format("         {} parameters = embedding {} + attention {} + mlp {} + norm {} + head {}{}",
                   grouped(s.parameters.total()), grouped(s.parameters.embedding),
                   grouped(s.parameters.attention), grouped(s.parameters.mlp),
                   grouped(s.parameters.norm), grouped(s.parameters.head),
                   m.tied_embeddings ? " (tied)" : ""));
  line(fmt::format("batch    {} sequences = {} ranks x {} a microbatch x {} microbatches; x {} tokens "
                   "= {} tokens a step",
                   s.batch.global_batch_size, s.batch.ranks, s.batch.micro_batch_size,
                   s.batch.accumulation_steps, run.training.seq_len,
                   grouped(s.batch.global_batch_size * run.training.seq_len)));
  line(fmt::format("data     {} training tokens, {} for validation; tokenizer {}",
                   grouped(s.train_tokens), grouped(s.validation_tokens), run.data.tokenizer));
  line(fmt::format("ranks    {} by {}, {} thread{} each", s.batch.ranks, s.transport, s.threads,
                   s.threads == 1 ? "" : "s"));
  line(fmt::format("memory   expected a rank: parameters {}, gradients {}, optimizer {}, activations "
                   "{} (peak: {}); {} in all, kernel scratch aside",
                   size(s.expected.parameter), size(s.expected.gradient),
                   size(s.expected.optimizer), size(s.expected.activation), s.expected.peak_moment,
                   size(s.expected.total())));
  line(fmt::format("compute  {} a token; this machine's measured peak is {}",
                   to_string(Flops{s.flops_per_token}),
                   to_string(FlopsPerSecond{s.peak_flops_per_second})));
  line(fmt::format("start    step {} of {}, weights {}{}{}", s.first_step, run.training.steps,
                   hex(s.weights_hash), s.weights_from.empty() ? "" : " from ", s.weights_from));
  for (const std::string& change : s.changed_on_resume) line("changed  " + change);
}

void Console::stepped(const train::StepReport& s) {
  const bool last = s.step == s.steps;
  const bool lasting = s.step % log_freq_ == 0 || s.step == 1 || last;
  if (!lasting && !terminal_) return;
  const std::string text = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  norm {:.3f}  lr {:.2e}  {} tok/s  MFU {}  mem {}  left {}", s.step,
      std::to_string(s.steps).size(), s.steps, s.loss, s.grad_norm, s.lr,
      grouped(int64_t(s.tokens_per_second)), share(s.mfu), size(s.memory_bytes),
      to_string(Seconds{s.seconds_left}));
  if (lasting) return line(text);
  fmt::print("\r\033[K{}", text);
  std::fflush(stdout);
  progress_shown_ = true;
}

void Console::validated(const train::ValidationReport& v) {
  line(fmt::format("step {}  validation loss {:.4f}  {:.4f} bits per byte  ({} tokens)", v.step,
                   v.loss, v.bits_per_byte, grouped(v.tokens)));
}

void Console::saved(int64_t step, const std::string& path) {
  line(fmt::format("step {}  saved {}", step, path));
}

void Console::finished(const train::Summary& s) {
  line(fmt::format("{} after step {}: loss {:.4f}, {} tok/s, MFU {}, {}",
                   s.interrupted ? "interrupted" : "done", s.last_step, s.loss,
                   grouped(int64_t(s.tokens_per_second)), share(s.mfu),
                   to_string(Seconds{s.seconds})));
  line("memory of rank 0    expected       measured peak");
  const auto row = [&](const char* name, int64_t expected, Category category) {
    line(fmt::format("  {:<16} {:>12}   {:>14}", name, expected < 0 ? "-" : size(expected),
                     size(s.peak.of(category))));
  };
  row("parameters", s.expected.parameter, Category::parameter);
  row("gradients", s.expected.gradient, Category::gradient);
  row("optimizer", s.expected.optimizer, Category::optimizer);
  row("activations", s.expected.activation, Category::activation);
  row("communication", -1, Category::communication);
  row("kernel scratch", -1, Category::workspace);
  line(fmt::format("sent by rank 0 {}, weights {}{}", size(s.comm_bytes_sent), hex(s.weights_hash),
                   s.last_checkpoint.empty() ? "" : ", checkpoint " + s.last_checkpoint));
}

}  // namespace fivefold::cli
