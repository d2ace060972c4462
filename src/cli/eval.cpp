#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>

#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "comm/threads.hpp"
#include "data/ngram.hpp"
#include "spec/run.hpp"
#include "train/evaluate.hpp"
#include "train/loaded_model.hpp"

namespace fivefold::cli {
namespace {

struct Options {
  std::string path, baseline = "none";
  std::vector<std::string> text;
  int64_t seq_len = 0, micro_batch = 4;
  train::LoadOptions load;
};

// A folder for the tokens of the evaluated text, gone at the end.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    ScratchFolder folder;
    std::error_code error;
    folder.path_ = std::filesystem::temp_directory_path(error) /
                   fmt::format("fivefold-eval-{}", ::getpid());
    if (error) return io_error("TMPDIR names no folder: {}", error.message());
    TRY(make_folder(folder.path_));
    return folder;
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  ~ScratchFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  const Path& path() const { return path_; }

 private:
  ScratchFolder() = default;
  Path path_;
};

// The run that made the model, or a bare one, with its data replaced by `text` when that is given.
Result<spec::RunSpec> data_of(const Options& o, const train::LoadedModel& loaded,
                              const std::string& text) {
  spec::RunSpec run;
  if (loaded.run) run = *loaded.run;
  run.model = loaded.spec;
  run.data.tokenizer = loaded.tokenizer_path;
  if (o.seq_len > 0) run.training.seq_len = o.seq_len;
  if (run.training.seq_len == 0) run.training.seq_len = std::min<int64_t>(1024, loaded.max_seq_len);
  if (run.training.seq_len > loaded.max_seq_len) {
    return invalid_input("--seq-len {} exceeds the model's {} positions", run.training.seq_len,
                         loaded.max_seq_len);
  }
  if (!text.empty()) {
    run.data.sources.assign(1, {.path = text});
    run.data.validation_path.clear();
    run.data.validation_share = 0;
  } else if (!loaded.run) {
    return invalid_input("{}: is no training run, so it has no validation text; give one with --text",
                         o.path);
  }
  return run;
}

Result<std::string> baseline(const data::Loader& loader) {
  data::ByteTrigram trigram;
  trigram.train(TRY(loader.text(data::Split::train)));
  const double bits = trigram.bits_per_byte(TRY(loader.text(data::Split::validation)));
  return fmt::format("interpolated byte trigram of the same training text: {:.4f} bits per byte\n",
                     bits);
}

Status eval_command(const Options& o) {
  if (o.baseline != "none" && !o.text.empty()) {
    return invalid_input("--baseline trigram compares on a run's own validation split, learning from "
                         "its training split; leave --text out");
  }
  const std::unique_ptr<train::LoadedModel> loaded = TRY(train::load_for_use(o.path, o.load));
  const ScratchFolder scratch = TRY(ScratchFolder::make());
  const std::unique_ptr<comm::Communicator> world = comm::alone();
  const data::Split split = o.text.empty() ? data::Split::validation : data::Split::train;
  train::Losses total;
  int64_t tokens = 0;
  std::string compared;
  // Each text by itself: a mixture would read the short ones again and leave out some of the long.
  const std::vector<std::string> texts = o.text.empty() ? std::vector<std::string>{""} : o.text;
  for (const std::string& text : texts) {
    const spec::RunSpec run = TRY(data_of(o, *loaded, text));
    const std::unique_ptr<data::Loader> loader =
        TRY(data::open_loader(run, scratch.path().string()));
    const train::Losses losses = TRY(train::evaluate(
        *loaded->model, *loader, split, loader->samples(split), o.micro_batch, *world));
    total.sum += losses.sum;
    total.tokens += losses.tokens;
    total.bytes += losses.bytes;
    tokens += loader->tokens(split);
    if (o.baseline == "trigram") compared = TRY(baseline(*loader));
  }
  fmt::print("{}\nloss {:.4f} nats per token, perplexity {:.3f}, {:.4f} bits per byte; {} tokens of "
             "{}, {} bytes\n",
             loaded->source, total.per_token(), std::exp(total.per_token()), total.bits_per_byte(),
             grouped(int64_t(total.tokens)), grouped(tokens), grouped(int64_t(total.bytes)));
  fmt::print("{}", compared);
  return {};
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("eval", "Loss, perplexity and bits per byte of a model on a text");
  const auto o = std::make_shared<Options>();
  o->load.threads = default_threads(1);
  command->add_option("MODEL", o->path, "Run folder, step-<n>.safetensors, or Hugging Face folder")
      ->required();
  command->add_option("--text", o->text,
                      "Text files, .jsonl files or folders; otherwise the run's validation split");
  command->add_option("--seq-len", o->seq_len, "Tokens of context; otherwise the run's")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--micro-batch", o->micro_batch, "Sequences at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))->capture_default_str();
  command->add_option("--baseline", o->baseline,
                      "trigram: also an interpolated byte trigram of the run's training text")
      ->check(CLI::IsMember({"none", "trigram"}))->capture_default_str();
  command->add_option("--tokenizer", o->load.tokenizer,
                      "Instead of the one that the model was trained with");
  command->add_option("--threads", o->load.threads, "Threads to use")->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->callback([o, &action] { action = [o] { return eval_command(*o); }; });
}

}  // namespace fivefold::cli
