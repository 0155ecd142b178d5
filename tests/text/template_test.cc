#include "text/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace holmes::text {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

Value FromJson(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_int64()) return std::int64_t{value.get_int64()};
  if (value.is_double()) return value.get_double();
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_array()) {
    List list;
    for (const json::value& item : value.get_array()) list.push_back(FromJson(item));
    return list;
  }
  if (value.is_object()) {
    Dict dict;
    for (const auto& item : value.get_object())
      dict.emplace_back(std::string(item.key()), FromJson(item.value()));
    return dict;
  }
  return {};
}

const json::object& Goldens() {
  static const json::value goldens =
      json::parse(ReadAll(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "template_goldens.json"));
  return goldens.get_object();
}

StatusOr<std::string> RenderSource(const std::string& source, const Value& variables) {
  HOLMES_ASSIGN_OR_RETURN(const std::unique_ptr<const Template> parsed, Template::Parse(source));
  RenderOptions options;
  options.now = Goldens().at("now").to_number<std::int64_t>();
  return parsed->Render(variables, options);
}

void ExpectGolden(const json::value& golden,
                  const StatusOr<std::string>& got,
                  const std::string& what) {
  if (const json::value* output = golden.get_object().if_contains("output")) {
    ASSERT_TRUE(got.ok()) << what << ": " << got.status().ToString();
    EXPECT_EQ(*got, std::string(output->get_string())) << what;
    return;
  }
  ASSERT_FALSE(got.ok()) << what << " gave: " << *got;
  const std::string message(golden.at("error").get_string());
  if (!message.empty()) {
    EXPECT_EQ(got.status().code(), StatusCode::kInvalidArgument) << what;
    EXPECT_EQ(got.status().message(), message) << what;
  }
}

class TemplateTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(TemplateTest, SnippetsRenderAsJinja2DoesIt) {
  const Value variables = FromJson(Goldens().at("variables"));
  for (const json::value& snippet : Goldens().at("snippets").as_array()) {
    const std::string source(snippet.at("source").get_string());
    ExpectGolden(snippet, RenderSource(source, variables), source);
  }
}

TEST_F(TemplateTest, PublicTemplatesRenderAsJinja2DoesIt) {
  const char* dir = std::getenv("HOLMES_SHARED_DIR");
  const std::filesystem::path folder =
      (dir != nullptr ? std::filesystem::path(dir)
                      : std::filesystem::path(HOLMES_SOURCE_DIR) / ".." / "shared") /
      "data" / "templates";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "public templates are not beside this checkout (" << folder << ")";
  for (const auto& file : Goldens().at("files").as_object()) {
    for (const auto& chat : file.value().as_object()) {
      // Differences by design (docs/templates.md): `safe` makes no markup that escapes what is
      // added to it, and what `map` gives is a list that tojson can write.
      const bool tools = chat.key() == "tools" || chat.key() == "tool_result";
      if (tools && (file.key() == "llama-cpp-deepseek-r1.jinja" ||
                    file.key() == "meetkai-functionary-medium-v3.1.jinja"))
        continue;
      Dict variables = FromJson(Goldens().at("chats").at(chat.key())).as_dict();
      variables.emplace_back("bos_token", "<s>");
      variables.emplace_back("eos_token", "</s>");
      ExpectGolden(chat.value(),
                   RenderSource(ReadAll(folder / std::string(file.key())), variables),
                   std::string(file.key()) + ", " + std::string(chat.key()));
    }
  }
}

TEST_F(TemplateTest, LimitsStopEndlessTemplates) {
  const Value none{Dict{}};
  const char* endless[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = a %}{% endfor %}{% endfor "
      "%}",
      "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s ~ "
      "ns.s %}{% endfor %}",
      "{% for a in range(99999) %}{% for b in range(99999) "
      "%}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfor %}{% endfor %}",
      "{{ 'x' * 99999999999 }}",
      "{{ range(999999999) }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
  };
  for (const char* source : endless)
    EXPECT_EQ(RenderSource(source, none).status().code(), StatusCode::kResourceExhausted) << source;
}

TEST_F(TemplateTest, OnlyNamespacesCanBeAssignedTo) {
  const Value variables{Dict{{"d", Dict{{"a", 0}}}}};
  EXPECT_FALSE(RenderSource("{% set d.a = 1 %}", variables).ok());
  EXPECT_EQ(variables.Find("d")->Find("a")->as_int(), 0);
  EXPECT_FALSE(RenderSource("{% set ns = namespace() %}{% set ns.x = ns %}", variables).ok());
  EXPECT_FALSE(
      RenderSource("{% set ns = namespace() %}{% set ns.x = [{'a': ns}] %}", variables).ok());
  EXPECT_FALSE(RenderSource("{% set ns = namespace() %}{% set ns.x = range %}", variables).ok());
  EXPECT_EQ(RenderSource("{{ namespace(a=1) is mapping }}", variables).value(), "False");
}

TEST_F(TemplateTest, KeysNeedNotBeStrings) {
  const Value none{Dict{}};
  EXPECT_EQ(
      RenderSource("{% set d = {0: 'a', 512: 'b', none: 'c', 1.5: 'd'} %}{{ d[512] }}{{ d[0] }}"
                   "{{ d[none] }}{{ d.get(1.5) }}{{ d['0'] }} {{ d }} {{ 0 in d }}"
                   "{% for k, v in d.items() %} {{ k }}{% endfor %}",
                   none)
          .value(),
      "bacd {0: 'a', 512: 'b', None: 'c', 1.5: 'd'} True 0 512 None 1.5");
}

TEST_F(TemplateTest, NestedEmptyLoopsStop) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_EQ(RenderSource(loops, Value(Dict{})).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(TemplateTest, SyntaxErrorsNameTheLine) {
  const std::string deep(5000, '(');
  for (const std::string& source : {std::string("a\n{% if x %}"),
                                    std::string("a\n{{ 1 + }}"),
                                    std::string("a\n{{ 'x }}"),
                                    std::string("\n{% endif %}"),
                                    std::string("\n{% include 'x' %}"),
                                    std::string("\n{{ x is notest }}"),
                                    "\n{{ " + deep + " }}",
                                    std::string("\n{% for x in %}{% endfor %}"),
                                    std::string("\n{# open"),
                                    std::string("\n{% break %}")}) {
    const Status status = Template::Parse(source).status();
    EXPECT_TRUE(status.code() == StatusCode::kInvalidArgument ||
                status.code() == StatusCode::kUnimplemented)
        << source.substr(0, 40);
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2")) << source.substr(0, 40);
  }
}

}  // namespace
}  // namespace holmes::text
