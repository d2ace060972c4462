#include <cstdio>

#include "base/version.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"

// Exit status: 0 done, 1 the world failed (disk, memory, another rank), 2 the user's mistake.
int main(int argc, char** argv) {
  using namespace fivefold;
  cli::open_standard_streams();
  CLI::App app("Plans, simulates and runs LLM training. `fivefold COMMAND --help` tells more.",
               "fivefold");
  app.set_version_flag("--version", std::string("fivefold ") + version);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return fmt::format("error: {}\nrun `{} --help` for the options\n", error.what(),
                       failed->get_name() == "fivefold" ? "fivefold" : failed->get_name());
  });
  cli::Action action;
  cli::add_train(app, action);
  cli::add_generate(app, action);
  cli::add_eval(app, action);
  cli::add_data(app, action);
  cli::add_model(app, action);
  cli::add_export(app, action);
  cli::add_import(app, action);
  if (const std::string wrong = cli::unknown_command(app, argc, argv); !wrong.empty()) {
    fmt::print(stderr, "error: {}\n", wrong);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Status status = cli::perform(action);
  if (status && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    fmt::print(stderr, "error: the output could not be written; free some room where it goes\n");
    return 1;
  }
  std::fflush(stdout);
  if (status) return 0;
  fmt::print(stderr, "error: {}\n", status.error().message);
  return exit_code(status.error().code);
}
