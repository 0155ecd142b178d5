#include "text/value.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace holmes::text {
namespace {

/// Python's str.isprintable: no controls, formats, surrogates, unassigned or blanks but ' '.
bool IsPrintable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

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
      out += c < 0x100     ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
             : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                           : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    } else {
      AppendUtf8(c, out);
    }
  }
  out.push_back(quote);
  return out;
}

/// \uXXXX for every character outside ASCII, in surrogate pairs beyond the basic plane.
std::string AsciiOnly(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const Utf8Step step = NextUtf8(json);
    char32_t c = step.kind == Utf8Step::Kind::kCharacter ? step.code_point : 0xFFFD;
    json.remove_prefix(static_cast<std::size_t>(step.length));
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      c -= 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}",
                         0xD800 + (static_cast<unsigned>(c) >> 10),
                         0xDC00 + (static_cast<unsigned>(c) & 0x3FF));
    }
  }
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

/// JSON object keys: json.dumps writes the other kinds that may be keys as text.
std::string JsonKey(const std::string& key) {
  const Value value = DictKeyValue(key);
  return value.is_string() ? key : value.is_none() ? "null" : value.ToString();
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
  std::string Take() { return options_.ensure_ascii ? AsciiOnly(out_) : std::move(out_); }

 private:
  Status Put(std::string_view text) {
    out_ += text;
    return OkStatus();
  }
  void Separate(bool first, int depth) {
    if (!first) out_ += options_.item_separator.value_or(options_.indent >= 0 ? "," : ", ");
    NewLine(depth);
  }
  void End(bool empty, int depth) {
    if (!empty) NewLine(depth);
  }
  void NewLine(int depth) {
    if (options_.indent < 0) return;
    out_.push_back('\n');
    for (int i = 0; i < depth; ++i) {
      if (options_.indent_text.empty()) {
        out_.append(static_cast<std::size_t>(options_.indent), ' ');
      } else {
        out_ += options_.indent_text;
      }
    }
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
      JsonString(JsonKey(items[i]->first), out_);
      out_ += options_.key_separator;
      HOLMES_RETURN_IF_ERROR(Write(items[i]->second, depth + 1));
    }
    End(items.empty(), depth);
    return Put("}");
  }

  const JsonOptions& options_;
  std::string out_;
};

std::uint64_t AddSaturating(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

constexpr char kOtherKey = '\xFF';  // begins the key of what is no string

}  // namespace

struct Value::ListBox {
  List items;
  bool tuple = false;
  bool holds_reference = false;
  int depth = 1;
  std::uint64_t weight = 2;
};

struct Value::DictBox {
  Dict items;
  bool is_namespace = false;
  bool holds_reference = false;
  int depth = 1;
  std::uint64_t weight = 2;
};

std::shared_ptr<const Value::ListBox> Value::MakeListBox(List list, bool tuple) {
  auto box = std::make_shared<ListBox>();
  for (const Value& item : list) {
    box->depth = std::max(box->depth, (item.is_namespace() ? 1 : item.depth()) + 1);
    box->weight = AddSaturating(box->weight, 2 + (item.is_namespace() ? 1 : item.weight()));
    box->holds_reference = box->holds_reference || item.holds_reference();
  }
  box->items = std::move(list);
  box->tuple = tuple;
  return box;
}

std::shared_ptr<Value::DictBox> Value::MakeDictBox(Dict dict, bool is_namespace) {
  auto box = std::make_shared<DictBox>();
  box->holds_reference = is_namespace;
  for (const auto& [key, item] : dict) {
    box->depth = std::max(box->depth, (item.is_namespace() ? 1 : item.depth()) + 1);
    const std::uint64_t weight = item.is_namespace() ? 1 : item.weight();
    box->weight = AddSaturating(box->weight, AddSaturating(weight, 4 + key.size()));
    box->holds_reference = box->holds_reference || item.holds_reference();
  }
  box->items = std::move(dict);
  box->is_namespace = is_namespace;
  return box;
}

bool Value::is_tuple() const {
  return is_list() && std::get<std::shared_ptr<const ListBox>>(data_)->tuple;
}
bool Value::is_dict() const {
  const auto* box = std::get_if<std::shared_ptr<DictBox>>(&data_);
  return box != nullptr && !(*box)->is_namespace;
}
bool Value::is_namespace() const {
  const auto* box = std::get_if<std::shared_ptr<DictBox>>(&data_);
  return box != nullptr && (*box)->is_namespace;
}
const List& Value::as_list() const {
  return std::get<std::shared_ptr<const ListBox>>(data_)->items;
}
const Dict& Value::as_dict() const { return std::get<std::shared_ptr<DictBox>>(data_)->items; }
Dict& Value::namespace_dict() const { return std::get<std::shared_ptr<DictBox>>(data_)->items; }

