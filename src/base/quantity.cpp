#include "base/quantity.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace fivefold {
namespace {

struct Unit {
  double size;
  const char* name;
};

// The largest unit that leaves a number of at least one, with three significant digits.
std::string in_units(double value, std::span<const Unit> units) {
  const Unit* best = &units.back();
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.size || (value == 0 && unit.size == 1)) {
      best = &unit;
      break;
    }
  }
  const double n = value / best->size;
  const int decimals = best->size == 1 && std::floor(n) == n ? 0
                       : std::abs(n) >= 100                  ? 0
                       : std::abs(n) >= 10                   ? 1
                                                             : 2;
  return fmt::format("{:.{}f} {}", n, decimals, best->name);
}

}  // namespace

std::string to_string(Bytes bytes) {
  static constexpr Unit units[] = {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
                                   {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
  return in_units(bytes.value, units);
}

std::string to_string(Seconds seconds) {
  static constexpr Unit units[] = {{86400, "d"}, {3600, "h"},  {60, "min"},
                                   {1, "s"},     {1e-3, "ms"}, {1e-6, "us"}};
  return in_units(seconds.value, units);
}

std::string to_string(Flops flops) {
  static constexpr Unit units[] = {{1e18, "EFLOP"}, {1e15, "PFLOP"}, {1e12, "TFLOP"},
                                   {1e9, "GFLOP"},  {1e6, "MFLOP"},  {1, "FLOP"}};
  return in_units(flops.value, units);
}

std::string to_string(BytesPerSecond rate) {
  static constexpr Unit units[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1, "B/s"}};
  return in_units(rate.value, units);
}

std::string to_string(FlopsPerSecond rate) {
  static constexpr Unit units[] = {
      {1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}, {1, "FLOP/s"}};
  return in_units(rate.value, units);
}

std::string grouped(long long count) {
  std::string digits = std::to_string(count);
  const auto first = static_cast<long>(digits.find_first_not_of('-'));
  for (long at = static_cast<long>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

}  // namespace fivefold
