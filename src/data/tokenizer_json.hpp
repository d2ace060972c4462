#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {

// The text of a Hugging Face tokenizer.json whose model is a byte-level BPE.
//
// Taken    model BPE, merges as strings or pairs, ignore_merges; pre-tokenizers ByteLevel, Split
//          (isolated), Digits and sequences of them that end in ByteLevel; normalizers none and
//          NFC; added tokens. Whatever else changes the ids is refused by its name.
// Ignores  post_processor, decoder, truncation and padding: encode adds no special tokens.
//
// The end of a text is the special token <|end_of_text|>, <|endoftext|>, </s> or
// <｜end▁of▁sentence｜>, whichever comes first in this list, or else `end_of_text`
// (tokenizer_config's eos_token; may be empty).
Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string_view json,
                                                        const std::string& name,
                                                        const std::string& end_of_text = {});

}  // namespace fivefold::data
