#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "train/generate.hpp"

namespace fivefold::cli {
namespace {

struct Options {
  std::string path, prompt;
  train::LoadOptions load;
  train::GenerateOptions generate;
};

Status generate_command(const Options& options) {
  const std::unique_ptr<train::LoadedModel> loaded =
      TRY(train::load_for_use(options.path, options.load));
  fmt::print("{}", options.prompt);
  std::fflush(stdout);
  TRY(train::generate(*loaded, options.prompt, options.generate, [](std::string_view text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }));
  fmt::print("\n");
  return {};
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt with a trained model");
  const auto o = std::make_shared<Options>();
  o->load.threads = default_threads(1);
  command->add_option("MODEL", o->path,
                      "Run folder, step-<n>.safetensors, or Hugging Face folder")->required();
  command->add_option("--prompt", o->prompt, "Text to continue");
  command->add_option("--max-tokens", o->generate.max_tokens, "Tokens to add")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))->capture_default_str();
  command->add_option("--temperature", o->generate.sampling.temperature,
                      "Of the softmax; 0 takes the likeliest token")
      ->check(between(0, 100))->capture_default_str();
  command->add_option("--top-k", o->generate.sampling.top_k, "Only among the k likeliest; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))->capture_default_str();
  command->add_option("--top-p", o->generate.sampling.top_p,
                      "Only among the fewest that reach this probability")
      ->check(between(0, 1))->capture_default_str();
  command->add_option("--seed", o->generate.sampling.seed, "Same seed, same text")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  command->add_option("--tokenizer", o->load.tokenizer,
                      "Instead of the one that the model was trained with");
  command->add_option("--threads", o->load.threads, "Threads to use")->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->callback([o, &action] { action = [o] { return generate_command(*o); }; });
}

}  // namespace fivefold::cli
