#include "ptx/cursor.h"

namespace cuplex::ptx {

Status Cursor::ExpectSign(std::string_view sign) {
  if (TakeSign(sign)) return {};
  return Unexpected(fmt::format("`{}`", sign));
}

Result<std::string_view> Cursor::ExpectWord(std::string_view expected) {
  if (token_.kind != TokenKind::kWord) return Unexpected(expected);
  return Take().text;
}

Result<std::string_view> Cursor::ExpectDotWord(std::string_view expected) {
  if (token_.kind != TokenKind::kDotWord) return Unexpected(expected);
  return Take().text;
}

Error Cursor::Unexpected(const Token& found, std::string_view expected) {
  constexpr size_t kMost = 60;  // a hostile word does not make a hostile sentence
  std::string_view text = found.text.substr(0, kMost);
  std::string what;
  switch (found.kind) {
    case TokenKind::kEnd:
      what = "the end of the text";
      break;
    case TokenKind::kError:
      what = found.text;
      break;
    case TokenKind::kDotWord:
      what = fmt::format("`.{}`", text);
      break;
    case TokenKind::kString:
      what = fmt::format("the string \"{}\"", text);
      break;
    default:
      what = fmt::format("`{}`", text);
  }
  return Fail(Blame::kCaller, "PTX {}:{}: found {}, expected {}", found.place.line, found.place.column, what,
              expected);
}

Error Cursor::Wrong(Place place, std::string_view sentence) {
  return Fail(Blame::kCaller, "PTX {}:{}: {}", place.line, place.column, sentence);
}

}  // namespace cuplex::ptx
