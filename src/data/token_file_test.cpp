#include "data/token_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/prepare.hpp"
#include "data/test_folder.hpp"
#include "data/token_writer.hpp"

namespace fivefold::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class... T>
std::string bytes_of(T... values) {
  std::string out;
  const auto append = [&](auto value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out.append(bytes, sizeof(value));
  };
  (append(values), ...);
  return out;
}

std::string llmc_header(int32_t magic, int32_t version, int32_t tokens) {
  std::string header = bytes_of(magic, version, tokens);
  header.resize(1024);
  return header;
}

// A Megatron index field by field, so that a test can bend one.
struct Index {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths{3, 2, 1};
  std::vector<int64_t> pointers{0, 6, 10};
  std::vector<int64_t> documents{0, 2, 3};
  std::string tail;
  std::string bytes() const {
    std::string out =
        magic + bytes_of(version, type, uint64_t(lengths.size()), uint64_t(documents.size()));
    for (const int32_t n : lengths) out += bytes_of(n);
    for (const int64_t n : pointers) out += bytes_of(n);
    for (const int64_t n : documents) out += bytes_of(n);
    return out + tail;
  }
};

std::vector<int32_t> all_of(const TokenFile& file) {
  std::vector<int32_t> ids(size_t(file.tokens()));
  file.read(0, ids);
  return ids;
}

class TokenFileTest : public testing::Test {
 protected:
  TokenFile open(const std::string& name, std::optional<TokenFormat> format = {}) {
    auto file = TokenFile::open(folder_.path(name), format);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : TokenFile();
  }
  std::string error_of(const std::string& name, std::optional<TokenFormat> format = {}) {
    const auto file = TokenFile::open(folder_.path(name), format);
    return file ? "" : file.error().message;
  }
  TestFolder folder_;
};

TEST_F(TokenFileTest, reads_flat_files_and_tells_them_apart) {
  const std::string ids = bytes_of(uint16_t{1}, uint16_t{50256}, uint16_t{3});
  folder_.write("raw.bin", ids);
  folder_.write("gpt2.bin", llmc_header(20240520, 1, 3) + ids);
  folder_.write("llama3.bin",
                llmc_header(20240801, 7, 2) + bytes_of(uint32_t{128000}, uint32_t{7}));
  TokenFile raw = open("raw.bin");
  EXPECT_EQ(raw.format(), TokenFormat::nanogpt);
  EXPECT_THAT(all_of(raw), ElementsAre(1, 50256, 3));
  raw.split_documents(50256);
  EXPECT_THAT(raw.document_starts(), ElementsAre(0, 2, 3));
  const TokenFile gpt2 = open("gpt2");
  EXPECT_EQ(gpt2.format(), TokenFormat::llmc);
  EXPECT_THAT(all_of(gpt2), ElementsAre(1, 50256, 3));
  const TokenFile llama3 = open("llama3.bin");
  EXPECT_EQ(llama3.type(), TokenType::uint32);
  EXPECT_THAT(all_of(llama3), ElementsAre(128000, 7));
  EXPECT_EQ(llama3.largest_id(), 128000);
}

TEST_F(TokenFileTest, flat_files_that_are_none_are_refused) {
  const std::string ids = bytes_of(uint16_t{1}, uint16_t{2}, uint16_t{3});
  const struct {
    std::string bytes;
    const char* says;
  } cases[] = {
      {"", "is empty"},
      {"abc", "not a whole number"},
      {llmc_header(20240520, 1, 4) + ids, "truncated"},
      {llmc_header(20240520, 1, 2) + ids, "damaged or foreign"},
      {llmc_header(20240520, 1, -1) + ids, "damaged or foreign"},
      {llmc_header(20240520, 1, 3).substr(0, 100), "truncated"},
      {llmc_header(20240520, 2, 3) + ids, "version 2"},
      {llmc_header(20240801, 1, 3) + ids, "version 1"},
      {llmc_header(20240522, 1, 3) + ids, "multiple-choice"},
      {Index().bytes(), "a Megatron index"},
      {"\x1f\x8b\x08\x01", "a gzip file"},
      {"PK\x03\x04" + ids, "a zip file"},
      {"\x93NUMPY" + ids, "NumPy"},
      {"Once upon a time there was a text.", "but text"},
  };
  for (const auto& c : cases) {
    folder_.write("t.bin", c.bytes);
    EXPECT_THAT(error_of("t.bin"), HasSubstr(c.says));
    EXPECT_THAT(error_of("t.bin"), HasSubstr("t.bin: "));
  }
  folder_.write("t.bin", ids);
  EXPECT_THAT(error_of("t.bin", TokenFormat::llmc), HasSubstr("magic"));
  EXPECT_THAT(error_of("none.bin"), HasSubstr("no such file"));
}

