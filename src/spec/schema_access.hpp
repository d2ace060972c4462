#pragma once
// Where the keys of [model] live: in the model, in a part of it that may be absent, or in an
// enumeration. Private to the tables.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "spec/schema.hpp"

namespace fivefold::spec {

template <class T>
Access<T> model(T ModelSpec::*member) {
  return field(&RunSpec::model, member);
}

// A member of an optional part of the model.
template <class Part, class T>
Access<T> part(std::optional<Part> ModelSpec::*holder, T Part::*member) {
  return {[=](const RunSpec& run) -> std::optional<T> {
            const std::optional<Part>& p = run.model.*holder;
            return p ? std::optional<T>((*p).*member) : std::nullopt;
          },
          [=](RunSpec& run, const T& value) {
            std::optional<Part>& p = run.model.*holder;
            if (p) (*p).*member = value;
            return p.has_value();
          }};
}

// An enumeration as one of `names`, in its order. An unknown name is left to the check of choices.
template <class E>
Access<std::string> choice(E ModelSpec::*member, std::vector<std::string> names) {
  return {[=](const RunSpec& run) {
            return std::optional<std::string>(names[static_cast<size_t>(run.model.*member)]);
          },
          [=](RunSpec& run, const std::string& value) {
            const auto at = std::ranges::find(names, value);
            if (at != names.end()) run.model.*member = static_cast<E>(at - names.begin());
            return true;
          }};
}

// A part that exists when a number of it is above zero.
template <class Part>
Access<int64_t> presence(std::optional<Part> ModelSpec::*holder, int64_t Part::*member) {
  return {[=](const RunSpec& run) {
            const std::optional<Part>& p = run.model.*holder;
            return std::optional<int64_t>(p ? (*p).*member : 0);
          },
          [=](RunSpec& run, const int64_t& value) {
            std::optional<Part>& p = run.model.*holder;
            if (value == 0) {
              p.reset();
            } else {
              if (!p) p.emplace();
              (*p).*member = value;
            }
            return true;
          }};
}

}  // namespace fivefold::spec
