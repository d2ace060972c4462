#pragma once
// Files of token ids, memory-mapped:
//
//   megatron  PREFIX.bin (the ids) and PREFIX.idx (their type, sequences and documents)
//   llmc      one .bin: a header of 256 int32 (magic, version, count), then uint16 or uint32 ids
//   nanogpt   one .bin: uint16 ids and nothing else
//
// Beside PREFIX.bin, PREFIX.json (ours, optional) says which tokenizer made the ids.
//
// Source   Megatron-LM, megatron/core/datasets/indexed_dataset.py; llm.c, dev/data/data_common.py;
//          nanoGPT, data/openwebtext/prepare.py. All little-endian.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {

enum class TokenFormat : uint8_t { megatron, llmc, nanogpt };
enum class TokenType : uint8_t { uint8, int8, int16, uint16, int32, uint32, int64 };

const char* name_of(TokenFormat format);
const char* name_of(TokenType type);
int64_t size_of(TokenType type);

// What PREFIX.json holds.
struct TokenFileInfo {
  std::string tokenizer;  // its name
  uint64_t tokenizer_fingerprint = 0;
  int32_t vocab_size = 0;
  int32_t end_of_text = -1;
  int64_t tokens = 0, documents = 0;
  int64_t text_bytes = 0;  // of the text that was tokenised
  bool prompts = false;    // a document's first sequence is a prompt, which bears no loss
  std::string made_from;   // sources and options; identifies a cache entry
};

class TokenFile {
 public:
  // `path` is PREFIX, or PREFIX.bin, or PREFIX.idx. Without `format`: megatron where PREFIX.idx
  // exists, else llmc or nanogpt by the header.
  // Errors   invalid_input: missing, truncated, foreign, or at odds with itself.
  static Result<TokenFile> open(const std::string& path, std::optional<TokenFormat> format = {});

  TokenFormat format() const { return format_; }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  const std::optional<TokenFileInfo>& info() const { return info_; }
  const Path& path() const { return path_; }  // of the ids

  // Where documents begin, then tokens(): ascending. Only the one document [0, tokens()] for flat
  // files until split_documents has looked for their ends.
  const std::vector<int64_t>& document_starts() const { return document_starts_; }
  // Tokens of each document's prompt; empty when there are no prompts.
  const std::vector<int64_t>& prompt_tokens() const { return prompt_tokens_; }
  int64_t documents() const { return int64_t(document_starts_.size()) - 1; }

  // A flat file has no list of documents: they end after each `end_of_text`.
  void split_documents(int32_t end_of_text);

  // Ids [first, first + out.size()). Requires them to exist and to have passed check_ids.
  void read(int64_t first, std::span<int32_t> out) const;

  // Looks at every id. Errors: invalid_input, with the position of the first outside [0, limit).
  Status check_ids(int64_t limit) const;
  int64_t largest_id() const;  // -1 when there are no tokens

 private:
  friend class TokenFileReader;
  TokenFormat format_ = TokenFormat::nanogpt;
  TokenType type_ = TokenType::uint16;
  int64_t tokens_ = 0;
  Path path_;
  MappedFile file_;
  std::span<const std::byte> ids_;
  std::vector<int64_t> document_starts_, prompt_tokens_;
  std::optional<TokenFileInfo> info_;
};

// Parsers of the two headers, apart from the file system: tests and the fuzzer call them.
struct FlatLayout {
  TokenFormat format = TokenFormat::nanogpt;
  TokenType type = TokenType::uint16;
  int64_t offset = 0, tokens = 0;
};
Result<FlatLayout> parse_flat(std::span<const std::byte> bytes, const std::string& name,
                              std::optional<TokenFormat> format = {});

struct MegatronIndex {
  TokenType type = TokenType::uint16;
  int64_t tokens = 0;
  std::vector<int64_t> document_starts;  // in tokens, then the total
  std::vector<int64_t>
      first_sequence;  // tokens of each document's first sequence, -1: the only one
};
Result<MegatronIndex> parse_megatron_index(std::span<const std::byte> index, int64_t bin_bytes,
                                           const std::string& name);

Result<TokenFileInfo> parse_token_file_info(std::string_view json, const std::string& name);
std::string to_json(const TokenFileInfo& info);

// PREFIX without a final ".bin" or ".idx".
Path token_file_prefix(const std::string& path);

}  // namespace fivefold::data
