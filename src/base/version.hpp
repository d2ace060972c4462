#pragma once

namespace fivefold {

inline constexpr const char* version = "0.1.0";

}  // namespace fivefold
