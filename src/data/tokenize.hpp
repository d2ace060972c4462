#pragma once
// From text sources to token files, and the cache of those that a run has made.

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "data/text_source.hpp"
#include "data/token_file.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer.hpp"
#include "spec/run.hpp"

namespace fivefold::data {

// Is `source` text, which must be tokenised, rather than tokens?
// Errors   invalid_input: no such file; a format that is not known.
Result<bool> is_text(const spec::DataSource& source);

// What is known of a token file before it is written.
TokenFileInfo info_of(const Tokenizer& tokenizer);

// One document and the tokenizer's end of text.
Status append_document(const Document& document, const Tokenizer& tokenizer, TokenWriter& writer);

// Appends every document of `source` with the tokenizer's end of text. Returns the bytes of text.
Result<int64_t> tokenize(const spec::DataSource& source, const Tokenizer& tokenizer,
                         TokenWriter& writer);

// Opens a token file, checks every id against `vocab_size` and that it is of this tokenizer where
// that is known, and finds the documents.
Result<TokenFile> open_tokens(const spec::DataSource& source, const Tokenizer& tokenizer,
                              int64_t vocab_size);

// The tokens of a text source, made at the first call and mapped afterwards. The cache's entry is
// found by the files' paths, sizes and times of change, the tokenizer and the source's options.
// Processes that come together wait for the first of them.
// Errors   io: the cache folder cannot be written; timeout: another process holds it for an hour.
Result<TokenFile> cached_tokens(const spec::DataSource& source, const Tokenizer& tokenizer,
                                const std::string& cache_folder);

}  // namespace fivefold::data
