#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "spec/givens.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

std::string underscored(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '-', '_');
  return out;
}

struct Option {
  const Key* key = nullptr;
  const Alias* alias = nullptr;  // when it was called by one
};

Option find_option(const std::string& name) {
  if (const Key* key = find_key(underscored(name))) return {key, nullptr};
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      for (const Alias& alias : key.aliases) {
        if (underscored(alias.name) == underscored(name)) return {&key, &alias};
      }
    }
  }
  return {};
}

std::vector<std::string> option_names() {
  std::vector<std::string> names = {"data.sources"};
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      names.push_back(key.dotted());
      for (const Alias& alias : key.aliases) names.push_back(alias.name);
    }
  }
  return names;
}

template <class T>
Result<Value> number(const std::string& text, const char* wanted) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return invalid_input("is out of range");
  if (error != std::errc() || end != text.data() + text.size()) {
    return invalid_input("is not {}", wanted);
  }
  return Value(value);
}

Result<Value> parse(const Key& key, const std::string& text) {
  if (key.is_text()) {
    if (!is_utf8(text)) return invalid_input("is not UTF-8");
    return Value(text);
  }
  if (key.is_boolean()) {
    if (text == "true") return Value(true);
    if (text == "false") return Value(false);
    return invalid_input("is not true or false");
  }
  return key.is_integer() ? number<int64_t>(text, "an integer") : number<double>(text, "a number");
}

// One argument without its leading dashes: name, and value when there is an "=".
struct Argument {
  std::string name, value;
  bool has_value = false;
};

Argument split(std::string_view text) {
  while (text.starts_with('-')) text.remove_prefix(1);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {std::string(text), "", false};
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), true};
}

void read_option(const Argument& argument, std::map<std::string, std::string>& seen, Givens& givens,
                 Report& report) {
  const std::string label = "--" + shortened(argument.name);
  const auto [key, alias] = find_option(argument.name);
  if (!key) {
    report.fault(
        fmt::format("{}: {}", label, advice(shortened(argument.name, 100), option_names())));
    return;
  }
  const std::string dotted = key->dotted();
  std::string text = argument.value;
  if (!argument.has_value) {
    if (alias && !alias->without_value.empty()) {
      text = alias->without_value;
    } else if (key->is_boolean()) {
      text = "true";
    } else {
      const std::string legal = legal_values(*key);
      report.fault(fmt::format("{}: needs a value; use {}=VALUE{}{}{}", label, label,
                               legal.empty() ? "" : " (", legal, legal.empty() ? "" : ")"));
      return;
    }
  }
  Given given{Value(false), "", label, text};
  if (const auto before = seen.find(dotted); before != seen.end()) {
    report.at(dotted, given,
              fmt::format("{} is set already, by {}; use one of them", dotted, before->second));
    return;
  }
  seen[dotted] = label;
  if (alias) {
    for (const auto& [theirs, ours] : alias->values) {
      if (text == theirs) text = ours;
    }
  }
  const Result<Value> value = parse(*key, text);
  if (!value) {
    const std::string legal = legal_values(*key);
    report.at(dotted, given,
              value.error().message + (legal.empty() ? std::string() : "; use " + legal));
    return;
  }
  given.value = *value;
  if (alias && alias->scale != 1) {
    int64_t& scaled = std::get<int64_t>(given.value);
    if (__builtin_mul_overflow(scaled, alias->scale, &scaled)) {
      report.at(dotted, given, "is too large");
      return;
    }
  }
  givens.keys[dotted] = std::move(given);
}

}  // namespace

void read_overrides(const std::vector<std::string>& overrides, Givens& givens, Report& report) {
  std::map<std::string, std::string> seen;
  bool sources_replaced = false;
  for (const std::string& text : overrides) {
    const Argument argument = split(text);
    if (argument.name != "data.sources") {
      read_option(argument, seen, givens, report);
      continue;
    }
    // The first names all sources anew; more of them add.
    if (!sources_replaced) givens.sources.clear();
    sources_replaced = true;
    Given given{Value(argument.value), "", "--data.sources", argument.value};
    if (!is_utf8(argument.value)) {
      report.at("data.sources.path", given, "is not UTF-8");
    } else {
      givens.sources.push_back({{"data.sources.path", std::move(given)}});
    }
  }
}

}  // namespace fivefold::spec
