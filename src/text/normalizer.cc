#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "text/utf8.h"

namespace holmes::text {
namespace {

/// True for characters that NFC leaves alone whatever stands beside them: a cheap subset of the
/// Unicode property NFC_Quick_Check = Yes with combining class 0.
bool IsPlainlyComposed(char32_t c) {
  return c < 0x300 || (c >= 0x400 && c < 0x483) || (c >= 0x3041 && c < 0x3097) ||
         (c >= 0x3400 && c < 0xA000);
}

bool IsComposed(std::string_view utf8, NormalForm form) {
  while (!utf8.empty()) {
    const Utf8Step step = NextUtf8(utf8);
    const bool plain =
        form == NormalForm::kNfc ? IsPlainlyComposed(step.code_point) : step.code_point < 0x80;
    if (!plain) return false;
    utf8.remove_prefix(static_cast<std::size_t>(step.length));
  }
  return true;
}

utf8proc_propval_t CombiningClass(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

/// Marks in canonical order. utf8proc's own decomposition swaps neighbours, which is quadratic in a
/// run of marks.
void SortMarks(std::vector<utf8proc_int32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (CombiningClass(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, points.end(), [](auto c) { return CombiningClass(c) == 0; });
    std::stable_sort(
        begin, end, [](auto a, auto b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end;
  }
}

}  // namespace

std::string Normalize(std::string_view utf8, NormalForm form) {
  if (form == NormalForm::kNone || IsComposed(utf8, form)) return std::string(utf8);
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_COMPOSE | (form == NormalForm::kNfkc ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> points;
  points.reserve(utf8.size());
  std::vector<utf8proc_int32_t> buffer(32);  // the longest decomposition has 18
  while (!utf8.empty()) {
    const Utf8Step step = NextUtf8(utf8);
    utf8.remove_prefix(static_cast<std::size_t>(step.length));
    int boundary = 0;
    const auto c = static_cast<utf8proc_int32_t>(step.code_point);
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        c, buffer.data(), static_cast<utf8proc_ssize_t>(buffer.size()), options, &boundary);
    if (count < 0 || count > static_cast<utf8proc_ssize_t>(buffer.size())) {
      points.push_back(c);
    } else {
      points.insert(points.end(), buffer.begin(), buffer.begin() + count);
    }
  }
  SortMarks(points);
  const utf8proc_ssize_t length = utf8proc_normalize_utf32(
      points.data(), static_cast<utf8proc_ssize_t>(points.size()), options);
  std::string out;
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    AppendUtf8(static_cast<char32_t>(points[static_cast<std::size_t>(i)]), out);
  return out;
}

}  // namespace holmes::text
