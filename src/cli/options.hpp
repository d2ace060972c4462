#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fivefold::cli {

// What CLI11 did not know, as overrides of the run file: "--a.b=1", "--a.b 1" and a bare "--flag"
// become "a.b=1", "a.b=1" and "flag=true".
std::vector<std::string> overrides_of(const CLI::App& command);

// Threads for each of `ranks` ranks on this machine when nothing else is said.
int default_threads(int ranks);

}  // namespace fivefold::cli
