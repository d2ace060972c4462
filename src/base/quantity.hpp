#pragma once
// Units as types: 8_GiB / 400_GBps is a time, 8_GiB + 1_ms does not compile.
// Doubles count bytes exactly to 2^53.

#include <compare>
#include <string>

namespace fivefold {

struct Dim {
  int byte = 0, second = 0, flop = 0;
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};

template <Dim D>
struct Quantity {
  double value = 0;
  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return {a.value / k}; }
};

template <Dim A, Dim B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  constexpr Dim d{A.byte - B.byte, A.second - B.second, A.flop - B.flop};
  if constexpr (d == Dim{}) {
    return a.value / b.value;
  } else {
    return Quantity<d>{a.value / b.value};
  }
}

template <Dim A, Dim B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  constexpr Dim d{A.byte + B.byte, A.second + B.second, A.flop + B.flop};
  if constexpr (d == Dim{}) {
    return a.value * b.value;
  } else {
    return Quantity<d>{a.value * b.value};
  }
}

using Bytes = Quantity<Dim{1, 0, 0}>;
using Seconds = Quantity<Dim{0, 1, 0}>;
using Flops = Quantity<Dim{0, 0, 1}>;
using BytesPerSecond = Quantity<Dim{1, -1, 0}>;
using FlopsPerSecond = Quantity<Dim{0, -1, 1}>;

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {double(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {double(n) * 1024}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {double(n) * 1024 * 1024}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {double(n) * 1024 * 1024 * 1024}; }
constexpr Seconds operator""_s(long double n) { return {double(n)}; }
constexpr Seconds operator""_s(unsigned long long n) { return {double(n)}; }
constexpr Seconds operator""_ms(unsigned long long n) { return {double(n) * 1e-3}; }
constexpr Seconds operator""_us(unsigned long long n) { return {double(n) * 1e-6}; }
constexpr BytesPerSecond operator""_GBps(unsigned long long n) { return {double(n) * 1e9}; }
constexpr FlopsPerSecond operator""_TFLOPps(unsigned long long n) { return {double(n) * 1e12}; }
}  // namespace literals

// For people: "1.50 GiB", "12.3 ms", "137 GFLOP/s". Three significant digits.
std::string to_string(Bytes bytes);
std::string to_string(Seconds seconds);
std::string to_string(Flops flops);
std::string to_string(BytesPerSecond rate);
std::string to_string(FlopsPerSecond rate);

// 1234567 as "1,234,567".
std::string grouped(long long count);

}  // namespace fivefold
