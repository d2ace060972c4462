#include "data/tokenizer.hpp"

#include "base/random.hpp"
#include "data/byte_tokenizer.hpp"

namespace fivefold::data {

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids(text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[i] = uint8_t(text[i]);
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    if (byte_length(id) == 1) text.push_back(char(id));
  }
  return text;
}

uint64_t ByteTokenizer::fingerprint() const { return stream_of("byte tokenizer"); }

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& name_or_path) {
  if (name_or_path == "byte") return std::make_unique<ByteTokenizer>();
  return invalid_input("{}: not a tokenizer; \"byte\" is", name_or_path);
}

}  // namespace fivefold::data
