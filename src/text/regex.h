/// Regular expressions of pre-tokenizers, read as the `tokenizers` library reads them (Oniguruma,
/// Ruby syntax) and run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace holmes::text {

/// The pattern in PCRE2's words: \s \w \h and script names mean something else there (\s has
/// U+180E, \w lacks marks, \h is horizontal space, \p{Han} takes script extensions).
/// Errors: kUnimplemented for what has no counterpart (\W or sets inside brackets) or could match
/// backwards or without end (\K, verbs, recursion, callouts).
StatusOr<std::string> TranslatePattern(std::string_view pattern);

/// Immutable after Compile; thread-safe.
class Regex {
 public:
  /// Errors: kInvalidArgument with the pattern, the offset and the reason; kUnimplemented as
  /// TranslatePattern.
  static StatusOr<Regex> Compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// One search after the other over texts, with the memory that a search needs. One thread at a
  /// time; borrows the regex. Cheap to keep, not free to make.
  class Searcher {
   public:
    explicit Searcher(const Regex& regex);
    ~Searcher();
    Searcher(const Searcher&) = delete;
    Searcher& operator=(const Searcher&) = delete;

    /// Finds the leftmost non-empty match at or after `at`. Precondition: text is valid UTF-8, `at`
    /// a character's begin. False when there is none, or when the search takes more steps than a
    /// pre-tokenizer needs (about 100 a byte): then the rest has no matches for this text.
    bool Next(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end);

   private:
    struct Memory;
    const Regex& regex_;
    std::unique_ptr<Memory> memory_;
  };

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace holmes::text
