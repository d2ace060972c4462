// Any bytes as a flat token file, a Megatron index, or the description beside them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "data/token_file.hpp"

using namespace fivefold::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto flat = parse_flat(bytes, "fuzz")) {
    if (flat->offset + flat->tokens * size_of(flat->type) != int64_t(size)) std::abort();
  }
  if (size >= 2) {
    // The size of the .bin file is made up from the first bytes after the header.
    const int64_t bin_bytes = size > 34 ? data[34] * int64_t{2} : 0;
    if (const auto index = parse_megatron_index(bytes, bin_bytes, "fuzz")) {
      if (index->tokens * size_of(index->type) != bin_bytes) std::abort();
      if (index->document_starts.back() != index->tokens) std::abort();
    }
  }
  (void)parse_token_file_info({reinterpret_cast<const char*>(data), size}, "fuzz");
  return 0;
}
