/// UTF-8 as Python's codec reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holmes::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// How the bytes at the front of a text read.
struct Utf8Step {
  enum class Kind : std::uint8_t { kCharacter, kInvalid, kIncomplete };
  Kind kind = Kind::kCharacter;
  int length = 0;  // bytes of the character, of the ill-formed subpart, or of the incomplete
                   // character (= all that is left)
  char32_t code_point = 0;  // kCharacter only
};

/// Precondition: bytes is not empty. Follows the Unicode standard's table 3-7; an ill-formed
/// subpart is the longest prefix of a well-formed sequence (or one byte), which is what Python's
/// decode('utf-8', 'replace') turns into one U+FFFD.
Utf8Step NextUtf8(std::string_view bytes);

bool IsValidUtf8(std::string_view bytes);

/// bytes.decode('utf-8', 'replace'), as UTF-8.
std::string ReplaceInvalidUtf8(std::string_view bytes);

void AppendUtf8(char32_t code_point, std::string& out);

/// Decodes a stream of bytes cut anywhere: the outputs of all Push and the final Flush concatenate
/// to ReplaceInvalidUtf8 of the whole input. Output is whole characters; at most 3 bytes are held
/// back.
class Utf8Stream {
 public:
  std::string Push(std::string_view bytes);
  std::string Flush();
  bool holds_bytes() const { return !pending_.empty(); }

  /// Begins behind `bytes`, whose text was given out elsewhere, an incomplete character at their
  /// end as U+FFFD. Only that character can still come out, whole, when what follows completes it.
  /// Call first.
  void Prime(std::string_view bytes);

 private:
  std::string pending_;
  bool began_before_ = false;  // pending_ begins with bytes from Prime
};

}  // namespace holmes::text
