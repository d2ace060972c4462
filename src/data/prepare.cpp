#include "data/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/text_source.hpp"
#include "data/token_writer.hpp"
#include "data/tokenize.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {
namespace {

// One of the output's files while it is made.
struct Output {
  TokenWriter writer;
  int64_t text_bytes = 0;
};

Result<Output> open_output(const PrepareOptions& options, const char* suffix,
                           const Tokenizer& tokenizer) {
  const Path prefix = options.output + suffix;
  if (prefix.has_parent_path()) TRY(make_folder(prefix.parent_path()));
  return Output{TRY(TokenWriter::create(prefix, options.format, tokenizer.vocab_size()))};
}

Result<PreparedFile> close_output(Output& output, const PrepareOptions& options, const char* suffix,
                                  const Tokenizer& tokenizer) {
  TokenFileInfo info = info_of(tokenizer);
  info.text_bytes = output.text_bytes;
  for (const spec::DataSource& source : options.sources) info.made_from += source.path + "\n";
  info = TRY(output.writer.finish(std::move(info)));
  return PreparedFile{options.output + suffix + ".bin", info.tokens, info.documents,
                      info.text_bytes};
}

// The bytes of each document, to know where the tail begins before the first is written.
Result<std::vector<int64_t>> measure(const std::vector<spec::DataSource>& sources) {
  std::vector<int64_t> bytes;
  for (const spec::DataSource& source : sources) {
    TRY(read_documents(source, [&](const Document& document) -> Status {
      bytes.push_back(int64_t(document.prompt.size() + document.text.size()));
      return {};
    }));
  }
  return bytes;
}

// How many documents are for training: the tail's bytes come nearest to the share.
Result<int64_t> documents_to_train(const PrepareOptions& options) {
  const std::vector<int64_t> bytes = TRY(measure(options.sources));
  if (bytes.size() < 2) {
    return invalid_input(
        "{} document(s) cannot be split for validation; give more documents or no validation share",
        bytes.size());
  }
  double all = 0;
  for (const int64_t b : bytes) all += double(b);
  const double wish = all * (1 - options.validation_share);
  double before = double(bytes[0]);
  int64_t train = 1;
  while (train + 1 < int64_t(bytes.size()) &&
         std::abs(before + double(bytes[size_t(train)]) - wish) <= std::abs(before - wish)) {
    before += double(bytes[size_t(train++)]);
  }
  return train;
}

Status check(const PrepareOptions& options) {
  if (options.sources.empty()) return invalid_input("no source of text is given");
  if (options.output.empty()) return invalid_input("no output is given");
  if (!(options.validation_share >= 0 && options.validation_share < 1)) {
    return invalid_input("validation share {}: must be at least 0 and below 1",
                         options.validation_share);
  }
  for (const spec::DataSource& source : options.sources) {
    if (!TRY(is_text(source))) {
      return invalid_input("{}: holds tokens already; prepare takes text", source.path);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<PreparedFile>> prepare(const PrepareOptions& options) {
  TRY(check(options));
  const std::unique_ptr<Tokenizer> tokenizer = TRY(load_tokenizer(options.tokenizer));
  const bool split = options.validation_share > 0;
  const int64_t to_train =
      split ? TRY(documents_to_train(options)) : std::numeric_limits<int64_t>::max();
  const char* suffixes[] = {split ? "_train" : "", "_val"};
  std::vector<Output> outputs;
  outputs.push_back(TRY(open_output(options, suffixes[0], *tokenizer)));
  if (split) outputs.push_back(TRY(open_output(options, suffixes[1], *tokenizer)));

  int64_t document = 0;
  for (const spec::DataSource& source : options.sources) {
    const int64_t before = document;
    TRY(read_documents(source, [&](const Document& text) -> Status {
      Output& output = outputs[document++ < to_train ? 0 : 1];
      output.text_bytes += int64_t(text.prompt.size() + text.text.size());
      return append_document(text, *tokenizer, output.writer);
    }));
    if (document == before) return invalid_input("{}: is empty: no text to read", source.path);
  }
  std::vector<PreparedFile> files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    files.push_back(TRY(close_output(outputs[i], options, suffixes[i], *tokenizer)));
  }
  return files;
}

Result<Inspection> inspect(const std::string& path, int64_t first_tokens) {
  const TokenFile file = TRY(TokenFile::open(path));
  TRY(file.check_ids(std::numeric_limits<int32_t>::max()));
  Inspection out;
  out.path = file.path().string();
  out.format = file.format();
  out.type = file.type();
  out.tokens = file.tokens();
  out.documents = file.documents();
  out.largest_id = file.largest_id();
  out.info = file.info();
  const std::vector<int64_t>& starts = file.document_starts();
  out.shortest_document = file.tokens();
  for (size_t d = 0; d + 1 < starts.size(); ++d) {
    out.shortest_document = std::min(out.shortest_document, starts[d + 1] - starts[d]);
    out.longest_document = std::max(out.longest_document, starts[d + 1] - starts[d]);
  }
  out.first_tokens.resize(size_t(std::clamp<int64_t>(first_tokens, 0, file.tokens())));
  file.read(0, out.first_tokens);
  return out;
}

}  // namespace fivefold::data
