#pragma once
// Errors of the world as values. Three kinds of failure, three tools: the world is wrong (this
// file), we are wrong (check.hpp), and a library throws (turned into an Error where it is called).

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fivefold {

struct Error {
  enum class Code {
    invalid_input,  // what the user gave cannot be honoured: a key, a file, a layout
    io,             // the system refused: disk full, no permission, file vanished
    timeout,        // a deadline passed
    peer_lost,      // another rank ended or never came
    not_finite,     // NaN or Inf in the numbers of a run
    interrupted,    // the user asked to stop
  };
  Code code = Code::invalid_input;
  std::string message;  // what, where, and the remedy; no trailing newline
};

// A class of its own, not an alias, so that dropping one is a warning everywhere.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> other)  // NOLINT(google-explicit-constructor)
      : tl::expected<T, Error>(std::move(other)) {}
};
using Status = Result<void>;

// What the shell sees: 2 for the user's mistake, 1 for the world's.
constexpr int exit_code(Error::Code code) { return code == Error::Code::invalid_input ? 2 : 1; }

template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(Error::Code code, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

template <class... Args>
[[nodiscard]] tl::unexpected<Error> invalid_input(fmt::format_string<Args...> format,
                                                  Args&&... args) {
  return fail(Error::Code::invalid_input, format, std::forward<Args>(args)...);
}

template <class... Args>
[[nodiscard]] tl::unexpected<Error> io_error(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Error::Code::io, format, std::forward<Args>(args)...);
}

namespace detail {
template <class T>
T take(Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail
}  // namespace fivefold

// The value of a Result, or return its error from the function that we are in.
#define TRY(expression)                                                        \
  ({                                                                           \
    auto try_result_ = (expression);                                           \
    if (!try_result_)                                                          \
      return tl::unexpected<::fivefold::Error>(std::move(try_result_.error())); \
    ::fivefold::detail::take(try_result_);                                     \
  })
