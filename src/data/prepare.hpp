#pragma once
// What `fivefold data prepare` and `fivefold data inspect` do.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "data/token_file.hpp"
#include "spec/run.hpp"

namespace fivefold::data {

struct PrepareOptions {
  std::vector<spec::DataSource> sources;  // text; weights are not looked at
  std::string tokenizer = "byte";
  std::string output;  // PREFIX
  TokenFormat format = TokenFormat::megatron;
  double validation_share = 0;  // > 0: PREFIX_train and PREFIX_val instead of PREFIX
};

struct PreparedFile {
  std::string path;  // of the ids
  int64_t tokens = 0, documents = 0, text_bytes = 0;
};

// Tokenises every document of the sources, in order. With a validation share the last documents
// that hold this share of the text's bytes go to PREFIX_val.
//
// Errors   invalid_input: as read_documents; prompts in a flat format; one document and a share.
//          io: the output cannot be written. Files that were there before stay whole.
Result<std::vector<PreparedFile>> prepare(const PrepareOptions& options);

struct Inspection {
  std::string path;
  TokenFormat format = TokenFormat::megatron;
  TokenType type = TokenType::uint16;
  int64_t tokens = 0;
  int64_t documents = 0;  // 1 for flat files whose end of text is not known
  int64_t shortest_document = 0, longest_document = 0;
  int64_t largest_id = -1;
  std::vector<int32_t> first_tokens;
  std::optional<TokenFileInfo> info;
};

// Reads a token file whole and says what is in it. `path` as TokenFile::open takes it.
Result<Inspection> inspect(const std::string& path, int64_t first_tokens = 16);

}  // namespace fivefold::data
