#include "data/tokenizer_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/random.hpp"
#include "data/byte_alphabet.hpp"
#include "data/byte_level_tokenizer.hpp"

namespace fivefold::data {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostTokens = int64_t{1} << 24;  // none has more than a few 100,000

// The value of `key`, or null when it is not there.
const Json& at(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto it = object.find(key);
  return it == object.end() ? null : *it;
}

std::string string_or(const Json& value, const std::string& otherwise) {
  return value.is_string() ? value.get<std::string>() : otherwise;
}

bool is_true(const Json& value) { return value.is_boolean() && value.get<bool>(); }

std::string quoted_literal(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    if (std::ispunct(uint8_t(c))) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class Parser {
 public:
  explicit Parser(std::string name) { parts_.name = std::move(name); }

  Result<ByteLevelParts> run(const Json& json, const std::string& end_of_text) {
    if (!json.is_object()) return refuse("not a tokenizer.json: a JSON object is expected");
    const Json& model = at(json, "model");
    // Files older than the "type" key are recognised by their merges.
    const std::string type =
        string_or(at(model, "type"), at(model, "merges").is_array() ? "BPE" : "none");
    if (type != "BPE") return refuse("model type {} is not supported; BPE is", type);
    TRY(check_model(model));
    TRY(normalizer(at(json, "normalizer")));
    TRY(pretokenizer(at(json, "pre_tokenizer")));
    if (!byte_level_)
      return refuse("only byte-level BPE is supported: the pre-tokenizer ByteLevel is missing");
    TRY(read_added(at(json, "added_tokens")));
    TRY(read_vocabulary(at(model, "vocab")));
    TRY(read_merges(at(model, "merges")));
    choose_end_of_text(end_of_text);
    return std::move(parts_);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid_input("{}: {}", parts_.name, fmt::format(format, std::forward<Args>(args)...));
  }

  Status check_model(const Json& model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!string_or(at(model, key), "").empty()) return refuse("model.{} is not supported", key);
    }
    const Json& dropout = at(model, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0) {
      return refuse("model.dropout is not supported: one text must always give the same ids");
    }
    parts_.ignore_merges = is_true(at(model, "ignore_merges"));
    return {};
  }

  Status normalizer(const Json& value) {
    if (value.is_null()) return {};
    const std::string type = string_or(at(value, "type"), "?");
    if (type == "NFC") {
      parts_.normalise_nfc = true;
    } else if (type == "Sequence" && at(value, "normalizers").is_array()) {
      for (const Json& one : at(value, "normalizers")) {
        if (string_or(at(one, "type"), "?") == "Sequence") return refuse("normalizers are nested");
        TRY(normalizer(one));
      }
    } else {
      return refuse("normalizer {} is not supported; NFC or none is", type);
    }
    return {};
  }

  Status pretokenizer(const Json& value, bool nested = false) {
    if (value.is_null()) return {};
    if (byte_level_) return refuse("pre-tokenizers after ByteLevel are not supported");
    const std::string type = string_or(at(value, "type"), "?");
    if (type == "ByteLevel") {
      if (is_true(at(value, "add_prefix_space"))) {
        return refuse("ByteLevel with add_prefix_space is not supported: it changes the text");
      }
      const Json& use_regex = at(value, "use_regex");
      if (!use_regex.is_boolean() || is_true(use_regex)) parts_.patterns.emplace_back(kGpt2Pattern);
      byte_level_ = true;
    } else if (type == "Digits") {
      parts_.patterns.emplace_back(is_true(at(value, "individual_digits")) ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Split") {
      return split(value);
    } else if (type == "Sequence" && !nested && at(value, "pretokenizers").is_array()) {
      for (const Json& one : at(value, "pretokenizers")) TRY(pretokenizer(one, true));
    } else {
      return refuse("pre-tokenizer {} is not supported; ByteLevel, Split, Digits are", type);
    }
    return {};
  }

  Status split(const Json& value) {
    const std::string behavior = string_or(at(value, "behavior"), "?");
    if (behavior != "Isolated" || is_true(at(value, "invert"))) {
      return refuse("pre-tokenizer Split with behavior {}{} is not supported; Isolated is",
                    behavior, is_true(at(value, "invert")) ? ", inverted," : "");
    }
    const Json& pattern = at(value, "pattern");
    if (at(pattern, "Regex").is_string()) {
      parts_.patterns.push_back(at(pattern, "Regex"));
    } else if (at(pattern, "String").is_string()) {
      parts_.patterns.push_back(quoted_literal(at(pattern, "String")));
    } else {
      return refuse("pre-tokenizer Split without a pattern");
    }
    return {};
  }

  // The id, with room for it in token_bytes.
  Result<int32_t> take_id(const Json& value, const std::string& token) {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
        value.get<int64_t>() >= kMostTokens) {
      return refuse("the id of token {} is not a number from 0 to {}", token, kMostTokens - 1);
    }
    const auto id = value.get<int32_t>();
    if (size_t(id) >= parts_.token_bytes.size()) parts_.token_bytes.resize(size_t(id) + 1);
    return id;
  }