TEST_F(TokenFileTest, reads_megatron_files_of_every_type) {
  Index index;
  folder_.write("m.idx", index.bytes());
  folder_.write("m.bin", bytes_of(uint16_t{9}, uint16_t{8}, uint16_t{7}, uint16_t{6},
                                  uint16_t{65535}, uint16_t{4}));
  for (const char* name : {"m", "m.bin", "m.idx"}) {
    const TokenFile file = open(name);
    EXPECT_EQ(file.format(), TokenFormat::megatron);
    EXPECT_THAT(all_of(file), ElementsAre(9, 8, 7, 6, 65535, 4));
    EXPECT_THAT(file.document_starts(), ElementsAre(0, 5, 6));
    EXPECT_TRUE(file.prompt_tokens().empty());  // sentences of a foreign file are no prompts
  }
  index.type = 5;
  index.pointers = {0, 24, 40};
  folder_.write("m.idx", index.bytes());
  folder_.write("m.bin",
                bytes_of(int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{6}));
  EXPECT_THAT(all_of(open("m")), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(TokenFileTest, damaged_megatron_files_are_refused) {
  folder_.write("m.bin", std::string(12, '\0'));
  const struct {
    const char* says;
    void (*bend)(Index&);
  } cases[] = {
      {"does not begin with MMIDIDX", [](Index& i) { i.magic[0] = 'X'; }},
      {"version 2", [](Index& i) { i.version = 2; }},
      {"type code 7", [](Index& i) { i.type = 7; }},
      {"multimodal", [](Index& i) { i.tail = "\1\1\1"; }},
      {"sequence 1 has -2 tokens", [](Index& i) { i.lengths[1] = -2; }},
      {"sequence 2 lies at byte 11, 10 expected", [](Index& i) { i.pointers[2] = 11; }},
      {"out of order",
       [](Index& i) {
         i.documents = {0, 3, 2};
       }},
      {"out of order",
       [](Index& i) {
         i.documents = {1, 2, 3};
       }},
      {"out of order",
       [](Index& i) {
         i.documents = {0, 2, 4};
       }},
      {"end at sequence 2 of 3",
       [](Index& i) {
         i.documents = {0, 1, 2};
       }},
      {"no list of documents", [](Index& i) { i.documents.clear(); }},
      {"the two do not belong together", [](Index& i) { i.lengths[2] = 0; }},
      {"truncated", [](Index& i) { i.lengths[2] = 100; }},
  };
  for (const auto& c : cases) {
    Index index;
    c.bend(index);
    folder_.write("m.idx", index.bytes());
    EXPECT_THAT(error_of("m"), HasSubstr(c.says));
    EXPECT_THAT(error_of("m"), HasSubstr("m.idx: "));
  }
  const std::string whole = Index().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    folder_.write("m.idx", whole.substr(0, length));
    EXPECT_NE(error_of("m"), "") << length;
  }
  // Counts whose product would wrap around.
  std::string huge = whole;
  huge.replace(18, 8, bytes_of(uint64_t{1} << 62));
  folder_.write("m.idx", huge);
  EXPECT_THAT(error_of("m"), HasSubstr("truncated"));
  std::filesystem::remove(folder_.path("m.bin"));
  folder_.write("m.idx", whole);
  EXPECT_THAT(error_of("m"), HasSubstr("m.bin: no such file"));
}

TEST_F(TokenFileTest, ids_out_of_range_are_found_with_their_place) {
  Index index;
  index.type = 4;
  index.pointers = {0, 12, 20};
  folder_.write("m.idx", index.bytes());
  folder_.write("m.bin", bytes_of(1, 2, 3, -4, 99, 5));
  EXPECT_THAT(open("m").check_ids(50).error().message, HasSubstr("token -4 at position 3"));
  folder_.write("m.bin", bytes_of(1, 2, 3, 4, 99, 5));
  EXPECT_THAT(open("m").check_ids(50).error().message, HasSubstr("token 99 at position 4"));
  EXPECT_TRUE(open("m").check_ids(100));
}

TEST_F(TokenFileTest, what_is_written_is_read_back) {
  const std::vector<std::vector<int32_t>> documents = {{1, 2, 256}, {256}, {3, 4, 5, 256}};
  for (const int32_t vocabulary : {257, 100000}) {
    for (const auto format : {TokenFormat::megatron, TokenFormat::llmc, TokenFormat::nanogpt}) {
      TokenFileInfo info;
      info.tokenizer = "byte";
      info.vocab_size = vocabulary;
      info.end_of_text = 256;
      const Path prefix = folder_.path("w");
      std::filesystem::remove(folder_.path("w.idx"));
      const Status status = write_token_file(prefix, format, info, documents);
      if (format == TokenFormat::nanogpt && vocabulary > 65536) {
        EXPECT_THAT(status.error().message, HasSubstr("up to 65535"));
        continue;
      }
      ASSERT_TRUE(status) << status.error().message;
      const TokenFile file = open("w");
      EXPECT_EQ(file.format(), format);
      EXPECT_THAT(all_of(file), ElementsAre(1, 2, 256, 256, 3, 4, 5, 256));
      EXPECT_THAT(file.document_starts(), ElementsAre(0, 3, 4, 8));
      EXPECT_EQ(file.info()->documents, 3);
    }
  }
}

TEST_F(TokenFileTest, prompts_are_kept_where_the_format_can) {
  TokenWriter writer = TokenWriter::create(folder_.path("p"), TokenFormat::megatron, 300).value();
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  ASSERT_TRUE(writer.append(ids, 3));
  ASSERT_TRUE(writer.append(ids));
  ASSERT_TRUE(writer.finish({}));
  EXPECT_THAT(open("p").prompt_tokens(), ElementsAre(3, 0));
  TokenWriter flat = TokenWriter::create(folder_.path("f"), TokenFormat::llmc, 300).value();
  EXPECT_THAT(flat.append(ids, 3).error().message, HasSubstr("use megatron"));
}

TEST_F(TokenFileTest, nothing_is_left_of_a_file_that_was_not_finished) {
  {
    TokenWriter writer = TokenWriter::create(folder_.path("x"), TokenFormat::megatron, 300).value();
    ASSERT_TRUE(writer.append(std::vector<int32_t>(100, 1)));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

TEST_F(TokenFileTest, a_description_of_other_tokens_is_refused) {
  ASSERT_TRUE(write_token_file(folder_.path("w"), TokenFormat::llmc, {},
                               std::vector<std::vector<int32_t>>{{1, 2}}));
  folder_.write("w.bin", bytes_of(uint16_t{1}));
  EXPECT_THAT(error_of("w"), HasSubstr("do not belong together"));
  folder_.write("w.json", "{}");
  EXPECT_THAT(error_of("w"), HasSubstr("damaged description"));
}

class PrepareTest : public TokenFileTest {};

TEST_F(PrepareTest, prepares_and_inspects) {
  for (int i = 0; i < 10; ++i)
    folder_.write("t/" + std::to_string(i) + ".txt", std::string(size_t(100 + i), 'a'));
  PrepareOptions options{.sources = {{.path = folder_.path("t")}}, .output = folder_.path("out/p")};
  const auto one = prepare(options).value();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].documents, 10);
  EXPECT_EQ(one[0].text_bytes, 1045);
  EXPECT_EQ(one[0].tokens, 1055);
  const Inspection inspection = inspect(one[0].path, 3).value();
  EXPECT_EQ(inspection.format, TokenFormat::megatron);
  EXPECT_EQ(inspection.documents, 10);
  EXPECT_EQ(inspection.shortest_document, 101);
  EXPECT_EQ(inspection.longest_document, 110);
  EXPECT_EQ(inspection.largest_id, 256);
  EXPECT_THAT(inspection.first_tokens, ElementsAre('a', 'a', 'a'));

  options.validation_share = 0.2;
  options.format = TokenFormat::llmc;
  const auto two = prepare(options).value();
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].documents, 8);
  EXPECT_EQ(two[1].documents, 2);
  EXPECT_THAT(two[1].path, HasSubstr("p_val.bin"));
  EXPECT_EQ(two[1].text_bytes, 108 + 109);
}

TEST_F(PrepareTest, refuses_bad_options) {
  folder_.write("a.txt", "text");
  folder_.write("empty.txt", "");
  folder_.write("p.jsonl", R"({"prompt":"a","response":"b"})");
  const auto error = [&](const char* file, double share, TokenFormat format) {
    const auto files = prepare({.sources = {{.path = folder_.path(file)}},
                                .output = folder_.path("o"),
                                .format = format,
                                .validation_share = share});
    return files ? "" : files.error().message;
  };
  EXPECT_THAT(error("a.txt", 0.5, TokenFormat::llmc), HasSubstr("cannot be split"));
  EXPECT_THAT(error("a.txt", 1, TokenFormat::llmc), HasSubstr("below 1"));
  EXPECT_THAT(error("empty.txt", 0, TokenFormat::llmc), HasSubstr("is empty"));
  EXPECT_THAT(error("p.jsonl", 0, TokenFormat::llmc), HasSubstr("use megatron"));
  EXPECT_THAT(error("none", 0, TokenFormat::llmc), HasSubstr("no such file"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("o.bin")));
  EXPECT_EQ(error("p.jsonl", 0, TokenFormat::megatron), "");
}

}  // namespace
}  // namespace fivefold::data
