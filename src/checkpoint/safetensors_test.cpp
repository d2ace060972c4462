#include "checkpoint/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"

namespace fivefold::checkpoint {
namespace {

using testing::HasSubstr;

std::string file_of(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file.append(data_bytes, '\x11');
  return file;
}

Result<SafetensorsFile> parse(std::string_view file) {
  return SafetensorsFile::parse(std::as_bytes(std::span(file)), "x.safetensors");
}

TEST(Safetensors, HandMadeFileIsUnderstood) {
  const std::string file = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},)"
      R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},)"
      R"("none":{"dtype":"I64","shape":[0,5],"data_offsets":[26,26]}}  )",
      26);
  const auto parsed = parse(file);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->tensors().size(), 3u);
  EXPECT_EQ(parsed->tensors().at("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(parsed->tensors().at("b").bytes.size(), 24u);
  EXPECT_EQ(parsed->tensors().at("a").count(), 1);
  EXPECT_EQ(parsed->tensors().at("none").count(), 0);
  EXPECT_EQ(parsed->metadata().at("format"), "pt");
  EXPECT_EQ(parsed->data().size(), 26u);
}

struct BadCase {
  const char* name;
  const char* header;
  size_t data_bytes;
  const char* message;
};
constexpr BadCase bad_cases[] = {
    {"not JSON", "{\"a\":", 0, "not JSON"},
    {"a list", "[]", 0, "not a JSON object"},
    {"number out of range", "{\"a\":1e999}", 0, "out of range"},
    {"invalid UTF-8", "{\"\xff\":1}", 0, "not JSON"},
    {"duplicate name",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
     4, "names \"a\" twice"},
    {"duplicate field", R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
     4, "names \"dtype\" twice"},
    {"entry is a number", R"({"a":3})", 0, "not an object"},
    {"unknown key", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4,
     "unknown key \"x\""},
    {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "must give dtype, shape"},
    {"unknown dtype", R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4,
     "unknown dtype \"F31\""},
    {"dtype a number", R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4,
     "dtype is not a string"},
    {"negative size", R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
     "not a list of sizes"},
    {"fractional size", R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4,
     "not a list of sizes"},
    {"size beyond int64",
     R"({"a":{"dtype":"I8","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
     "not a list of sizes"},
    {"overflowing shape",
     R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     "more elements than any file"},
    {"one offset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "pair of offsets"},
    {"reversed offsets", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
     "need 4 bytes"},
    {"wrong byte count", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
     "need 8 bytes"},
    {"cut short", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7, "was cut short"},
    {"overlap",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12, "tensor b starts at byte 4 of the data, inside the one before it"},
    {"gap",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "leaving a gap"},
    {"bytes after the end", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
     "1 bytes follow the last tensor"},
    {"metadata a list", R"({"__metadata__":[]})", 0, "__metadata__ is not an object"},
    {"metadata of numbers", R"({"__metadata__":{"a":1}})", 0, "is not a string"},
};

TEST(Safetensors, BadHeadersAreRefusedWithTheReason) {
  for (const BadCase& c : bad_cases) {
    const auto parsed = parse(file_of(c.header, c.data_bytes));
    ASSERT_FALSE(parsed) << c.name;
    EXPECT_EQ(parsed.error().code, Error::Code::invalid_input) << c.name;
    EXPECT_THAT(parsed.error().message, HasSubstr(c.message)) << c.name;
    EXPECT_THAT(parsed.error().message, HasSubstr("x.safetensors")) << c.name;
  }
}

TEST(Safetensors, ForeignAndEmptyFilesAreRefused) {
  EXPECT_THAT(parse("").error().message, HasSubstr("too few"));
  EXPECT_THAT(parse("PK\x03\x04 zip").error().message, HasSubstr("not a safetensors file"));
  std::string lying = file_of("{}", 0);
  lying[0] = 3;
  EXPECT_THAT(parse(lying).error().message, HasSubstr("claims 3 bytes, but only 2 follow"));
}

// Every truncation of a sound file is refused, and none crashes.
TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string file = file_of(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}})",
      11);
  ASSERT_TRUE(parse(file));
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(parse(std::string_view(file).substr(0, length))) << length;
  }
}

