#pragma once

#include "parameter/parameter_set.hpp"

namespace fivefold::model {

// A parameter, or neighbours that one product computes, with its gradient. Empty where the model
// has none (a bias).
struct Weight {
  View value, gradient;
  explicit operator bool() const { return bool(value); }
};

// By name; empty when the set has no such parameter.
inline Weight weight_of(const ParameterSet& set, const std::string& first,
                        const std::string& last) {
  const Parameter* from = set.find(first);
  const Parameter* to = set.find(last);
  if (from == nullptr || to == nullptr) return {};
  return {set.value(*from, *to), set.gradients() ? set.gradient(*from, *to) : View{}};
}
inline Weight weight_of(const ParameterSet& set, const std::string& name) {
  return weight_of(set, name, name);
}

}  // namespace fivefold::model
