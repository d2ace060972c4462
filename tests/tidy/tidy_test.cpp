// The rules (rules.hpp) applied to the whole tree.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rules.hpp"

namespace fivefold::tidy {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool is_text(const fs::path& path) {
  static const std::set<std::string> kinds = {".cpp", ".hpp", ".inl", ".txt", ".md", ".cmake"};
  return kinds.contains(path.extension().string());
}

// Everything that belongs to the project; contents only where a rule reads them.
std::vector<File> read_tree() {
  const fs::path root = FIVEFOLD_SOURCE_DIR;
  std::vector<File> files;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), ""});
  }
  for (const char* folder : {"src", "tests", "bench", "docs", "configs", "scripts", "cmake"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file()) {
        files.push_back({entry.path().lexically_relative(root).string(), ""});
      }
    }
  }
  for (File& file : files) {
    if (is_text(file.path)) file.text = read(root / file.path);
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

class Tidy : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { files_ = new std::vector<File>(read_tree()); }
  static void TearDownTestSuite() { delete files_; }

  static const std::vector<File>& files() { return *files_; }
  static const File& file(const std::string& path) {
    for (const File& f : files()) {
      if (f.path == path) return f;
    }
    ADD_FAILURE() << path << " is missing";
    static const File none{"missing", ""};
    return none;
  }
  template <class Rule>
  static void expect_each(const Rule& rule, const std::set<std::string>& kinds) {
    int seen = 0;
    for (const File& f : files()) {
      if (!kinds.contains(fs::path(f.path).extension().string())) continue;
      ++seen;
      expect_none(rule(f));
    }
    EXPECT_GT(seen, 0);
  }
  static void expect_none(const Faults& faults) {
    for (const std::string& fault : faults) ADD_FAILURE() << fault;
  }

 private:
  static std::vector<File>* files_;
};
std::vector<File>* Tidy::files_ = nullptr;

std::map<std::string, int> ratchet(const std::string& text) {
  std::map<std::string, int> limits;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string path;
    int lines = 0;
    if (line.starts_with("#") || !(words >> path >> lines)) continue;
    limits[path] = lines;
  }
  return limits;
}

const std::set<std::string> sources = {".cpp", ".hpp", ".inl"};

TEST_F(Tidy, FilesAreShort) {
  expect_none(long_files(files(), ratchet(file("tests/tidy/ratchet.txt").text)));
}
TEST_F(Tidy, LinesAreShort) { expect_each(long_lines, sources); }
TEST_F(Tidy, NoBannedWords) { expect_each(banned_words, sources); }
TEST_F(Tidy, HeadersAreGuarded) { expect_each(header_guards, {".hpp"}); }
TEST_F(Tidy, EveryFolderIsAModule) { expect_none(unlisted_folders(files(), modules_of(files()))); }
TEST_F(Tidy, EveryUseIsDeclared) { expect_none(undeclared_edges(files(), modules_of(files()))); }
TEST_F(Tidy, ArchitectureSaysWhatTheBuildSays) {
  expect_none(architecture_table(file("ARCHITECTURE.md"), modules_of(files())));
}
TEST_F(Tidy, NothingIsDead) {
  const std::string commands = read(FIVEFOLD_COMPILE_COMMANDS);
  ASSERT_FALSE(commands.empty());
  expect_none(dead_files(files(), commands));
}
TEST_F(Tidy, LinksLeadSomewhere) {
  expect_each([&](const File& f) { return dead_links(f, files()); }, {".md"});
}

}  // namespace
}  // namespace fivefold::tidy