TEST(Safetensors, WrittenFileIsReadBackBitForBit) {
  const Path path = Path(testing::TempDir()) / "safetensors_test.safetensors";
  const std::vector<float> f32 = {1.5f, -0.0f, 3e38f, 1e-45f};
  const std::vector<double> f64 = {0.1, -1e300};
  const std::vector<int64_t> i64 = {INT64_MIN, -1};
  const std::vector<int32_t> i32 = {7};
  const std::vector<bf16> half = {to_bf16(2.0f), to_bf16(-3.0f), to_bf16(0.5f)};
  const TensorToStore tensors[] = {
      {"z \"quoted\" \xc3\xa9", {f32.data(), DType::f32, {4}}, {2, 1, 2}},
      {"f64", {f64.data(), DType::f64, {2}}, {2}},
      {"half", {half.data(), DType::bf16, {3}}, {3}},
      {"i64", {i64.data(), DType::i64, {2}}, {2, 1, 1, 1, 1}},
      {"i32", {i32.data(), DType::i32, {1}}, {}},
  };
  const std::map<std::string, std::string> metadata = {{"run", "a = \"b\"\n"}, {"x", ""}};
  ASSERT_TRUE(write_safetensors(path, tensors, metadata));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), 5u);
  for (const TensorToStore& t : tensors) {
    const StoredTensor& stored = file->tensors().at(t.name);
    EXPECT_EQ(stored.shape, t.shape);
    EXPECT_EQ(stored.dtype, stored_name_of(t.view.dtype));
    EXPECT_EQ(std::memcmp(stored.bytes.data(), t.view.data, stored.bytes.size()), 0) << t.name;
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->data().data()) % 8, 0u);  // padded header
  std::filesystem::remove(path);
}

TEST(Safetensors, MetadataThatAreNotUtf8AreRefused) {
  const Path path = Path(testing::TempDir()) / "never.safetensors";
  const Status status = write_safetensors(path, std::span<const TensorToStore>(), {{"a", "\xff"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::invalid_input);
  EXPECT_FALSE(std::filesystem::exists(path));
}

// --- read_into -------------------------------------------------------------------------------

template <class T>
StoredTensor stored(const char* dtype, const std::vector<T>& values,
                    std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {int64_t(values.size())};
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

// The value that IEEE 754's formula gives a binary16.
double value_of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(ReadInto, EveryFiniteF16IsExact) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & 0x7c00) != 0x7c00) all.push_back(uint16_t(bits));
  }
  std::vector<float> f32(all.size());
  std::vector<double> f64(all.size());
  ASSERT_TRUE(read_into(stored("F16", all), "t", {f32.data(), DType::f32, {int64_t(all.size())}}));
  ASSERT_TRUE(read_into(stored("F16", all), "t", {f64.data(), DType::f64, {int64_t(all.size())}}));
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(double(f32[i]), value_of_f16(all[i])) << all[i];
    ASSERT_EQ(f64[i], value_of_f16(all[i])) << all[i];
    ASSERT_EQ(std::signbit(f32[i]), bool(all[i] & 0x8000)) << all[i];
  }
}

TEST(ReadInto, Bf16SurvivesEveryWiderType) {
  std::vector<bf16> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & 0x7f80) != 0x7f80) all.push_back({uint16_t(bits)});
  }
  const auto n = int64_t(all.size());
  std::vector<float> f32(all.size());
  std::vector<double> f64(all.size());
  std::vector<bf16> back(all.size()), direct(all.size());
  ASSERT_TRUE(read_into(stored("BF16", all), "t", {f32.data(), DType::f32, {n}}));
  ASSERT_TRUE(read_into(stored("BF16", all), "t", {f64.data(), DType::f64, {n}}));
  ASSERT_TRUE(read_into(stored("BF16", all), "t", {direct.data(), DType::bf16, {n}}));
  EXPECT_EQ(direct, all);
  ASSERT_TRUE(read_into(stored("F32", f32), "t", {back.data(), DType::bf16, {n}}));
  EXPECT_EQ(back, all);
  ASSERT_TRUE(read_into(stored("F64", f64), "t", {back.data(), DType::bf16, {n}}));
  EXPECT_EQ(back, all);
}

