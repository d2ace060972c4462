#pragma once
// Takes fields out of a JSON object one by one, and then refuses whatever is left. Private to the
// readers of config.json: it brings the JSON library's header.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "spec/givens.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {

class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string where, Report& report)
      : object_(object), where_(std::move(where)), report_(report) {}

  // The field, unless it is absent or null.
  const nlohmann::json* find(const std::string& name) {
    used_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(const std::string& name) const { return object_.contains(name); }
  // Without a fallback the field must be there.
  int64_t integer(const std::string& name, std::optional<int64_t> fallback = {}) {
    constexpr double largest = 2147483648.0;  // products of two stay within int64
    const nlohmann::json* field = find(name);
    if (!field) return fallback ? *fallback : (missing(name), 0);
    const double value = field->is_number() ? field->get<double>() : -1;
    if (!(value >= 0 && value <= largest) || value != std::floor(value)) {
      fault(name, "is not an integer from 0 to 2147483648");
      return 0;
    }
    return static_cast<int64_t>(value);
  }
  double real(const std::string& name, std::optional<double> fallback = {}) {
    const nlohmann::json* field = find(name);
    if (!field) return fallback ? *fallback : (missing(name), 0);
    if (!field->is_number() || !std::isfinite(field->get<double>())) {
      fault(name, "is not a number");
      return 0;
    }
    return field->get<double>();
  }
  bool boolean(const std::string& name, bool fallback) {
    const nlohmann::json* field = find(name);
    if (!field) return fallback;
    if (!field->is_boolean()) fault(name, "is not true or false");
    return field->is_boolean() && field->get<bool>();
  }
  std::string text(const std::string& name, std::optional<std::string> fallback = {}) {
    const nlohmann::json* field = find(name);
    if (!field) return fallback ? *fallback : (missing(name), std::string());
    if (!field->is_string()) {
      fault(name, "is not a text");
      return {};
    }
    return field->get<std::string>();
  }
  // Accepted at this value (or absent), refused at any other.
  void only(const std::string& name, const nlohmann::json& value, const std::string& reason) {
    const nlohmann::json* field = find(name);
    if (field && *field != value) fault(name, reason + "; only " + value.dump() + " is supported");
  }
  void harmless(std::initializer_list<const char*> names) {
    for (const char* name : names) used_.insert(name);
  }
  void refuse_the_rest() {
    for (const auto& [name, value] : object_.items()) {
      if (!used_.contains(name)) {
        fault(name, "is not known, and may change the computation; remove it if it does not");
      }
    }
  }
  void fault(const std::string& name, const std::string& reason) {
    if (report_.full()) return report_.fault({});
    const auto found = object_.find(name);
    std::string value = "(absent)";
    if (found != object_.end()) {
      value = found->is_structured()
                  ? (found->is_object() ? "{…}" : "[…]")
                  : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    report_.fault(fmt::format("{}{} = {}: {}", where_, shortened(name), shortened(value), reason));
  }

 private:
  void missing(const std::string& name) { fault(name, "is missing, and has no safe default"); }

  const nlohmann::json& object_;
  const std::string where_;
  Report& report_;
  std::set<std::string> used_;
};

}  // namespace fivefold::spec
