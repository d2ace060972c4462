#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace fivefold::detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "fivefold: internal error at %s:%d: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fivefold::detail
