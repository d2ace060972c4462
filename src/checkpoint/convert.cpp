// read_into: elements of a file to elements in memory.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/safetensors.hpp"

namespace fivefold::checkpoint {
namespace {

// IEEE binary16, in files only.
struct f16 {
  uint16_t bits = 0;
};

// Exact: binary32 holds every binary16.
float widen(f16 x) {
  const uint32_t sign = uint32_t(x.bits & 0x8000) << 16;
  const uint32_t exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
  if (exponent == 0) {  // zero and subnormals: a multiple of 2^-24
    const float magnitude = float(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}
float widen(bf16 x) { return to_float(x); }
float widen(float x) { return x; }
double widen(double x) { return x; }

// Binary64 to binary32 rounding to odd, so that a second rounding to fewer bits is still to
// nearest.
float round_to_odd(double x) {
  const float nearest = float(x);
  if (!std::isfinite(nearest) || double(nearest) == x) return nearest;
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (bits & 1) return nearest;
  const bool away = std::fabs(double(nearest)) > std::fabs(x);
  return std::bit_cast<float>(away ? bits - 1 : bits + 1);
}

template <class To>
To narrow(float x) {
  if constexpr (std::is_same_v<To, bf16>)
    return to_bf16(x);
  else
    return To(x);
}
template <class To>
To narrow(double x) {
  if constexpr (std::is_same_v<To, bf16>)
    return to_bf16(round_to_odd(x));
  else
    return To(x);
}

bool finite(double x) {
  return (std::bit_cast<uint64_t>(x) & 0x7ff0000000000000) != 0x7ff0000000000000;
}
bool finite(float x) { return (std::bit_cast<uint32_t>(x) & 0x7f800000) != 0x7f800000; }
bool finite(bf16 x) { return (x.bits & 0x7f80) != 0x7f80; }

// "[3, 0, 7]" of the flat index.
std::string place(int64_t index, const std::vector<int64_t>& shape) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    text = fmt::format("{}{}{}", index % shape[d], text.empty() ? "" : ", ", text);
    index /= shape[d];
  }
  return "[" + text + "]";
}

template <class From, class To>
Status convert(const StoredTensor& tensor, const std::string& name, To* to) {
  constexpr int64_t block = 4096;  // checked as a whole: the fault, if any, is looked up afterwards
  const int64_t count = tensor.count();
  const std::byte* bytes = tensor.bytes.data();
  const auto element = [&](int64_t i) {
    From x;
    std::memcpy(&x, bytes + i * int64_t(sizeof x), sizeof x);  // the data need not be aligned
    return widen(x);
  };
  for (int64_t from = 0; from < count; from += block) {
    const int64_t end = std::min(count, from + block);
    bool all_finite = true;
    for (int64_t i = from; i < end; ++i) {
      to[i] = narrow<To>(element(i));
      all_finite &= finite(to[i]);
    }
    if (all_finite) continue;
    const auto is_bad = [&](int64_t i) { return !finite(to[i]); };
    int64_t i = from;
    while (!is_bad(i)) ++i;
    const auto value = element(i);
    if (finite(value)) {
      return invalid_input("tensor {}: element {} is {}, too large for {}", name,
                           place(i, tensor.shape), value, name_of(DTypeOf<To>::value));
    }
    return invalid_input("tensor {}: element {} is {}; such weights cannot be used", name,
                         place(i, tensor.shape),
                         std::isnan(value) ? "NaN"
                         : value > 0       ? "Inf"
                                           : "-Inf");
  }
  return {};
}

template <class To>
Status convert_to(const StoredTensor& from, const std::string& name, To* to) {
  if (from.dtype == "F32") return convert<float>(from, name, to);
  if (from.dtype == "F64") return convert<double>(from, name, to);
  if (from.dtype == "BF16") return convert<bf16>(from, name, to);
  if (from.dtype == "F16") return convert<f16>(from, name, to);
  return invalid_input("tensor {}: {} cannot be read as {}; F64, F32, F16 and BF16 can", name,
                       from.dtype, name_of(DTypeOf<To>::value));
}

}  // namespace

Status read_into(const StoredTensor& from, const std::string& name, View to) {
  CHECK(to.contiguous(), "{} read into a strided view", name);
  if (from.count() != to.count()) {
    return invalid_input("tensor {}: {} elements in the file, {} expected", name, from.count(),
                         to.count());
  }
  switch (to.dtype) {
    case DType::f32:
      return convert_to(from, name, to.as<float>());
    case DType::f64:
      return convert_to(from, name, to.as<double>());
    case DType::bf16:
      return convert_to(from, name, to.as<bf16>());
    case DType::i32:
    case DType::i64:
      break;
  }
  if (from.dtype != stored_name_of(to.dtype)) {
    return invalid_input("tensor {}: {} cannot be read as {}", name, from.dtype, name_of(to.dtype));
  }
  if (!from.bytes.empty()) std::memcpy(to.data, from.bytes.data(), from.bytes.size());
  return {};
}

}  // namespace fivefold::checkpoint
