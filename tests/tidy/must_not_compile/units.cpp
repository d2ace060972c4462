// CASE 0 compiles; every other case must not (CMakeLists.txt beside it).
#include "base/quantity.hpp"

using namespace fivefold::literals;

int main() {
  [[maybe_unused]] const fivefold::Seconds time = 8_GiB / 400_GBps;
  [[maybe_unused]] const fivefold::Bytes bytes = 3_ms * 400_GBps + 1_KiB;
#if CASE == 1
  [[maybe_unused]] const auto sum = 8_GiB + 1_ms;
#elif CASE == 2
  [[maybe_unused]] const fivefold::Seconds inverse = 400_GBps / 8_GiB;
#elif CASE == 3
  [[maybe_unused]] const bool less = 8_GiB < 1_s;
#elif CASE == 4
  [[maybe_unused]] const double bare = 8_GiB;
#elif CASE == 5
  [[maybe_unused]] const fivefold::Bytes unitless = 8.0 * 400_GBps;
#elif CASE == 6
  [[maybe_unused]] const fivefold::FlopsPerSecond rate = 400_GBps;
#endif
}
