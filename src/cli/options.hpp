#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace fivefold::cli {

// What CLI11 did not know, as overrides of the run file: "--a.b=1", "--a.b 1" and a bare "--flag"
// become "a.b=1", "a.b=1" and "flag=true".
std::vector<std::string> overrides_of(const CLI::App& command);

// Why the program's first word is no command; empty when it is one, or an option.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);

// The action, with what a library throws (no memory, no thread) as an Error.
Status perform(const std::function<Status()>& action);

// Gives closed standard streams /dev/null, so that no file of ours gets their numbers.
void open_standard_streams();

// CLI::Range lets NaN pass.
CLI::Validator between(double low, double high);

// Threads for each of `ranks` ranks on this machine when nothing else is said.
int default_threads(int ranks);

}  // namespace fivefold::cli
