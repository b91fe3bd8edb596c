// Cursor: where the parser stands in a text: the token at hand, the one after it, and the words for errors.
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ptx/lexer.h"

namespace cuplex::ptx {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : lexer_(text) {
    token_ = lexer_.Next();
    next_ = lexer_.Next();
  }

  const Token& token() const { return token_; }
  const Token& next() const { return next_; }

  /// Steps on and gives the token that was at hand.
  Token Take() {
    Token taken = token_;
    token_ = next_;
    next_ = lexer_.Next();
    return taken;
  }

  // Step over the token at hand where it is this one; false, and no step, where it is not.
  bool TakeSign(std::string_view sign) { return token_.IsSign(sign) && (Take(), true); }
  bool TakeDotWord(std::string_view word) { return token_.IsDotWord(word) && (Take(), true); }

  Status ExpectSign(std::string_view sign);
  Result<std::string_view> ExpectWord(std::string_view expected);
  Result<std::string_view> ExpectDotWord(std::string_view expected);

  /// "PTX 3:7: found `x`, expected a register."
  Error Unexpected(std::string_view expected) const { return Unexpected(token_, expected); }
  static Error Unexpected(const Token& found, std::string_view expected);

  /// "PTX 3:7: SENTENCE", for what is well-formed but wrong.
  static Error Wrong(Place place, std::string_view sentence);

 private:
  Lexer lexer_;
  Token token_, next_;
};

}  // namespace cuplex::ptx
