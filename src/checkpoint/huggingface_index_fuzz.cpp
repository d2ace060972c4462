// Any text: refused with a message, or a map to plain file names.

#include "checkpoint/huggingface_layout.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fivefold::checkpoint;
  const auto map = parse_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!map) {
    CHECK(!map.error().message.empty());
    return 0;
  }
  for (const auto& [tensor, file] : *map) {
    CHECK(!file.empty() && file.find('/') == std::string::npos, "{} leaves the folder", file);
  }
  return 0;
}
