#include <fmt/format.h>

#include "base/files.hpp"
#include "spec/checks.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

// Puts the model's base under the keys that the file and the command line give.
ModelSpec base_model(Givens& givens, Report& report) {
  const auto architecture = givens.keys.find("model.architecture");
  if (architecture != givens.keys.end()) {  // described in full here
    return start_model({}, givens.keys);
  }
  const auto name = givens.keys.find("model.name");
  const auto* text =
      name == givens.keys.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  if (!text) {
    if (!report.faulted("model.name") && name == givens.keys.end()) {
      report.fault(fmt::format("{}: model.name is missing; use a preset (\"llama3_8b\"), the path of a "
                               "preset file or of a config.json, or give model.architecture and the "
                               "sizes", report.file()));
    }
    return {};
  }
  const Given given = name->second;
  const std::string wanted = *text;
  ModelSource source = open_model(wanted, given, report);
  ModelSpec model = start_model(source, source.keys);
  givens.keys.erase("model.name");  // `model` has its name from the file
  givens.keys.merge(source.keys);   // what the run gives stays
  return model;
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
  read_overrides(overrides, givens, report);
  // A model that cannot be found leaves nothing to judge the rest by, but its keys are still read.
  const bool clean_before = report.clean();
  RunSpec run;
  run.model = base_model(givens, report);
  const bool model_found = report.clean() || !clean_before;
  apply(run_keys(), givens.keys, run, report);
  apply(later_keys(), givens.keys, run, report);
  read_sources(givens, run, report);
  derive(run.model);
  const TrainingSpec& t = run.training;
  if (!givens.keys.contains("training.mixed_precision_reduce") &&
      t.mixed_precision_param == "float64") {
    run.training.mixed_precision_reduce = "float64";
  }
  if (!model_found) return tl::unexpected<Error>(report.status().error());
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
