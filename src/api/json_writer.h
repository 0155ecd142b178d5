/// Writing JSON without a document in between. Never fails: invalid UTF-8 becomes U+FFFD, numbers
/// that JSON lacks become null.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holmes::api {

/// Appends `text` as a JSON string.
void AppendJsonString(std::string_view text, std::string& out);

/// Builds one value; commas are its business. Calls must nest properly (caller bug otherwise).
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(std::int64_t value);
  JsonWriter& Uint(std::uint64_t value);
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  std::string Take() { return std::move(out_); }

 private:
  JsonWriter& Open(char c);
  JsonWriter& Close(char c);
  void Separate();
  std::string out_;
  bool comma_ = false;
};

}  // namespace holmes::api
