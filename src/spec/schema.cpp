#include "spec/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "spec/text.hpp"

namespace fivefold::spec {

bool Key::is_integer() const {
  return neutral ? std::holds_alternative<int64_t>(*neutral) : access.index() == 0;
}
bool Key::is_real() const {
  return neutral ? std::holds_alternative<double>(*neutral) : access.index() == 1;
}
bool Key::is_boolean() const {
  return neutral ? std::holds_alternative<bool>(*neutral) : access.index() == 2;
}
bool Key::is_text() const {
  return neutral ? std::holds_alternative<std::string>(*neutral) : access.index() == 3;
}

std::string shown(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* s = std::get_if<std::string>(&value)) return in_quotes(*s);
  std::string text = fmt::format("{}", std::get<double>(value));
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::optional<Value> value_of(const Key& key, const RunSpec& run) {
  if (key.neutral) return key.neutral;
  return std::visit(
      [&](const auto& access) -> std::optional<Value> {
        const auto value = access.get(run);
        if (!value) return std::nullopt;
        return Value(*value);
      },
      key.access);
}

namespace {

std::string number(const Key& key, double value) {
  if (key.is_integer() && std::abs(value) < 9e15) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{}", value);
}

}  // namespace

std::string legal_values(const Key& key) {
  if (key.neutral) return shown(*key.neutral);
  if (!key.choices.empty()) {
    std::vector<std::string> choices;
    for (const std::string& choice : key.choices) choices.push_back(in_quotes(choice));
    return fmt::format("{}", fmt::join(choices, ", "));
  }
  const Range& r = key.range;
  const bool low = std::isfinite(r.minimum), high = std::isfinite(r.maximum);
  std::string text;
  if (low && high && !r.above && !r.below) {
    return fmt::format("{} to {}", number(key, r.minimum), number(key, r.maximum));
  }
  if (low) text = fmt::format("{} {}", r.above ? "above" : "at least", number(key, r.minimum));
  if (low && high) text += ", ";
  if (high) text += fmt::format("{} {}", r.below ? "below" : "at most", number(key, r.maximum));
  return text;
}

std::optional<std::string> illegal(const Key& key, const Value& value) {
  if (key.neutral) {
    if (value == *key.neutral) return std::nullopt;
    return fmt::format("{}; use {}", key.later, shown(*key.neutral));
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (text->find('\0') != std::string::npos) return "holds a NUL character; remove it";
    if (key.choices.empty() || std::ranges::find(key.choices, *text) != key.choices.end()) {
      return std::nullopt;
    }
    const bool later = std::ranges::find(key.later_choices, *text) != key.later_choices.end();
    return fmt::format("{}; use {}", later ? "comes later" : "is not one of the choices",
                       legal_values(key));
  }
  if (std::holds_alternative<bool>(value)) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(&value);
  const double x = integer ? static_cast<double>(*integer) : std::get<double>(value);
  if (!std::isfinite(x)) return "is not a finite number; use " + legal_values(key);
  const Range& r = key.range;
  const bool low = r.above ? x <= r.minimum : x < r.minimum;
  const bool high = r.below ? x >= r.maximum : x > r.maximum;
  if (!low && !high) return std::nullopt;
  return fmt::format("is too {}; use {}", low ? "small" : "large", legal_values(key));
}

const std::vector<Key>& run_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = model_keys();
    for (auto&& part : {training_keys(), service_keys()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return keys;
}

const Key* find_key(std::string_view dotted) {
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      if (dotted.size() == key.section.size() + 1 + key.name.size() &&
          dotted.starts_with(key.section) && dotted[key.section.size()] == '.' &&
          dotted.ends_with(key.name)) {
        return &key;
      }
    }
  }
  return nullptr;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      if (std::ranges::find(names, key.section) == names.end()) names.push_back(key.section);
    }
  }
  return names;
}

}  // namespace fivefold::spec
