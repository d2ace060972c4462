#include <fmt/format.h>

#include "base/files.hpp"
#include "spec/checks.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

// Puts the model's base under the keys that the file and the command line give. False when there is
// none to be found.
bool read_model(Givens& givens, ModelSpec& model, Report& report) {
  const auto architecture = givens.keys.find("model.architecture");
  if (architecture != givens.keys.end()) {  // described in full here
    model = start_model({}, givens.keys);
    return true;
  }
  const auto name = givens.keys.find("model.name");
  const auto* text =
      name == givens.keys.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  if (!text) {
    if (!report.faulted("model.name") && name == givens.keys.end()) {
      report.fault(
          fmt::format("{}: model.name is missing; use a preset (\"llama3_8b\"), the path of a "
                      "preset file or of a config.json, or give model.architecture and the "
                      "sizes",
                      report.file()));
    }
    return false;
  }
  const Given given = name->second;
  const std::string wanted = *text;
  ModelSource source = open_model(wanted, given, report);
  model = start_model(source, source.keys);
  givens.keys.erase("model.name");  // `model` has its name from the file
  givens.keys.merge(source.keys);   // what the run gives stays
  return source.found;
}

void read_sources(const Givens& givens, RunSpec& run, Report& report) {
  for (const GivenKeys& given : givens.sources) {
    run.data.sources.emplace_back();
    apply(source_keys(), given, run, report);
    const auto path = given.find("data.sources.path");
    if (path != given.end() && run.data.sources.back().path.empty() &&
        !report.faulted("data.sources.path")) {
      report.at("data.sources.path", path->second, "is empty; use the path of a file or a folder");
    }
  }
}

}  // namespace

Result<RunSpec> parse_run(std::string_view text, const std::string& file,
                          const std::vector<std::string>& overrides) {
  Report report(file);
  Givens givens;
  read_toml(text, file, FileKind::run, givens, report);
  // A file that does not parse says nothing about keys: only its syntax is reported.
  if (givens.keys.empty() && givens.sources.empty()) TRY(report.status());
  read_overrides(overrides, givens, report);
  RunSpec run;
  const bool model_found = read_model(givens, run.model, report);
  apply(run_keys(), givens.keys, run, report);
  apply(later_keys(), givens.keys, run, report);
  read_sources(givens, run, report);
  derive(run.model);
  const TrainingSpec& t = run.training;
  if (!givens.keys.contains("training.mixed_precision_reduce") &&
      t.mixed_precision_param == "float64") {
    run.training.mixed_precision_reduce = "float64";
  }
  if (!model_found) {  // its values are unknown, not missing
    for (const Key& key : model_keys()) report.silence(key.dotted());
  }
  Checker check(run, givens.keys, report);
  check_model(check);
  check_run(check);
  TRY(report.status());
  return run;
}

Result<RunSpec> load_run(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string text = TRY(read_file(path));
  return parse_run(text, path, overrides);
}

}  // namespace fivefold::spec
