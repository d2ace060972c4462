#pragma once
// What a file and the command line say, before it means anything: values by key, each with its
// place, and the list of faults found on the way.

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/schema.hpp"

namespace fivefold::spec {

struct Given {
  Value value;
  std::string where;  // "file:line: ", empty for the command line
  std::string label;  // the key as the user wrote it: "training.steps", "--lr"
  std::string text;   // the value likewise
};
using GivenKeys = std::map<std::string, Given, std::less<>>;  // by "section.key"

struct Givens {
  GivenKeys keys;
  std::vector<GivenKeys> sources;  // one for each [[data.sources]], keys by "data.sources.key"
};

// Collects faults; all of them are told at once.
class Report {
 public:
  // `file` is where a key that nobody gave is missing.
  explicit Report(std::string file) : file_(std::move(file)) {}

  void fault(std::string line);
  void at(const std::string& dotted, const Given& given, const std::string& reason);
  // A key's value, wherever it came from.
  void at(const Key& key, const RunSpec& run, const GivenKeys& keys, const std::string& reason);
  // Takes the key as faulted without a word: what went wrong with it is told already.
  void silence(const std::string& dotted) { faulted_.insert(dotted); }
  bool faulted(std::string_view dotted) const { return faulted_.contains(dotted); }
  bool clean() const { return count_ == 0; }
  // Enough is enough: further faults are only counted. A file of noise need not be explained.
  bool full() const { return lines_.size() >= 100; }
  const std::string& file() const { return file_; }
  Status status() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
  std::set<std::string, std::less<>> faulted_;
  size_t count_ = 0;
};

// Reads a run file (sections) or a preset (keys of [model] without a section).
enum class FileKind { run, preset };
void read_toml(std::string_view text, const std::string& file, FileKind kind, Givens& givens,
               Report& report);

// Lays "section.key=value", "--alias=value" … over `givens`.
void read_overrides(const std::vector<std::string>& overrides, Givens& givens, Report& report);

// The values of `given` for `keys`, in the order of `keys`, into `run`.
void apply(const std::vector<Key>& keys, const GivenKeys& given, RunSpec& run, Report& report);

// "did you mean training.steps?", or what else to do about a name that nobody knows.
std::string advice(std::string_view unknown, const std::vector<std::string>& candidates);

}  // namespace fivefold::spec
