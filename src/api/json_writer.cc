#include "api/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "text/utf8.h"

namespace holmes::api {

void AppendJsonString(std::string_view text, std::string& out) {
  std::string replaced;
  if (!text::IsValidUtf8(text)) {
    replaced = text::ReplaceInvalidUtf8(text);
    text = replaced;
  }
  out.push_back('"');
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out += text.substr(plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += fmt::format("\\u{:04x}", c);
    }
  }
  out += text.substr(plain);
  out.push_back('"');
}

void JsonWriter::Separate() {
  if (comma_) out_.push_back(',');
  comma_ = true;
}

JsonWriter& JsonWriter::Open(char c) {
  Separate();
  out_.push_back(c);
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char c) {
  out_.push_back(c);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  Separate();
  AppendJsonString(name, out_);
  out_.push_back(':');
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  AppendJsonString(text, out_);
  return *this;
}

JsonWriter& JsonWriter::Int(std::int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Uint(std::uint64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  out_ += "null";
  return *this;
}

}  // namespace holmes::api
