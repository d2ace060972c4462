#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "spec/checks.hpp"

namespace fivefold::spec {
namespace {

void check_lengths(Checker& check) {
  const RunSpec& run = check.run();
  const TrainingSpec& t = run.training;
  check.require(t.seq_len <= run.model.max_seq_len, {"training.seq_len", "model.max_seq_len"},
                fmt::format("is longer than model.max_seq_len; use at most {}, or raise that",
                            run.model.max_seq_len));
  // Tokens of a whole run are counted in int64.
  const double tokens = static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len) *
                        static_cast<double>(t.steps);
  check.require(tokens < 4e18, {"training.steps", "training.seq_len", "training.global_batch_size"},
                "makes too many tokens with this batch; use less");
}

void check_batch(Checker& check) {
  const RunSpec& run = check.run();
  const TrainingSpec& t = run.training;
  if (check.faulted({"training.global_batch_size", "training.micro_batch_size",
                     "training.gradient_accumulation_steps",
                     "parallelism.data_parallel_replicate_degree"})) {
    return;
  }
  const int64_t degree = run.parallelism.data_parallel_replicate_degree;
  check.require(degree != 0, {"parallelism.data_parallel_replicate_degree"},
                "is no number of ranks; use -1 for the ranks that there are, or 1 and more");
  // With the number of ranks still open, one rank is the weakest condition.
  const int64_t ranks = degree > 0 ? degree : 1;
  const Result<BatchPlan> plan = plan_batch(run, ranks);
  if (plan || degree == 0) return;
  if (degree < 0 && t.gradient_accumulation_steps > 0) return;  // judged when the ranks are known
  const std::string& message = plan.error().message;
  const std::string prefix = fmt::format("training.global_batch_size = {}: ", t.global_batch_size);
  check.require(false, {"training.global_batch_size"},
                message.starts_with(prefix) ? message.substr(prefix.size()) : message);
}

void check_schedule(Checker& check) {
  const RunSpec& run = check.run();
  const int64_t steps = run.training.steps, warmup = run.lr_scheduler.warmup_steps;
  check.require(warmup <= steps, {"lr_scheduler.warmup_steps", "training.steps"},
                fmt::format("is more than training.steps; use at most {}", steps));
  const double ratio = run.lr_scheduler.decay_ratio;
  if (ratio >= 1 || warmup > steps) return;  // at 1 all that follows the rise is the fall
  const int64_t decay = std::llround(ratio * static_cast<double>(steps));
  check.require(
      warmup + decay <= steps,
      {"lr_scheduler.decay_ratio", "lr_scheduler.warmup_steps", "training.steps"},
      fmt::format(
          "makes {} of {} steps fall, and the rise takes {}; use at most {:.4g}, or "
          "1 for all steps after the rise",
          decay, steps, warmup,
          std::floor(1e4 * static_cast<double>(steps - warmup) / static_cast<double>(steps)) /
              1e4));
}

void check_precision(Checker& check) {
  const TrainingSpec& t = check.run().training;
  const char* const wanted = t.mixed_precision_param == "float64" ? "float64" : "float32";
  check.require(
      t.mixed_precision_reduce == wanted,
      {"training.mixed_precision_reduce", "training.mixed_precision_param"},
      fmt::format("does not go with {} parameters; use \"{}\"", t.mixed_precision_param, wanted));
}

void check_recompute(Checker& check) {
  const std::string& option = check.run().activation_checkpoint.selective_ac_option;
  int64_t n = 0;
  const auto [end, error] = std::from_chars(option.data(), option.data() + option.size(), n);
  const bool number = error == std::errc() && end == option.data() + option.size() && n >= 1;
  check.require(option == "op" || number, {"activation_checkpoint.selective_ac_option"},
                "is not a way to choose; use \"op\", or \"2\" for every second layer in full");
  check.require(option == "op" || check.run().activation_checkpoint.mode == "selective",
                {"activation_checkpoint.selective_ac_option", "activation_checkpoint.mode"},
                "needs activation_checkpoint.mode = \"selective\"; use that, or \"op\"");
}

void check_services(Checker& check) {
  const RunSpec& run = check.run();
  check.require(!run.dump_folder.empty(), {"job.dump_folder"}, "is empty; use a folder");
  check.require(!run.checkpoint.folder.empty(), {"checkpoint.folder"},
                "is empty; use a folder, or checkpoint.enable = false");
  check.require(!run.data.tokenizer.empty(), {"data.tokenizer"},
                "is empty; use \"byte\" or a path");
  check.require(run.checkpoint.enable || run.checkpoint.load_step < 0,
                {"checkpoint.load_step", "checkpoint.enable"},
                "needs checkpoint.enable; use that, or -1");
  check.require(run.checkpoint.enable || !run.checkpoint.last_save_in_hf,
                {"checkpoint.last_save_in_hf", "checkpoint.enable"},
                "needs checkpoint.enable; use that, or false");
  check.require(
      !run.validation.enable || run.data.validation_share > 0 || !run.data.validation_path.empty(),
      {"validation.enable", "data.validation_share", "data.validation_path"},
      "has no data; use data.validation_path, data.validation_share above 0, or false");
}

}  // namespace

void check_run(Checker& check) {
  check.ranges(run_keys());
  check_lengths(check);
  check_batch(check);
  check_schedule(check);
  check_precision(check);
  check_recompute(check);
  check_services(check);
}

Status check_trainable(const RunSpec& run) {
  Report report("training");
  const ModelSpec& m = run.model;
  if (m.architecture != Architecture::llama && m.architecture != Architecture::gpt2) {
    report.fault(
        fmt::format("model.architecture = \"{}\": training it comes later; use \"llama\" or "
                    "\"gpt2\"",
                    name_of(m.architecture)));
  }
  if (m.yarn) {
    report.fault(
        "model.rope_scaling = \"yarn\": training it comes later; use \"none\" or \"llama3\"");
  }
  if (run.data.sources.empty()) {
    report.fault(
        "data.sources: is missing; use [[data.sources]] with path = \"…\" in the run file, or "
        "--data.sources=PATH");
  }
  return report.status();
}

}  // namespace fivefold::spec