  Status read_added(const Json& added) {
    if (added.is_null()) return {};
    if (!added.is_array()) return refuse("added_tokens is not a list");
    for (const Json& token : added) {
      const std::string content = string_or(at(token, "content"), "");
      if (content.empty()) return refuse("an added token without content");
      const int32_t id = TRY(take_id(at(token, "id"), content));
      if (!added_ids_.emplace(content, id).second)
        return refuse("added token {} is there twice", content);
      if (is_true(at(token, "special"))) {
        special_.insert(content);
        continue;
      }
      for (const char* key : {"lstrip", "rstrip", "single_word"}) {
        if (is_true(at(token, key)))
          return refuse("added token {}: {} is not supported", content, key);
      }
      parts_.added_tokens.emplace_back(content, id);
      parts_.token_bytes[size_t(id)] = content;
    }
    return {};
  }

  Status read_vocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object() || vocabulary.empty())
      return refuse("model.vocab is missing or empty");
    std::vector<bool> taken;
    parts_.byte_ids.fill(-1);
    for (const auto& [token, value] : vocabulary.items()) {
      const int32_t id = TRY(take_id(value, token));
      if (taken.size() < parts_.token_bytes.size()) taken.resize(parts_.token_bytes.size());
      if (taken[size_t(id)]) return refuse("two tokens have id {}", id);
      taken[size_t(id)] = true;
      if (added_ids_.count(token) != 0) {
        if (added_ids_[token] != id) return refuse("token {} has two ids", token);
        continue;
      }
      std::optional<std::string> bytes = from_byte_alphabet(token);
      if (!bytes || bytes->empty())
        return refuse("token {} (id {}) is not of the byte-level alphabet", token, id);
      if (bytes->size() == 1) parts_.byte_ids[uint8_t((*bytes)[0])] = id;
      ids_.emplace(*bytes, id);
      parts_.token_bytes[size_t(id)] = std::move(*bytes);
    }
    for (const auto& [content, id] : added_ids_) {
      if (size_t(id) < taken.size() && taken[size_t(id)] && !vocabulary.contains(content)) {
        return refuse("two tokens have id {}", id);
      }
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      if (parts_.byte_ids[byte] < 0)
        return refuse("byte {} has no token, so not all text can be written", byte);
    }
    if (parts_.ignore_merges) parts_.whole_tokens = ids_;
    return {};
  }

  Result<int32_t> id_of(const std::string& bytes, const Json& merge) const {
    const auto it = ids_.find(bytes);
    if (it == ids_.end()) {
      return refuse("merge {} speaks of a token that is not in the vocabulary",
                    merge.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return it->second;
  }

  Status read_merges(const Json& merges) {
    if (!merges.is_array()) return refuse("model.merges is not a list");
    for (const Json& merge : merges) {
      std::string left, right;
      if (merge.is_string()) {
        const std::string text = merge;
        const size_t space = text.find(' ');
        left = text.substr(0, space);
        if (space != std::string::npos) right = text.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = merge[0];
        right = merge[1];
      }
      const std::optional<std::string> left_bytes = from_byte_alphabet(left);
      const std::optional<std::string> right_bytes = from_byte_alphabet(right);
      if (!left_bytes || !right_bytes || left.empty() || right.empty()) {
        return refuse("merge {} is not a pair of byte-level tokens",
                      merge.dump(-1, ' ', false, Json::error_handler_t::replace));
      }
      const int32_t a = TRY(id_of(*left_bytes, merge)), b = TRY(id_of(*right_bytes, merge));
      const int32_t into = TRY(id_of(*left_bytes + *right_bytes, merge));
      parts_.merges.push_back({a, b, into});
    }
    return {};
  }

  void choose_end_of_text(const std::string& hint) {
    for (const std::string& name :
         {std::string("<|end_of_text|>"), std::string("<|endoftext|>"), std::string("</s>"),
          std::string("<｜end▁of▁sentence｜>"), hint}) {
      if (special_.count(name) == 0) continue;
      parts_.end_of_text = added_ids_[name];
      return;
    }
  }

  ByteLevelParts parts_;
  bool byte_level_ = false;
  std::unordered_map<std::string, int32_t> added_ids_, ids_;  // ids_: by bytes
  std::unordered_set<std::string> special_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string_view text,
                                                        const std::string& name,
                                                        const std::string& end_of_text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const std::exception& e) {
    return invalid_input("{}: not JSON: {}", name, e.what());
  }
  ByteLevelParts parts = TRY(Parser(name).run(json, end_of_text));
  parts.fingerprint = stream_of(text) ^ uint64_t(uint32_t(parts.end_of_text));
  return ByteLevelTokenizer::make(std::move(parts));
}

}  // namespace fivefold::data
