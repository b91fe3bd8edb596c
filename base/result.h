// Result<T>: a value or an Error, and TRY, which passes an Error up. Any thread; no global state.
//
// An Error says who is to blame, in the three words of docs/errors.md, and one whole sentence that names what
// was given and what was expected. CUDA's codes are made from it only at the edge; `driver_code` carries the
// code of a driver call that failed, unchanged, so that the edge can answer with it.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace cuplex {

enum class Blame {
  kCaller,       // the caller gave something it must not: bad argument, unknown handle
  kRefused,      // well-formed, but policy says no (identity, limits of the operator)
  kExhausted,    // a limit or the machine is used up: memory, descriptors, slots
  kUnsupported,  // well-formed, but not carried
  kGone,         // the other side went away
  kSystem,       // the OS or the driver said no
  kOurs,         // a bug of ours
};

struct Error {
  Blame blame = Blame::kOurs;
  std::string sentence;
  int driver_code = 0;  // CUresult of the driver call that failed, 0 if none
};

template <typename... A>
[[nodiscard]] Error Fail(Blame blame, fmt::format_string<A...> f, A&&... a) {
  return Error{blame, fmt::format(f, std::forward<A>(a)...), 0};
}

/// "SENTENCE: strerror(errno_value)", blamed on the system.
[[nodiscard]] Error FailErrno(int errno_value, std::string sentence);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(v_); }
  Error&& error() && { return std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace cuplex

#define CUPLEX_CAT2(a, b) a##b
#define CUPLEX_CAT(a, b) CUPLEX_CAT2(a, b)
#define CUPLEX_TRY1(expr)                                                                 \
  do {                                                                                    \
    if (auto try_result = (expr); !try_result.ok()) return std::move(try_result).error(); \
  } while (0)
#define CUPLEX_TRY2_(tmp, lhs, expr)            \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = *std::move(tmp)
#define CUPLEX_TRY2(lhs, expr) CUPLEX_TRY2_(CUPLEX_CAT(try_result_, __LINE__), lhs, expr)
#define CUPLEX_TRY_PICK(a, b, name, ...) name

/// TRY(expr) passes an Error up; TRY(auto x, expr) also takes the value.
#define TRY(...) CUPLEX_TRY_PICK(__VA_ARGS__, CUPLEX_TRY2, CUPLEX_TRY1, )(__VA_ARGS__)
