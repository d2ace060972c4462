#include "data/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "base/random.hpp"
#include "data/byte_tokenizer.hpp"
#include "data/sentencepiece.hpp"
#include "data/tokenizer_json.hpp"

namespace fivefold::data {

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids(text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[i] = uint8_t(text[i]);
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    if (byte_length(id) == 1) text.push_back(char(id));
  }
  return text;
}

uint64_t ByteTokenizer::fingerprint() const { return stream_of("byte tokenizer"); }

namespace {

namespace fs = std::filesystem;

// The eos_token of tokenizer_config.json beside `path`, or empty.
std::string configured_end_of_text(const Path& path) {
  const Result<std::string> text = read_file(path.parent_path() / "tokenizer_config.json");
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("eos_token")) return {};
  const auto& token = json["eos_token"];
  if (token.is_string()) return token;
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"];
  }
  return {};
}

Result<Path> find_in_folder(const Path& folder) {
  std::error_code ignored;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (fs::is_regular_file(folder / name, ignored)) return folder / name;
  }
  return invalid_input("{}: no tokenizer.json and no tokenizer.model in this folder",
                       folder.string());
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& name_or_path) {
  if (name_or_path == "byte") return std::make_unique<ByteTokenizer>();
  Path path = name_or_path;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return invalid_input(
        "{}: no such tokenizer; it is \"byte\", a SentencePiece .model, a "
        "tokenizer.json, or a folder that holds one of these",
        name_or_path);
  }
  if (fs::is_directory(path, ignored)) path = TRY(find_in_folder(path));
  if (path.extension() == ".model") return load_sentencepiece(path.string());
  if (path.extension() != ".json") {
    return invalid_input("{}: a tokenizer's name ends in .json or .model", path.string());
  }
  const std::string text = TRY(read_file(path));
  return parse_tokenizer_json(text, path.string(), configured_end_of_text(path));
}

}  // namespace fivefold::data
