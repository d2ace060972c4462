#pragma once
// One file per command. Each adds itself to the program and, when chosen, sets what is to be done.

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.hpp"

namespace fivefold::cli {

using Action = std::function<Status()>;

void add_train(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_model(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);

}  // namespace fivefold::cli
