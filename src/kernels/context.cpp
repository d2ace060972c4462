#include "kernels/context.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fivefold::kernels {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "";
}

Isa best_isa() {
#if defined(__x86_64__)
  // clang's __builtin_cpu_supports does not know f16c, so this one bit is read by hand.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
  if (!f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Isa::portable;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Isa::avx512;
  }
  return Isa::avx2;
#else
  return Isa::portable;
#endif
}

}  // namespace fivefold::kernels