int Value::depth() const {
  if (is_list()) return std::get<std::shared_ptr<const ListBox>>(data_)->depth;
  if (is_dict()) return std::get<std::shared_ptr<DictBox>>(data_)->depth;
  if (!is_namespace()) return 0;
  int out = 1;
  for (const auto& [key, item] : as_dict())
    out = std::max(out, (item.is_namespace() ? 1 : item.depth()) + 1);
  return out;
}

std::uint64_t Value::weight() const {
  if (is_string()) return as_string().size() + 1;
  if (is_list()) return std::get<std::shared_ptr<const ListBox>>(data_)->weight;
  if (is_dict()) return std::get<std::shared_ptr<DictBox>>(data_)->weight;
  if (!is_namespace()) return 1;
  std::uint64_t out = 2;
  for (const auto& [key, item] : as_dict()) {
    const std::uint64_t weight = item.is_namespace() ? 1 : item.weight();
    out = AddSaturating(out, AddSaturating(weight, 4 + key.size()));
  }
  return out;
}

bool Value::holds_reference() const {
  if (is_function() || is_namespace()) return true;
  if (is_list()) return std::get<std::shared_ptr<const ListBox>>(data_)->holds_reference;
  return is_dict() && std::get<std::shared_ptr<DictBox>>(data_)->holds_reference;
}

std::optional<std::string> DictKey(const Value& key) {
  if (key.is_string()) return key.as_string();
  if (key.is_none()) return std::string(1, kOtherKey);
  if (!key.is_number()) return std::nullopt;
  // Equal numbers are one key.
  const double number = key.as_double();
  const bool whole = !key.is_float() || (std::floor(number) == number && std::fabs(number) < 9e15);
  return kOtherKey + (whole ? std::to_string(key.as_int()) : FloatRepr(number));
}

Value DictKeyValue(std::string_view key) {
  if (key.empty() || key[0] != kOtherKey) return key;
  if (key.size() == 1) return {};
  std::int64_t whole = 0;
  const char* end = key.data() + key.size();
  if (const auto read = std::from_chars(key.data() + 1, end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  if (const auto read = std::from_chars(key.data() + 1, end, number);
      read.ec == std::errc() && read.ptr == end)
    return number;
  return key;
}

std::int64_t Value::as_int() const {
  if (is_bool()) return as_bool() ? 1 : 0;
  if (is_float()) {
    // A float beyond the integers' range has no cast.
    const double value = std::get<double>(data_);
    if (std::isnan(value)) return 0;
    if (value >= 9.2e18) return INT64_MAX;
    if (value <= -9.2e18) return INT64_MIN;
    return static_cast<std::int64_t>(value);
  }
  return std::get<std::int64_t>(data_);
}

double Value::as_double() const {
  return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
}

const Value* Value::Find(std::string_view key) const {
  if (!is_dict() && !is_namespace()) return nullptr;
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
  if (!is_namespace()) return Repr();
  std::string out;
  for (const auto& [key, value] : as_dict())
    out += (out.empty() ? "" : ", ") + StringRepr(key) + ": " + value.Repr();
  return "<Namespace {" + out + "}>";
}

std::string Value::Repr() const {
  if (is_none()) return "None";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return as_bool() ? "True" : "False";
  if (is_int()) return std::to_string(as_int());
  if (is_float()) return FloatRepr(as_double());
  if (is_string()) return StringRepr(as_string());
  if (is_function()) return "<function>";
  // Attributes of a namespace in a container stay out: depth() and weight() do not count them.
  if (is_namespace()) return "<Namespace>";
  std::string out(1, is_tuple() ? '(' : is_list() ? '[' : '{');
  bool first = true;
  const auto separate = [&] {
    if (!std::exchange(first, false)) out += ", ";
  };
  if (is_list()) {
    for (const Value& item : as_list()) {
      separate();
      out += item.Repr();
    }
    if (is_tuple()) return out + (as_list().size() == 1 ? ",)" : ")");
    return out + "]";
  }
  for (const auto& [key, value] : as_dict()) {
    separate();
    out += DictKeyValue(key).Repr() + ": ";
    out += value.Repr();
  }
  return out + "}";
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.as_double() == b.as_double();
    return a.as_int() == b.as_int();
  }
  if (a.data_.index() != b.data_.index()) return false;
  if (a.is_string()) return a.as_string() == b.as_string();
  if (a.is_list()) return a.is_tuple() == b.is_tuple() && a.as_list() == b.as_list();
  if (a.is_namespace() || b.is_namespace()) return a.data_ == b.data_;
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
  if (is_tuple()) return "tuple";
  if (is_list()) return "list";
  if (is_namespace()) return "Namespace";
  if (is_dict()) return "dict";
  return "function";
}

StatusOr<std::string> ToJson(const Value& value, const JsonOptions& options) {
  JsonWriter writer(options);
  HOLMES_RETURN_IF_ERROR(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace holmes::text
