// CASE 0 compiles; an error that is dropped, or a value taken from nowhere, does not.
#include "base/result.hpp"

namespace {
fivefold::Result<int> answer() { return 42; }
fivefold::Status check() { return {}; }
fivefold::Status ask() {
  [[maybe_unused]] const int value = TRY(answer());
  TRY(check());
#if CASE == 1
  [[maybe_unused]] const int bare = answer();
#elif CASE == 2
  fivefold::io_error("an error that nobody returns");
#elif CASE == 3
  check();
#endif
  return {};
}
}  // namespace

int main() { return ask() ? 0 : 1; }
