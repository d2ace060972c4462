#pragma once
// Writes the token files that token_file.hpp reads.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "data/token_file.hpp"

namespace fivefold::data {

// Documents in, files out. Nothing bears its final name until `finish`, and PREFIX.json comes last:
// where it exists, the others are whole.
//
// Cost     megatron streams to the disk; llmc holds its ids until `finish`, because their number
//          stands at the head of the file.
class TokenWriter {
 public:
  // Errors   invalid_input: nanogpt and llmc hold uint16 or uint32; nanogpt takes up to 65536 ids.
  //          io: the folder cannot be written.
  static Result<TokenWriter> create(const Path& prefix, TokenFormat format, int32_t vocab_size);

  // One document, its first `prompt_tokens` being a prompt.
  // Errors   invalid_input: a prompt in a flat file, which cannot mark it; a document or file too
  //          long for the format. io.
  Status append(std::span<const int32_t> ids, int64_t prompt_tokens = 0);

  // `info` says what is known beforehand; tokens, documents and prompts are filled in.
  Result<TokenFileInfo> finish(TokenFileInfo info);

  int64_t tokens() const { return tokens_; }

 private:
  TokenWriter(Path prefix, TokenFormat format, TokenType type, DurableFile bin)
      : prefix_(std::move(prefix)), format_(format), type_(type), bin_(std::move(bin)) {}
  Status flush();
  Status write_index() const;
  std::string llmc_header() const;

  Path prefix_;
  TokenFormat format_;
  TokenType type_;
  DurableFile bin_;
  std::string buffer_;
  std::vector<int32_t> lengths_;       // of sequences
  std::vector<int64_t> documents_{0};  // sequences before each document's end
  int64_t tokens_ = 0;
  bool prompts_ = false;
};

// All documents at once.
Status write_token_file(const Path& prefix, TokenFormat format, const TokenFileInfo& info,
                        std::span<const std::vector<int32_t>> documents);

}  // namespace fivefold::data
