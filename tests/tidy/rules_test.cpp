// Each rule on a text that keeps it and on texts that break it.

#include "rules.hpp"

#include <gtest/gtest.h>

namespace fivefold::tidy {
namespace {

File source(std::string text) { return {"src/base/x.cpp", std::move(text)}; }

TEST(Rules, CodeOnlyDropsCommentsAndLiterals) {
  EXPECT_EQ(code_only("a // throw\nb /* throw\n */ c"), "a \nb \n c");
  EXPECT_EQ(code_only("f(\"throw \\\" x\", 't');"), "f(\"\", \"\");");
  EXPECT_EQ(code_only("n = 1'000; throw"), "n = 1'000; throw");
  EXPECT_EQ(code_only("s = R\"x(a \" throw)x\";"), "s = \"\";");
  EXPECT_EQ(code_only("#include \"a/b.hpp\"\n"), "#include \"a/b.hpp\"\n");
}

TEST(Rules, LongFilesAreFaultsUnlessRatcheted) {
  const std::vector<File> files = {source(std::string(501, '\n'))};
  EXPECT_EQ(long_files({source(std::string(500, '\n'))}, {}).size(), 0u);
  EXPECT_EQ(long_files(files, {}).size(), 1u);
  EXPECT_EQ(long_files(files, {{"src/base/x.cpp", 501}}).size(), 0u);
  EXPECT_EQ(long_files(files, {{"src/base/x.cpp", 500}}).size(), 1u) << "it grew";
  EXPECT_EQ(long_files({}, {{"src/base/x.cpp", 501}}).size(), 1u) << "the entry is stale";
}

TEST(Rules, LinesCountCharactersNotBytes) {
  EXPECT_EQ(long_lines(source(std::string(120, 'x') + "\n")).size(), 0u);
  EXPECT_EQ(long_lines(source(std::string(121, 'x') + "\n")).size(), 1u);
  std::string accents;
  for (int i = 0; i < 120; ++i) accents += "é";
  EXPECT_EQ(long_lines(source(accents)).size(), 0u);
}

TEST(Rules, BannedWordsAreFoundInCode) {
  for (const char* text : {"using namespace std;", "std::cout << 1;", "throw 1;", "printf(\"x\");",
                           "int x = rand();", "std::normal_distribution<> d;", "exit(1);",
                           "// TODO later", "std::shared_ptr<int> p;", "GTEST_SKIP();"}) {
    EXPECT_EQ(banned_words(source(text)).size(), 1u) << text;
  }
  for (const char* text : {"// we do not throw", "\"std::cout\"", "int operand(int);", "grand(3);",
                           "snprintf(a, 1, b);", "on_exit_code(3);"}) {
    EXPECT_EQ(banned_words(source(text)).size(), 0u) << text;
  }
  EXPECT_EQ(banned_words({"src/cli/console.cpp", "std::cout << 1;"}).size(), 0u);
}

TEST(Rules, HeadersNeedAGuard) {
  EXPECT_EQ(header_guards({"a.hpp", "#pragma once\n"}).size(), 0u);
  EXPECT_EQ(header_guards({"a.hpp", "int x;\n"}).size(), 1u);
  EXPECT_EQ(header_guards({"a.inl", "int x;\n"}).size(), 0u);
}

// A tree of two modules, `above` on `below`.
std::vector<File> small_tree() {
  return {
      {"src/CMakeLists.txt", "foreach(folder below above)  # order\nendforeach()\n"},
      {"src/below/CMakeLists.txt", "module(below LIBS fmt::fmt)\n"},
      {"src/below/b.hpp", "#pragma once\n"},
      {"src/below/b.cpp", "#include \"below/b.hpp\"\n"},
      {"src/above/CMakeLists.txt",
       "# Uses (much).\nmodule(above DEPS below PRIVATE_LIBS fmt::fmt)\n"},
      {"src/above/a.cpp", "#include \"below/b.hpp\"\n"},
  };
}

TEST(Rules, ModulesAreReadFromTheBuild) {
  const auto modules = modules_of(small_tree());
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[1].name, "above");
  EXPECT_EQ(modules[1].deps, std::set<std::string>{"below"});
}

TEST(Rules, FoldersMustBeListed) {
  auto files = small_tree();
  EXPECT_EQ(unlisted_folders(files, modules_of(files)).size(), 0u);
  files.push_back({"src/stray/s.cpp", ""});
  EXPECT_EQ(unlisted_folders(files, modules_of(files)).size(), 1u);
  files = small_tree();
  std::erase_if(files, [](const File& f) { return f.path.starts_with("src/above/"); });
  EXPECT_EQ(unlisted_folders(files, modules_of(files)).size(), 1u);
}

TEST(Rules, UsesMustBeDeclaredAndDeclarationsUsed) {
  auto files = small_tree();
  EXPECT_EQ(undeclared_edges(files, modules_of(files)).size(), 0u);
  files.push_back({"src/below/up.cpp", "#include \"above/a.hpp\"\n"});
  EXPECT_EQ(undeclared_edges(files, modules_of(files)).size(), 1u);
  files = small_tree();
  files.back().text = "";
  EXPECT_EQ(undeclared_edges(files, modules_of(files)).size(), 1u) << "below is named, not used";
}

TEST(Rules, ArchitectureTableMustAgree) {
  const auto modules = modules_of(small_tree());
  const std::string below = "| `below` | holds | |\n", above = "| `above` | holds | `below` |\n";
  EXPECT_EQ(architecture_table({"A.md", below + above}, modules).size(), 0u);
  EXPECT_EQ(architecture_table({"A.md", below}, modules).size(), 1u);
  EXPECT_EQ(architecture_table({"A.md", below + "| `above` | holds | |\n"}, modules).size(), 1u);
  EXPECT_EQ(architecture_table({"A.md", below + above + "| `more` | holds | |\n"}, modules).size(),
            1u);
}

TEST(Rules, DeadFilesAreFound) {
  auto files = small_tree();
  const std::string commands = R"("/x/src/below/b.cpp" "/x/src/above/a.cpp")";
  EXPECT_EQ(dead_files(files, commands).size(), 0u);
  files.push_back({"src/above/dead.cpp", ""});
  files.push_back({"src/above/dead.hpp", ""});
  files.push_back({"src/above/a_fuzz.cpp", ""});
  EXPECT_EQ(dead_files(files, commands).size(), 3u);
  files.push_back({"src/above/a_fuzz_corpus/seed", ""});
  EXPECT_EQ(dead_files(files, commands).size(), 2u);
}

TEST(Rules, LinksMustLeadSomewhere) {
  const std::vector<File> files = {{"docs/a.md", "# One two, three\n"}, {"src/base/x.cpp", ""}};
  const auto faults = [&](const char* text) {
    return dead_links({"README.md", text}, files).size();
  };
  EXPECT_EQ(faults("[a](docs/a.md) [b](docs) [c](docs/a.md#one-two-three) `src/base/x.cpp`"), 0u);
  EXPECT_EQ(faults("[w](https://example.org/none)"), 0u);
  EXPECT_EQ(faults("```\n[a](docs/none.md)\n```\n"), 0u);
  EXPECT_EQ(faults("[a](docs/none.md)"), 1u);
  EXPECT_EQ(faults("[a](docs/a.md#four)"), 1u);
  EXPECT_EQ(faults("`src/base/none.cpp`"), 1u);
}

}  // namespace
}  // namespace fivefold::tidy
