#include "spec/givens.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

// `value` in the key's own type, or why it cannot be.
Result<Value> convert(const Key& key, const Value& value) {
  const char* const types[] = {"an integer", "a number with a fraction", "true or false", "a text"};
  if (key.is_integer() && std::holds_alternative<int64_t>(value)) return value;
  if (key.is_boolean() && std::holds_alternative<bool>(value)) return value;
  if (key.is_text() && std::holds_alternative<std::string>(value)) return value;
  if (key.is_real()) {
    if (std::holds_alternative<double>(value)) return value;
    if (const auto* i = std::get_if<int64_t>(&value)) return Value(static_cast<double>(*i));
  }
  // "op" or a number: torchtitan writes the number as a text, people do not.
  if (key.name == "selective_ac_option" && std::holds_alternative<int64_t>(value)) {
    return Value(shown(value));
  }
  const char* wanted = key.is_integer()   ? "an integer"
                       : key.is_real()    ? "a number"
                       : key.is_boolean() ? "true or false"
                                          : "a text in quotes";
  const std::string legal = legal_values(key);
  return invalid_input("is {}; use {}{}{}{}", types[value.index()], wanted,
                       legal.empty() ? "" : " (", legal, legal.empty() ? "" : ")");
}

}  // namespace

void Report::fault(std::string line) {
  ++count_;
  if (!full()) lines_.push_back(std::move(line));
}

void Report::at(const std::string& dotted, const Given& given, const std::string& reason) {
  faulted_.insert(dotted);
  fault(fmt::format("{}{} = {}: {}", given.where, given.label, shortened(given.text), reason));
}

void Report::at(const Key& key, const RunSpec& run, const GivenKeys& keys,
                const std::string& reason) {
  const std::string dotted = key.dotted();
  if (const auto given = keys.find(dotted); given != keys.end()) {
    at(dotted, given->second, reason);
    return;
  }
  faulted_.insert(dotted);
  const std::optional<Value> value = value_of(key, run);
  fault(fmt::format("{}: {} = {}: {}", file_, dotted,
                    value ? shortened(shown(*value)) : std::string("(absent)"), reason));
}

Status Report::status() const {
  if (clean()) return {};
  std::string message = fmt::format("{}", fmt::join(lines_, "\n"));
  if (count_ > lines_.size()) message += fmt::format("\nand {} more", count_ - lines_.size());
  return invalid_input("{}", message);
}

void apply(const std::vector<Key>& keys, const GivenKeys& given, RunSpec& run, Report& report) {
  for (const Key& key : keys) {
    const std::string dotted = key.dotted();
    const auto found = given.find(dotted);
    if (found == given.end() || report.faulted(dotted)) continue;
    const Result<Value> value = convert(key, found->second.value);
    if (!value) {
      report.at(dotted, found->second, value.error().message);
      continue;
    }
    if (const auto reason = illegal(key, *value)) {
      report.at(dotted, found->second, *reason);
      continue;
    }
    if (key.neutral) continue;
    const bool taken = std::visit(
        [&](const auto& access) {
          using T = typename decltype(access.get(run))::value_type;
          return access.set(run, std::get<T>(*value));
        },
        key.access);
    if (!taken) report.at(dotted, found->second, key.needs + ", or leave it out");
  }
}

std::string advice(std::string_view unknown, const std::vector<std::string>& candidates) {
  const auto same = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](char x, char y) {
      return x == y || ((x == '-' || x == '_') && (y == '-' || y == '_'));
    });
  };
  for (const auto& [name, remedy] : foreign_names()) {
    if (same(name, unknown)) return "is not a key here; " + remedy;
  }
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      const std::string_view last = unknown.substr(unknown.rfind('.') + 1);
      for (const Alias& alias : key.aliases) {
        if (same(alias.name, last)) return fmt::format("is unknown; use {}", key.dotted());
      }
    }
  }
  // The right key in the wrong section.
  const std::string_view last = unknown.substr(unknown.rfind('.') + 1);
  for (const std::string& candidate : candidates) {
    if (std::string_view(candidate).substr(candidate.rfind('.') + 1) == last) {
      return fmt::format("is unknown; did you mean {}?", candidate);
    }
  }
  // Names of a very different length cannot be meant; leaving them out early keeps a file of noise
  // cheap to refuse.
  std::vector<std::string> alike;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), unknown.size());
    const size_t shorter = std::min(candidate.size(), unknown.size());
    if (longer - shorter <= unknown.size() / 2) alike.push_back(candidate);
  }
  const std::string near = closest(unknown, alike);
  if (near.empty()) return "is unknown; docs/run_file.md lists the keys";
  return fmt::format("is unknown; did you mean {}?", near);
}

}  // namespace fivefold::spec
