// Any bytes: refused with a message, or understood so that every tensor can be touched and read.

#include "checkpoint/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fivefold;
  using namespace fivefold::checkpoint;
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) {
    CHECK(!file.error().message.empty());
    return 0;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    total += tensor.bytes.size();
    std::vector<double> values(size_t(tensor.count()));
    (void)read_into(tensor, name, View(values.data(), DType::f64, {tensor.count()}));
    std::vector<bf16> rounded(size_t(tensor.count()));
    (void)read_into(tensor, name, View(rounded.data(), DType::bf16, {tensor.count()}));
  }
  CHECK(total == file->data().size(), "tensors of {} bytes in {}", total, file->data().size());
  return 0;
}