// Of the two neighbours the nearer, on a tie the even one; computed with exact comparisons.
TEST(ReadInto, F64ToBf16RoundsOnce) {
  const Random random(1, stream_of("F64ToBf16RoundsOnce"));
  std::vector<double> from = {1.0 + 0x1p-8 + 0x1p-40, 1.0 + 0x1p-8, 1.0 + 3 * 0x1p-8 - 0x1p-45};
  for (uint64_t i = 0; i < 20000; ++i) {
    const double tie = to_float(bf16{uint16_t(0x3f80 + (random.bits(i) & 127))}) + 0x1p-8;
    from.push_back((tie + 0x1p-45 * (double(i % 3) - 1)) * (i % 2 ? 1 : -1));
    from.push_back(random.normal(i) * std::pow(2.0, double(i % 40) - 20));
  }
  std::vector<bf16> to(from.size());
  ASSERT_TRUE(read_into(stored("F64", from), "t", {to.data(), DType::bf16, {int64_t(to.size())}}));
  for (size_t i = 0; i < from.size(); ++i) {
    const double error = std::fabs(to_float(to[i]) - from[i]);
    for (const int step : {-1, 1}) {
      const bf16 other{uint16_t(to[i].bits + step)};
      const double other_error = std::fabs(to_float(other) - from[i]);
      ASSERT_LE(error, other_error) << from[i];
      if (error == other_error) {
        ASSERT_EQ(to[i].bits & 1, 0) << from[i];
      }
    }
  }
}

TEST(ReadInto, NotFiniteIsNamedWithItsPlace) {
  std::vector<float> values(6000, 1.0f);
  values[5000] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> to(values.size());
  const View view(to.data(), DType::f32, {6000});
  Status status = read_into(stored("F32", values, {60, 100}), "w", view);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("tensor w: element [50, 0] is NaN"));
  values[5000] = 0;
  values[5999] = -std::numeric_limits<float>::infinity();
  status = read_into(stored("F32", values, {60, 100}), "w", view);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("element [59, 99] is -Inf"));

  const std::vector<uint16_t> half = {0x3c00, 0x7c00};
  status = read_into(stored("F16", half), "h", View(to.data(), DType::f32, {2}));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("element [1] is Inf"));
}

TEST(ReadInto, TooLargeForTheNarrowerTypeIsRefused) {
  std::vector<float> to(1);
  std::vector<bf16> to_half(1);
  Status status = read_into(stored<double>("F64", {1e39}), "w", {to.data(), DType::f32, {1}});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("1e+39, too large for float32"));
  status =
      read_into(stored<float>("F32", {3.4028234e38f}), "w", {to_half.data(), DType::bf16, {1}});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("too large for bfloat16"));
}

TEST(ReadInto, CountsAndTypesMustAgree) {
  std::vector<float> to(2);
  std::vector<int64_t> whole(2);
  const View view(to.data(), DType::f32, {2});
  EXPECT_THAT(read_into(stored<float>("F32", {1}), "w", view).error().message,
              HasSubstr("1 elements in the file, 2 expected"));
  EXPECT_THAT(read_into(stored<int64_t>("I64", {1, 2}), "w", view).error().message,
              HasSubstr("I64 cannot be read as float32"));
  EXPECT_THAT(read_into(stored<float>("F32", {1, 2}), "w", View(whole.data(), DType::i64, {2}))
                  .error()
                  .message,
              HasSubstr("F32 cannot be read as int64"));
  ASSERT_TRUE(read_into(stored<int64_t>("I64", {1, -2}), "w", View(whole.data(), DType::i64, {2})));
  EXPECT_EQ(whole[1], -2);
}

}  // namespace
}  // namespace fivefold::checkpoint
