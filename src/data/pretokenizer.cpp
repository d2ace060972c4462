#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/pretokenizer.hpp"

#include <pcre2.h>

#include "base/check.hpp"
#include "data/utf8.hpp"

namespace fivefold::data {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// Unicode's White_Space. PCRE2's own \s would add U+180E, which lost the property in Unicode 6.3.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Reads a pattern once from left to right: refuses what is not taken and replaces \s and \S.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) TRY(step());
    return out_;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += std::min(count, pattern_.size() - at_);
  }
  tl::unexpected<Error> refuse(const std::string& what) const {
    return invalid_input("{} in the pattern {} is not supported", what, pattern_);
  }

  Status step() {
    const char c = peek();
    if (c == '\\') return escape();
    if (in_class_) {
      // POSIX names, nested classes and && mean something else in each engine.
      if (c == '[') return refuse("[ within a class");
      if (c == '&' && peek(1) == '&') return refuse("&& within a class");
      if (c == ']' && at_ != class_begin_) in_class_ = false;
    } else if (c == '[') {
      in_class_ = true;
      copy(1);
      if (peek() == '^') copy(1);
      class_begin_ = at_;
      return {};
    } else if (c == '(') {
      return open_group();
    } else if (c == ')') {
      const char next = peek(1);
      if (next == '*' || next == '+' || next == '{') return refuse("a repeated group");
    } else if (c == '^' || c == '$') {
      return refuse(std::string("the anchor ") + c);
    }
    copy(1);
    return {};
  }

  Status open_group() {
    for (const std::string_view head : {"(?:", "(?i:", "(?!", "(?="}) {
      if (pattern_.substr(at_).starts_with(head)) {
        copy(head.size());
        return {};
      }
    }
    if (peek(1) == '?' || peek(1) == '*') {
      return refuse(fmt::format("the group {}", pattern_.substr(at_, 4)));
    }
    copy(1);
    return {};
  }

  Status escape() {
    const char c = peek(1);
    if (c == 's' || c == 'S') {
      if (in_class_ && c == 'S') return refuse("\\S within a class");
      if (!in_class_) out_ += c == 's' ? "[" : "[^";
      out_ += kSpaces;
      if (!in_class_) out_ += "]";
      at_ += 2;
      return {};
    }
    if (c == 'p' || c == 'P' || c == 'r' || c == 'n' || c == 't' || c == 'x' ||
        std::ispunct(uint8_t(c))) {
      copy(2);
      return {};
    }
    return refuse(fmt::format("\\{}", c));
  }

  std::string_view pattern_;
  size_t at_ = 0, class_begin_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

struct Pretokenizer::Expression {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool compiled = false;  // to machine code
};

struct Pretokenizer::Scratch::Matches {
  std::unique_ptr<pcre2_match_data, FreeMatch> data;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Pretokenizer::Scratch::Scratch(Scratch&&) noexcept = default;
Pretokenizer::Scratch::~Scratch() = default;
Pretokenizer::Scratch::Scratch(const Pretokenizer& owner) {
  for (const Expression& expression : owner.expressions_) {
    Matches& matches = matches_.emplace_back();
    matches.data.reset(pcre2_match_data_create_from_pattern(expression.code.get(), nullptr));
    matches.context.reset(pcre2_match_context_create(nullptr));
    CHECK(matches.data && matches.context, "out of memory");
    pcre2_set_match_limit(matches.context.get(), UINT32_MAX);
  }
}

Result<Pretokenizer> Pretokenizer::compile(const std::vector<std::string>& patterns) {
  Pretokenizer out;
  for (const std::string& pattern : patterns) {
    const std::string translated = TRY(Translator(pattern).run());
    int error = 0;
    PCRE2_SIZE offset = 0;
    Expression expression;
    expression.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                        translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset,
                                        nullptr));
    if (!expression.code) {
      unsigned char message[256] = {};
      pcre2_get_error_message(error, message, sizeof(message));
      return invalid_input("the pattern {} is not a regular expression: {}", pattern,
                           reinterpret_cast<const char*>(message));
    }
    // Machines without a just-in-time compiler interpret: slower, the same result.
    expression.compiled = pcre2_jit_compile(expression.code.get(), PCRE2_JIT_COMPLETE) == 0;
    out.expressions_.push_back(std::move(expression));
  }
  return out;
}

namespace {

// Pieces of `text`, which is valid UTF-8.
void split_valid(const pcre2_code* code, bool compiled, pcre2_match_data* data,
                 pcre2_match_context* context, std::string_view text,
                 std::vector<std::string_view>& pieces) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
  size_t done = 0, from = 0;
  while (from < text.size()) {
    const int count =
        compiled
            ? pcre2_jit_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context)
            : pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    if (count == PCRE2_ERROR_NOMATCH) break;
    CHECK(count >= 0, "PCRE2 error {}", count);  // patterns that could exhaust it are not compiled
    const size_t begin = ends[0], end = ends[1];
    if (end == begin) {  // an empty match cuts nothing; go on after the next character
      from = begin + utf8_character(text.substr(begin));
      if (begin == text.size()) break;
      continue;
    }
    if (begin > done) pieces.push_back(text.substr(done, begin - done));
    pieces.push_back(text.substr(begin, end - begin));
    done = from = end;
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
}

}  // namespace

const std::vector<std::string_view>& Pretokenizer::split(std::string_view text,
                                                         Scratch& scratch) const {
  scratch.pieces_.clear();
  while (!text.empty()) {
    if (const size_t valid = utf8_prefix(text); valid > 0) {
      scratch.pieces_.push_back(text.substr(0, valid));
      text.remove_prefix(valid);
    }
    size_t invalid = 0;
    while (invalid < text.size() && utf8_character(text.substr(invalid)) == 0) ++invalid;
    if (invalid > 0) scratch.pieces_.push_back(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
  for (size_t i = 0; i < expressions_.size(); ++i) {
    std::swap(scratch.pieces_, scratch.previous_);
    scratch.pieces_.clear();
    for (const std::string_view piece : scratch.previous_) {
      if (utf8_character(piece) == 0) {
        scratch.pieces_.push_back(piece);
      } else {
        split_valid(expressions_[i].code.get(), expressions_[i].compiled,
                    scratch.matches_[i].data.get(), scratch.matches_[i].context.get(), piece,
                    scratch.pieces_);
      }
    }
  }
  return scratch.pieces_;
}

}  // namespace fivefold::data
