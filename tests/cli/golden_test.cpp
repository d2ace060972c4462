#include "golden.hpp"

#include <gtest/gtest.h>

namespace fivefold::golden {
namespace {

constexpr const char* sample = R"(# A run file that is wrong.
file run.toml
[training]
\# kept
steps = 3
$ fivefold train run.toml
exit 2
stderr
error: run.toml:2: {any}

$ fivefold --version
stdout
fivefold {number}
\stderr
)";

TEST(Golden, ParsesFilesCommandsAndBlocks) {
  std::string error;
  const auto cases = parse(sample, error);
  ASSERT_EQ(error, "");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].command, "fivefold train run.toml");
  EXPECT_EQ(cases[0].files[0].name, "run.toml");
  EXPECT_EQ(cases[0].files[0].lines,
            (std::vector<std::string>{"[training]", "# kept", "steps = 3"}));
  EXPECT_EQ(cases[0].exit_code, 2);
  EXPECT_EQ(cases[0].err, std::vector<std::string>{"error: run.toml:2: {any}"});
  EXPECT_EQ(cases[1].out, (std::vector<std::string>{"fivefold {number}", "stderr"}));
}

TEST(Golden, PrintsWhatItParsed) {
  std::string error;
  EXPECT_EQ(print(parse(sample, error)), sample);
}

TEST(Golden, RefusesLinesThatBelongNowhere) {
  std::string error;
  EXPECT_TRUE(parse("hello\n", error).empty());
  EXPECT_EQ(error.substr(0, 8), "line 1: ");
  EXPECT_TRUE(parse("exit 1\n", error).empty());
  EXPECT_NE(error, "");
  EXPECT_TRUE(parse("$ true\nexit one\n", error).empty());
  EXPECT_NE(error, "");
  EXPECT_TRUE(parse("file a\nb\n", error).empty());
  EXPECT_NE(error, "");
}

struct Match {
  const char *pattern, *line;
  bool matches;
};

TEST(Golden, MatchesLines) {
  constexpr Match cases[] = {
      {"same", "same", true},
      {"same", "same but longer", false},
      {"", "", true},
      {"", "x", false},
      {"loss {number} nats", "loss -1.5e-03 nats", true},
      {"loss {number} nats", "loss nan nats", false},
      {"{number} parameters.", "1,234,567 parameters.", true},
      {"at {number}.", "at 12.", true},
      {"{any}", "", true},
      {"a{any}c", "abbbc", true},
      {"a{any}c", "abbb", false},
      {"{any}/run.toml: {any}", "/tmp/x/run.toml: no", true},
  };
  for (const Match& c : cases) {
    EXPECT_EQ(line_matches(c.pattern, c.line), c.matches) << c.pattern << " | " << c.line;
  }
}

TEST(Golden, MatchesBlocks) {
  EXPECT_TRUE(block_matches({"a", "{lines}", "z"}, {"a", "z"}));
  EXPECT_TRUE(block_matches({"a", "{lines}", "z"}, {"a", "b", "z", "c", "z"}));
  EXPECT_FALSE(block_matches({"a", "{lines}", "z"}, {"a", "b"}));
  EXPECT_FALSE(block_matches({"a"}, {"a", "b"}));
  EXPECT_FALSE(block_matches({"a", "b"}, {"a"}));
  EXPECT_TRUE(block_matches({}, {}));
  EXPECT_FALSE(block_matches({}, {"a"}));
}

TEST(Golden, UpdateKeepsWhatStillMatches) {
  EXPECT_EQ(updated({"step {number}", "old"}, {"step 3", "new"}),
            (std::vector<std::string>{"step {number}", "new"}));
  EXPECT_EQ(updated({"{lines}"}, {"a", "b"}), std::vector<std::string>{"{lines}"});
}

TEST(Golden, SaysWhatDiffers) {
  Case expected;
  expected.command = "fivefold";
  expected.out = {"yes"};
  EXPECT_EQ(difference(expected, {0, "yes\n", ""}), "");
  EXPECT_EQ(difference(expected, {0, "yes\n\n", ""}), "");
  EXPECT_NE(difference(expected, {1, "yes\n", ""}).find("exit code 1, expected 0"),
            std::string::npos);
  EXPECT_NE(difference(expected, {0, "no\n", ""}).find("  | no"), std::string::npos);
  EXPECT_NE(difference(expected, {0, "yes\n", "warning\n"}).find("warning"), std::string::npos);
}

}  // namespace
}  // namespace fivefold::golden
