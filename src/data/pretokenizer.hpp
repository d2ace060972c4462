#pragma once
// Cuts text into the pieces that byte-pair merges stay within.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace fivefold::data {

// GPT-2's pattern (openai/gpt-2, src/encoder.py), Llama 3's (its tokenizer.json) and Qwen 2's.
extern const std::string_view kGpt2Pattern, kLlama3Pattern, kQwen2Pattern;

// One or more regular expressions, applied one within the pieces of the other. What an expression
// does not match is a piece as well, so that the pieces put together are the text. Bytes that are
// not UTF-8 are matched by nothing.
//
// Patterns are those that tokenizer.json files hold, written for another engine (Oniguruma); only
// constructs that mean the same in both are taken: no look-behind, no back-references, and no
// repeated group, which also bounds the time of a match.
class Pretokenizer {
 public:
  // Errors   invalid_input: not a regular expression, or one of a kind that is not taken.
  static Result<Pretokenizer> compile(const std::vector<std::string>& patterns);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // What one thread needs to match; not to be shared.
  class Scratch {
   public:
    explicit Scratch(const Pretokenizer& owner);
    Scratch(Scratch&&) noexcept;
    ~Scratch();

   private:
    friend class Pretokenizer;
    struct Matches;
    std::vector<Matches> matches_;
    std::vector<std::string_view> pieces_, previous_;
  };

  // Views into `text`; valid until the next call with this scratch.
  const std::vector<std::string_view>& split(std::string_view text, Scratch& scratch) const;

 private:
  struct Expression;
  Pretokenizer();
  std::vector<Expression> expressions_;
};

}  // namespace fivefold::data
