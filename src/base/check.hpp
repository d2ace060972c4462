#pragma once
// CHECK(cond, format, …): our own mistakes, on in release builds too. Prints and aborts.

#include <fmt/format.h>

namespace fivefold::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
inline std::string check_message() { return {}; }
template <class... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace fivefold::detail

#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::fivefold::detail::check_failed(__FILE__, __LINE__, #condition,                   \
                                       ::fivefold::detail::check_message(__VA_ARGS__)); \
  } while (false)
