// golden_cli FIVEFOLD_PROGRAM SOURCE_FOLDER FILE.test: runs one file of golden tests (golden.hpp).
// With GOLDEN=update in the environment it rewrites the file to what was printed instead of
// failing.

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "golden.hpp"

namespace {

namespace fs = std::filesystem;
using namespace fivefold::golden;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// A folder to run in, and one beside it for what the runner itself writes. Gone at the end.
class Sandbox {
 public:
  explicit Sandbox(const fs::path& source) : source_(source) {
    std::string pattern = (fs::temp_directory_path() / "fivefold-golden-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      std::cerr << "cannot make a temporary folder " << pattern << "\n";
      std::exit(1);
    }
    root_ = pattern;
    fs::create_directories(folder());
    fs::create_directory_symlink(source / "configs", folder() / "configs");
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() {
    std::error_code ignored;  // a folder that stays behind in /tmp fails no test
    fs::remove_all(root_, ignored);
  }

  Outcome run(const Case& c) const {
    for (const File& file : c.files) {
      std::string text;
      for (const std::string& line : file.lines) text += line + "\n";
      write(folder() / file.name, text);
    }
    write(root_ / "command", c.command + "\n");
    const std::string shell = "cd '" + folder().string() + "' && exec timeout 300 bash ../command" +
                              " </dev/null >../out 2>../err";
    const int status = std::system(shell.c_str());
    Outcome outcome;
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = neutral(read(root_ / "out"));
    outcome.err = neutral(read(root_ / "err"));
    return outcome;
  }

 private:
  fs::path folder() const { return root_ / "run"; }
  std::string neutral(std::string text) const {
    text = replace_all(std::move(text), folder().string(), "{folder}");
    return replace_all(std::move(text), source_.string(), "{source}");
  }

  fs::path source_, root_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: golden_cli FIVEFOLD_PROGRAM SOURCE_FOLDER FILE.test\n";
    return 2;
  }
  const fs::path program = fs::absolute(argv[1]), source = fs::absolute(argv[2]), file = argv[3];
  setenv("PATH", (program.parent_path().string() + ":" + std::getenv("PATH")).c_str(), 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  setenv("TERM", "dumb", 1);

  std::string error;
  std::vector<Case> cases = parse(read(file), error);
  if (!error.empty() || cases.empty()) {
    std::cerr << file.string() << ": " << (error.empty() ? "no cases" : error) << "\n";
    return 1;
  }
  const char* golden = std::getenv("GOLDEN");
  const bool update = golden != nullptr && std::string_view(golden) == "update";
  const Sandbox sandbox(source);
  int failures = 0;
  for (Case& c : cases) {
    const Outcome outcome = sandbox.run(c);
    if (update) {
      c.exit_code = outcome.exit_code;
      c.out = updated(c.out, lines_of(outcome.out));
      c.err = updated(c.err, lines_of(outcome.err));
    } else if (const std::string text = difference(c, outcome); !text.empty()) {
      std::cerr << text << "\n";
      ++failures;
    }
  }
  if (update) write(file, print(cases));
  if (failures > 0) std::cerr << failures << " of " << cases.size() << " commands differ\n";
  return failures == 0 ? 0 : 1;
}
