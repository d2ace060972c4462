#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"

namespace fivefold::data {

// Text to token ids and back. Thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;     // "byte", or the file
  virtual int32_t vocab_size() const = 0;   // ids are in [0, vocab_size)
  virtual int32_t end_of_text() const = 0;  // appended to every document; -1 when there is none
  // The text's ids, without special tokens. Any bytes are taken.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // Of ids that follow others: what `decode` strips from the start of a text stays.
  virtual std::string decode_continuation(std::span<const int32_t> ids) const {
    return decode(ids);
  }
  // How many bytes of text the token stands for (0 for special ones): bits per byte needs it.
  virtual int32_t byte_length(int32_t id) const = 0;
  // The ids of text that goes on after other text of the same document, such as a response after
  // its prompt: differs from `encode` where that puts something before a text (prefix_bytes).
  virtual std::vector<int32_t> encode_continuation(std::string_view text) const {
    return encode(text);
  }
  // Bytes that `encode` puts before a text on its own account and byte_length of the first token
  // counts; `decode` takes them off again. 1 for Llama's SentencePiece models (a space).
  virtual int32_t prefix_bytes() const { return 0; }
  // Identifies the mapping, so cached tokens of another tokenizer are not taken for this one's.
  virtual uint64_t fingerprint() const = 0;
};

// "byte" (256 bytes, then end of text = 256), a SentencePiece .model, a Hugging Face tokenizer.json
// (byte-level BPE, as GPT-2 and Llama 3 have it), or a folder that holds one of these.
// Errors   invalid_input: missing, damaged, or of a kind that is not supported (named).
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& name_or_path);

// Learns a byte-level BPE on `texts` and writes it as tokenizer.json (Hugging Face's format,
// GPT-2's pre-tokenisation). Ties go to the pair that is smaller in bytes: the same text gives the
// same file. Requires vocab_size >= 257.
Result<std::string> train_bpe(std::span<const std::string_view> texts, int32_t vocab_size);

}  // namespace fivefold::data
