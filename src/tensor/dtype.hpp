#pragma once
// Element types. bf16 is a storage type: every kernel computes it in float32.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fivefold {

struct bf16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(bf16, bf16) = default;
};

constexpr float to_float(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Rounds to nearest, ties to even; NaN stays NaN.
constexpr bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {uint16_t(bits >> 16 | 0x40)};
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

enum class DType : uint8_t { f32, f64, bf16, i32, i64 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f64:
    case DType::i64: return 8;
    case DType::bf16: return 2;
  }
  return 0;
}

// The run file's names: "float32", "float64", "bfloat16", "int32", "int64".
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float32";
    case DType::f64: return "float64";
    case DType::bf16: return "bfloat16";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
  }
  return "";
}

// The dtype of a name; empty when there is none of it.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64}) {
    if (name_of(d) == name) return d;
  }
  return std::nullopt;
}

// What sums, statistics, gradients and optimizer state of `dtype` are kept in.
constexpr DType accumulator_of(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
  using Accumulator = float;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
  using Accumulator = double;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
  using Accumulator = float;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};

template <class T>
using Accumulator = typename DTypeOf<T>::Accumulator;

// Element access that hides the storage: load gives the accumulator type.
constexpr float load(float x) { return x; }
constexpr double load(double x) { return x; }
constexpr float load(bf16 x) { return to_float(x); }
constexpr void store(float& to, float x) { to = x; }
constexpr void store(double& to, double x) { to = x; }
constexpr void store(bf16& to, float x) { to = to_bf16(x); }

}  // namespace fivefold
