#include "text/utf8.h"

namespace holmes::text {
namespace {

/// Range of the second byte after `lead`, and the sequence's length; length 0 = no sequence begins
/// so.
struct LeadInfo {
  int length;
  unsigned char low;
  unsigned char high;
};

LeadInfo InfoOfLead(unsigned char lead) {
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step NextUtf8(std::string_view bytes) {
  using Kind = Utf8Step::Kind;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return {Kind::kCharacter, 1, lead};
  const LeadInfo info = InfoOfLead(lead);
  if (info.length == 0) return {Kind::kInvalid, 1, 0};
  char32_t code_point = lead & (0x7F >> info.length);
  for (int i = 1; i < info.length; ++i) {
    if (static_cast<std::size_t>(i) == bytes.size()) return {Kind::kIncomplete, i, 0};
    const auto byte = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    const unsigned char low = i == 1 ? info.low : 0x80;
    const unsigned char high = i == 1 ? info.high : 0xBF;
    if (byte < low || byte > high) return {Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {Kind::kCharacter, info.length, code_point};
}

bool IsValidUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Step step = NextUtf8(bytes);
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    bytes.remove_prefix(static_cast<std::size_t>(step.length));
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.Push(bytes);
  out += stream.Flush();
  return out;
}

void AppendUtf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)),
        put(0x80 | (c & 0x3F));
  }
}

std::string Utf8Stream::Push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view left = pending_;
  while (!left.empty()) {
    const Utf8Step step = NextUtf8(left);
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    const auto length = static_cast<std::size_t>(step.length);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      out += left.substr(0, length);
    } else if (!began_before_) {
      out += kReplacement;
    }
    began_before_ = false;
    left.remove_prefix(length);
  }
  pending_.erase(0, pending_.size() - left.size());
  return out;
}

std::string Utf8Stream::Flush() {
  const bool cut_off = !pending_.empty() && !began_before_;
  pending_.clear();
  began_before_ = false;
  return std::string(cut_off ? kReplacement : std::string_view());
}

void Utf8Stream::Prime(std::string_view bytes) {
  static_cast<void>(Push(bytes));
  began_before_ = !pending_.empty();
}

}  // namespace holmes::text
