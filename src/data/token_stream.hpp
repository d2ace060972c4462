#pragma once
// A range of one token file seen as samples: windows of seq_len + 1 tokens, seq_len apart.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "data/token_file.hpp"

namespace fivefold::data {

struct TokenRange {
  int64_t first = 0, last = 0;  // tokens [first, last)
  int64_t tokens() const { return last - first; }
  int64_t samples(int64_t seq_len) const {
    return tokens() > seq_len ? (tokens() - 1) / seq_len : 0;
  }
};

struct SplitRanges {
  TokenRange train, validation;
};
// Cuts the tail of about `share` of the tokens off for validation: between two documents, nearest
// to the share, so that both sides hold a sample; if there is no such place, within a document.
// Errors   invalid_input, under the name that the user gave the text: too few tokens for a sample on
//          both sides.
Result<SplitRanges> split_tail(const TokenFile& file, const std::string& name, double share,
                               int64_t seq_len);

struct MaskOptions {
  bool pack_documents = true, mask_document_borders = true;
};

// Fills rows of a batch.
class RowReader {
 public:
  // `byte_lengths` by token id; `prefix_bytes` as the tokenizer has it.
  RowReader(const TokenFile& file, std::span<const int32_t> byte_lengths, int32_t prefix_bytes,
            int64_t seq_len, MaskOptions options)
      : file_(&file),
        byte_lengths_(byte_lengths),
        prefix_bytes_(prefix_bytes),
        seq_len_(seq_len),
        options_(options) {}
  // The window that begins at token `first` into row `row` of `batch`, whose arrays have their
  // sizes; adds to its counts.
  void read(int64_t first, int64_t row, Batch& batch) const;

 private:
  const TokenFile* file_;
  std::span<const int32_t> byte_lengths_;
  int32_t prefix_bytes_;
  int64_t seq_len_;
  MaskOptions options_;
};

}  // namespace fivefold::data
