#pragma once
// The one table of keys. Parsing, validation, the command line, to_toml and docs/run_file.md all
// read it, so a key cannot be known to one and ignored by another.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "spec/run.hpp"

namespace fivefold::spec {

using Value = std::variant<int64_t, double, bool, std::string>;

// Where a key's value lives. `get` is empty, and `set` false, when the part that holds it is absent
// (model.top_k without experts).
template <class T>
struct Access {
  std::function<std::optional<T>(const RunSpec&)> get;
  std::function<bool(RunSpec&, const T&)> set;
};

// Another name that the command line accepts. A boolean alias may stand without a value.
struct Alias {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values = {};  // its words for ours
  int64_t scale = 1;                                             // our unit in one of its
  std::string without_value = {};                                // what `--name` alone means
};

struct Range {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above = false, below = false;  // minimum, maximum themselves excluded
};
inline Range between(double minimum, double maximum) { return {minimum, maximum, false, false}; }
inline Range at_least(double minimum) { return {.minimum = minimum}; }
inline Range above_to(double minimum, double maximum) { return {minimum, maximum, true, false}; }
inline Range to_below(double minimum, double maximum) { return {minimum, maximum, false, true}; }

struct Key {
  std::string section, name;
  std::variant<Access<int64_t>, Access<double>, Access<bool>, Access<std::string>> access = {};
  Range range = {};
  std::vector<std::string> choices = {};        // of a text; empty: any
  std::vector<std::string> later_choices = {};  // known elsewhere, refused here
  std::string needs = {};                       // when `set` is false: what is missing
  std::vector<Alias> aliases = {};
  std::string doc = {};
  // For a key of a feature that is still to come: the one value that is accepted, and the feature.
  std::optional<Value> neutral = {};
  std::string later = {};

  std::string dotted() const { return section + "." + name; }
  bool is_integer() const;
  bool is_real() const;
  bool is_boolean() const;
  bool is_text() const;
};

// The value's text as the user would write it (strings quoted).
std::string shown(const Value& value);
// The value a run holds for `key`, if the part that holds it is there.
std::optional<Value> value_of(const Key& key, const RunSpec& run);
// "1 to 4096", "above 0", "one of a, b"; empty when anything goes.
std::string legal_values(const Key& key);
// Whether a value of the right type is legal; the reason when not.
std::optional<std::string> illegal(const Key& key, const Value& value);

// Keys that take effect, in the order they are applied and written.
const std::vector<Key>& run_keys();
// Keys of one [[data.sources]] entry; their accessors speak of the last source of the run.
const std::vector<Key>& source_keys();
// Keys of features that come later.
const std::vector<Key>& later_keys();
// Names that other programs use and that do not map one to one, with what to do instead.
const std::vector<std::pair<std::string, std::string>>& foreign_names();

// By "section.name" among run_keys and later_keys.
const Key* find_key(std::string_view dotted);
std::vector<std::string> section_names();

// Parts of run_keys.
const std::vector<Key>& model_keys();
std::vector<Key> mixture_keys();
std::vector<Key> latent_keys();
std::vector<Key> training_keys();
std::vector<Key> service_keys();

template <class Part, class T>
Access<T> field(Part RunSpec::*part, T Part::*member) {
  return {[=](const RunSpec& run) { return std::optional<T>(run.*part.*member); },
          [=](RunSpec& run, const T& value) { return run.*part.*member = value, true; }};
}

}  // namespace fivefold::spec
