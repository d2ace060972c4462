#include <memory>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "data/prepare.hpp"
#include "data/text_source.hpp"

namespace fivefold::cli {
namespace {

std::vector<spec::DataSource> sources_of(const std::vector<std::string>& paths) {
  std::vector<spec::DataSource> sources;
  for (const std::string& path : paths) sources.push_back({.path = path});
  return sources;
}

struct PrepareArguments {
  std::vector<std::string> texts;
  std::string format = "megatron";
  data::PrepareOptions options;
};

Status prepare_command(PrepareArguments arguments) {
  arguments.options.sources = sources_of(arguments.texts);
  for (const char* ending : {"", ".bin", ".idx", ".json"}) {
    for (const std::string& text : arguments.texts) {
      std::error_code none;
      if (!std::filesystem::equivalent(arguments.options.output + ending, text, none)) continue;
      return invalid_input("--output {}: would overwrite the text {}; choose another prefix",
                           arguments.options.output, text);
    }
  }
  arguments.options.format = arguments.format == "llmc" ? data::TokenFormat::llmc
                                                        : data::TokenFormat::megatron;
  for (const data::PreparedFile& file : TRY(data::prepare(arguments.options))) {
    fmt::print("{}: {} tokens of {} documents, {} of text\n", file.path, grouped(file.tokens),
               grouped(file.documents), to_string(Bytes{double(file.text_bytes)}));
  }
  return {};
}

Status inspect_command(const std::string& path) {
  const data::Inspection i = TRY(data::inspect(path));
  fmt::print("{}: {}, {} ids\n", i.path, data::name_of(i.format), data::name_of(i.type));
  fmt::print("  {} tokens in {} documents, the shortest {}, the longest {}; largest id {}\n",
             grouped(i.tokens), grouped(i.documents), grouped(i.shortest_document),
             grouped(i.longest_document), i.largest_id);
  fmt::print("  first tokens: {}\n", fmt::join(i.first_tokens, " "));
  return {};
}

struct TrainTokenizerArguments {
  std::vector<std::string> texts;
  std::string output = "tokenizer.json";
  int32_t vocab_size = 4096;
};

Status train_tokenizer_command(const TrainTokenizerArguments& arguments) {
  if (!arguments.output.ends_with(".json")) {
    return invalid_input("--output {}: a tokenizer's name ends in .json", arguments.output);
  }
  std::vector<std::string> texts;
  for (const spec::DataSource& source : sources_of(arguments.texts)) {
    TRY(data::read_documents(source, [&](const data::Document& document) -> Status {
      texts.push_back(std::string(document.prompt) + std::string(document.text));
      return {};
    }));
  }
  if (texts.empty()) return invalid_input("there is no text to learn from: all files are empty");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::string json = TRY(data::train_bpe(views, arguments.vocab_size));
  TRY(write_file(arguments.output, json));
  const std::unique_ptr<data::Tokenizer> tokenizer = TRY(data::load_tokenizer(arguments.output));
  int64_t bytes = 0, tokens = 0;
  for (const std::string& text : texts) {
    bytes += int64_t(text.size());
    tokens += int64_t(tokenizer->encode(text).size());
  }
  fmt::print("{}: {} tokens learned from {}; {:.2f} bytes a token on it\n", arguments.output,
             tokenizer->vocab_size(), to_string(Bytes{double(bytes)}),
             double(bytes) / double(std::max<int64_t>(1, tokens)));
  return {};
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("data", "Prepare and look at training data");
  command->require_subcommand(1);

  CLI::App* prepare = command->add_subcommand("prepare", "Tokenise text into a token file");
  const auto p = std::make_shared<PrepareArguments>();
  prepare->add_option("TEXT", p->texts, "Text files, .jsonl files, or folders of them")->required();
  prepare->add_option("-o,--output", p->options.output, "Prefix of the files to write")->required();
  prepare->add_option("--tokenizer", p->options.tokenizer,
                      "byte, a SentencePiece .model, or a tokenizer.json")->capture_default_str();
  prepare->add_option("--format", p->format, "megatron (.bin and .idx) or llmc (one .bin)")
      ->check(CLI::IsMember({"megatron", "llmc"}))->capture_default_str();
  prepare->add_option("--validation-share", p->options.validation_share,
                      "Share of the text, at its end, for a second file")
      ->check(between(0, 0.9))->capture_default_str();
  prepare->callback([p, &action] { action = [p] { return prepare_command(*p); }; });

  CLI::App* inspect = command->add_subcommand("inspect", "Check a token file and say what is in it");
  const auto path = std::make_shared<std::string>();
  inspect->add_option("FILE", *path, "A .bin, or the prefix of a .bin and .idx")->required();
  inspect->callback([path, &action] { action = [path] { return inspect_command(*path); }; });

  CLI::App* learn =
      command->add_subcommand("train-tokenizer", "Learn a byte-level BPE on one's own text");
  const auto t = std::make_shared<TrainTokenizerArguments>();
  learn->add_option("TEXT", t->texts, "Text files, .jsonl files, or folders of them")->required();
  learn->add_option("-o,--output", t->output, "File to write")->capture_default_str();
  learn->add_option("--vocab-size", t->vocab_size, "Tokens, the 256 bytes and the end of text among them")
      ->check(CLI::Range(257, 1 << 20))->capture_default_str();
  learn->callback([t, &action] { action = [t] { return train_tokenizer_command(*t); }; });
}

}  // namespace fivefold::cli
