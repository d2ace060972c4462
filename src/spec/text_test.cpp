#include "spec/text.hpp"

#include <gtest/gtest.h>

namespace fivefold::spec {
namespace {

TEST(Text, QuotesAsToml) { EXPECT_EQ(in_quotes("a\"b\\c\n\x01é"), "\"a\\\"b\\\\c\\n\\u0001é\""); }

TEST(Text, ShortensAtACharactersBorder) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc…");
  EXPECT_EQ(shortened("aéé", 2), "a…");
}

TEST(Text, KnowsUtf8) {
  for (const char* good : {"", "a", "é", "漢", "😀", "\u007f", "\u0800", "\U0010ffff"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "a\xe6\xbc"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

}  // namespace
}  // namespace fivefold::spec
