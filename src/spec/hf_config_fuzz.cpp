// Any text as a config.json: what is accepted can be counted, and what can be exported reads back.

#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "spec/huggingface.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fivefold::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto model = from_huggingface_config(text, "fuzz.json");
  if (!model) {
    CHECK(!model.error().message.empty());
    return 0;
  }
  CHECK(count_parameters(*model).total() > 0);
  if (check_huggingface(*model)) {
    const auto again = from_huggingface_config(to_huggingface_config(*model), "again.json");
    CHECK(again.has_value(), "{}", again.error().message);
    model->name.clear();
    CHECK(*again == *model);
  }
  return 0;
}
