#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {

// A SentencePiece .model as the Llama 1 and 2, Mistral and Gemma families have it: byte pieces for
// what has no piece, and no change to the text but for a space put before it.
//
// Errors   invalid_input: missing, damaged, without byte pieces, or with a normaliser that changes
//          the text (decode could not give it back, and bits per byte would not be those of the
//          text).
Result<std::unique_ptr<Tokenizer>> load_sentencepiece(const std::string& path);

}  // namespace fivefold::data
