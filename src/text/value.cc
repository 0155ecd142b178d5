#include "text/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace holmes::text {
namespace {

bool IsPrintable(char32_t c) { return c >= 0xA0 ? c != 0xAD : c >= 0x20 && c != 0x7F; }

/// Python's repr of a string: single quotes unless only they occur inside.
std::string StringRepr(std::string_view text) {
  const bool single =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = single ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    const char32_t c = step.kind == Utf8Step::Kind::kCharacter ? step.code_point : 0xFFFD;
    text.remove_prefix(static_cast<std::size_t>(step.length));
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (!IsPrintable(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      AppendUtf8(c, out);
    }
  }
  out.push_back(quote);
  return out;
}

void JsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
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
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonOptions& options) : options_(options) {}

  Status Write(const Value& value, int depth) {
    if (depth > 200) return base::InvalidArgumentError("tojson: nested more than 200 levels deep");
    if (value.is_none()) return Put("null");
    if (value.is_bool()) return Put(value.as_bool() ? "true" : "false");
    if (value.is_int()) return Put(std::to_string(value.as_int()));
    if (value.is_float())
      return Put(std::isnan(value.as_double()) ? "NaN"
                 : std::isinf(value.as_double())
                     ? (value.as_double() > 0 ? "Infinity" : "-Infinity")
                     : FloatRepr(value.as_double()));
    if (value.is_string()) {
      JsonString(value.as_string(), out_);
      return OkStatus();
    }
    if (value.is_list()) return WriteList(value.as_list(), depth);
    if (value.is_dict()) return WriteDict(value.as_dict(), depth);
    return base::InvalidArgumentError(
        fmt::format("Object of type {} is not JSON serializable", value.type_name()));
  }
  std::string Take() { return std::move(out_); }

 private:
  Status Put(std::string_view text) {
    out_ += text;
    return OkStatus();
  }
  void Separate(bool first, int depth) {
    if (!first)
      out_ +=
          options_.indent >= 0 && options_.item_separator == ", " ? "," : options_.item_separator;
    if (options_.indent >= 0)
      out_ += "\n" + std::string(static_cast<std::size_t>(options_.indent * depth), ' ');
  }
  void End(bool empty, int depth) {
    if (!empty && options_.indent >= 0)
      out_ += "\n" + std::string(static_cast<std::size_t>(options_.indent * depth), ' ');
  }
  Status WriteList(const List& list, int depth) {
    out_.push_back('[');
    for (std::size_t i = 0; i < list.size(); ++i) {
      Separate(i == 0, depth + 1);
      HOLMES_RETURN_IF_ERROR(Write(list[i], depth + 1));
    }
    End(list.empty(), depth);
    return Put("]");
  }
  Status WriteDict(const Dict& dict, int depth) {
    std::vector<const std::pair<std::string, Value>*> items;
    for (const auto& item : dict) items.push_back(&item);
    if (options_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) {
        return a->first < b->first;
      });
    out_.push_back('{');
    for (std::size_t i = 0; i < items.size(); ++i) {
      Separate(i == 0, depth + 1);
      JsonString(items[i]->first, out_);
      out_ += options_.key_separator;
      HOLMES_RETURN_IF_ERROR(Write(items[i]->second, depth + 1));
    }
    End(items.empty(), depth);
    return Put("}");
  }

  const JsonOptions& options_;
  std::string out_;
};

}  // namespace

std::int64_t Value::as_int() const {
  if (is_bool()) return as_bool() ? 1 : 0;
  if (is_float()) return static_cast<std::int64_t>(std::get<double>(data_));
  return std::get<std::int64_t>(data_);
}

double Value::as_double() const {
  return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
}

const Value* Value::Find(std::string_view key) const {
  if (!is_dict()) return nullptr;
  for (const auto& [name, value] : as_dict()) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool Value::Truthy() const {
  if (is_none() || is_undefined()) return false;
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (is_string()) return !as_string().empty();
  if (is_list()) return !as_list().empty();
  if (is_dict()) return !as_dict().empty();
  return true;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double magnitude = std::fabs(value);
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto end =
      std::to_chars(buffer,
                    buffer + sizeof(buffer),
                    value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string out(buffer, end);
  if (!scientific && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string Value::ToString() const {
  if (is_string()) return as_string();
  if (is_undefined()) return "";
  return Repr();
}

std::string Value::Repr() const {
  if (is_none()) return "None";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return as_bool() ? "True" : "False";
  if (is_int()) return std::to_string(as_int());
  if (is_float()) return FloatRepr(as_double());
  if (is_string()) return StringRepr(as_string());
  if (is_function()) return "<function>";
  std::string out;
  if (is_list()) {
    for (const Value& item : as_list()) out += (out.empty() ? "" : ", ") + item.Repr();
    return "[" + out + "]";
  }
  for (const auto& [key, value] : as_dict())
    out += (out.empty() ? "" : ", ") + StringRepr(key) + ": " + value.Repr();
  return "{" + out + "}";
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.as_double() == b.as_double();
    return a.as_int() == b.as_int();
  }
  if (a.data_.index() != b.data_.index()) return false;
  if (a.is_string()) return a.as_string() == b.as_string();
  if (a.is_list()) return a.as_list() == b.as_list();
  if (a.is_dict()) {
    if (a.as_dict().size() != b.as_dict().size()) return false;
    return std::all_of(a.as_dict().begin(), a.as_dict().end(), [&](const auto& item) {
      const Value* other = b.Find(item.first);
      return other != nullptr && *other == item.second;
    });
  }
  return a.is_none() || a.is_undefined();
}

std::string_view Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_list()) return "list";
  if (is_dict()) return "dict";
  return "function";
}

StatusOr<std::string> ToJson(const Value& value, const JsonOptions& options) {
  JsonWriter writer(options);
  HOLMES_RETURN_IF_ERROR(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace holmes::text
