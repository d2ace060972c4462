// Any bytes as JSON lines.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "data/text_source.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto status = fivefold::data::read_json_lines(
      text, "fuzz", {}, [](const fivefold::data::Document& document) -> fivefold::Status {
        if (document.text.empty()) std::abort();
        return {};
      });
  (void)status;
  return 0;
}
