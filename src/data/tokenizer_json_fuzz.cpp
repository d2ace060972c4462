// Any bytes as a tokenizer.json: refused, or a tokenizer that gives text back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "data/tokenizer_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = fivefold::data::parse_tokenizer_json(text, "fuzz");
  if (!tokenizer) return 0;
  const std::string_view sample = text.substr(0, 200);
  const auto ids = (*tokenizer)->encode(sample);
  for (const int32_t id : ids) {
    if (id < 0 || id >= (*tokenizer)->vocab_size()) std::abort();
  }
  (void)(*tokenizer)->decode(ids);
  return 0;
}
