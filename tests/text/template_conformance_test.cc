// Templates against jinja2 under transformers' set-up (tools/goldens/make_template_conformance.py),
// and the limits of a rendering.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "text/template.h"

namespace holmes::text {
namespace {

namespace json = boost::json;

Value ToValue(const json::value& in) {
  switch (in.kind()) {
    case json::kind::null:
      return {};
    case json::kind::bool_:
      return in.get_bool();
    case json::kind::int64:
      return in.get_int64();
    case json::kind::uint64:
      return static_cast<std::int64_t>(in.get_uint64());
    case json::kind::double_:
      return in.get_double();
    case json::kind::string:
      return std::string(in.get_string());
    case json::kind::array: {
      List out;
      for (const json::value& item : in.get_array()) out.push_back(ToValue(item));
      return out;
    }
    case json::kind::object:
      break;
  }
  Dict out;
  for (const auto& [key, value] : in.get_object())
    out.emplace_back(std::string(key), ToValue(value));
  return out;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const json::object& Goldens() {
  static const json::value goldens = json::parse(
      ReadFile(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "template_conformance.json"));
  return goldens.get_object();
}

RenderOptions AtGoldenTime() {
  ::setenv("TZ", "UTC", 1);
  return {.now = static_cast<std::time_t>(Goldens().at("now").as_int64())};
}

std::string Fnv1a(const std::string& bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

StatusOr<std::string> RenderSource(std::string source,
                                   const Value& variables,
                                   const RenderOptions& options = {}) {
  HOLMES_ASSIGN_OR_RETURN(const std::unique_ptr<const Template> parsed,
                          Template::Parse(std::move(source)));
  return parsed->Render(variables, options);
}

/// What a case did: "output: ...", "raised: ..." or "error".
std::string Outcome(const StatusOr<std::string>& result) {
  return result.ok() ? "output: " + *result : "error: " + std::string(result.status().message());
}

/// Empty when the result is what jinja2 gave. A refusal is right where jinja2 refuses; only
/// raise_exception's words must agree.
std::string Difference(const json::object& golden, const StatusOr<std::string>& result) {
  if (const json::value* output = golden.if_contains("output")) {
    if (result.ok() && *result == output->as_string()) return "";
    return "wanted  output: " + std::string(output->as_string()) + "\ngot     " + Outcome(result);
  }
  if (const json::value* hash = golden.if_contains("fnv1a")) {
    if (result.ok() && Fnv1a(*result) == hash->as_string()) return "";
    return "wanted " + std::to_string(golden.at("bytes").as_int64()) + " bytes\ngot " +
           Outcome(result);
  }
  if (const json::value* raised = golden.if_contains("raised")) {
    if (result.status().code() == StatusCode::kInvalidArgument &&
        result.status().message() == raised->as_string())
      return "";
    return "wanted  raised: " + std::string(raised->as_string()) + "\ngot     " + Outcome(result);
  }
  return result.ok() ? "wanted an error (" + std::string(golden.begin()->key()) + ")\ngot     " +
                           Outcome(result)
                     : "";
}

/// What docs/templates.md leaves out, by source, each with its reason: the set must be exact, so
/// that neither a new difference nor one that went away passes unseen.
std::set<std::string> Known(std::string_view kind) {
  static const json::value known = json::parse(
      ReadFile(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "template_differences.json"));
  std::set<std::string> out;
  for (const auto& [source, reason] : known.at(kind).as_object()) {
    EXPECT_FALSE(reason.as_string().empty()) << "no reason for " << source;
    out.emplace(source);
  }
  return out;
}

TEST(TemplateConformanceTest, SnippetsRenderAsJinja2RendersThem) {
  const Value shared = ToValue(Goldens().at("variables"));
  const std::set<std::string> known = Known("snippets");
  for (const json::value& item : Goldens().at("snippets").as_array()) {
    const json::object& golden = item.as_object();
    const std::string source(golden.at("source").as_string());
    const json::value* own = golden.if_contains("variables");
    const std::string difference = Difference(
        golden, RenderSource(source, own != nullptr ? ToValue(*own) : shared, AtGoldenTime()));
    EXPECT_EQ(!difference.empty(), known.contains(source))
        << "SNIPPET " << json::serialize(json::value(source)) << "\n"
        << difference;
  }
}

std::filesystem::path SharedTemplates() {
  const char* given = std::getenv("HOLMES_SHARED_DIR");
  const std::filesystem::path shared =
      given != nullptr ? given : std::filesystem::path(HOLMES_SOURCE_DIR) / "../shared";
  return shared / "data" / "templates";
}

TEST(TemplateConformanceTest, PublicModelsTemplatesRenderAsJinja2RendersThem) {
  if (!std::filesystem::exists(SharedTemplates()))
    GTEST_SKIP() << "no folder of public templates at " << SharedTemplates();
  const std::set<std::string> known = Known("shared");
  for (const json::value& item : Goldens().at("shared").as_array()) {
    const json::object& golden = item.as_object();
    const std::string name(golden.at("template").as_string());
    const std::string input(golden.at("input").as_string());
    json::object variables = Goldens().at("tokens").as_object();
    for (const auto& [key, value] : Goldens().at("inputs").as_object().at(input).as_object())
      variables[key] = value;
    const std::string difference = Difference(
        golden,
        RenderSource(ReadFile(SharedTemplates() / name), ToValue(variables), AtGoldenTime()));
    EXPECT_EQ(!difference.empty(), known.contains(name + " " + input))
        << "SHARED " << json::serialize(json::value(name + " " + input)) << "\n"
        << difference;
  }
}

TEST(TemplateConformanceTest, ThreadsShareATemplate) {
  const auto parsed = Template::Parse(
      "{% set ns = namespace(c=0) %}{% for i in range(n) %}{% set ns.c = ns.c + i %}{% endfor %}{{ "
      "ns.c }}");
  ASSERT_TRUE(parsed.ok());
  std::vector<std::string> outputs(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      outputs[static_cast<std::size_t>(t)] =
          (*parsed)->Render(Dict{{"n", Value(100 + t)}}, {}).value_or("error");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outputs, (std::vector<std::string>{"4950", "5050", "5151", "5253"}));
}

StatusCode Code(std::string source, const RenderOptions& options = {}) {
  return RenderSource(std::move(source), Dict{}, options).status().code();
}

TEST(TemplateLimitTest, StepsAreCounted) {
  const std::string loops =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor "
      "%}{% endfor %}{% endfor %}";
  EXPECT_EQ(Code(loops, {.max_steps = 100'000}), StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% for a in range(10) %}x{% endfor %}", {.max_steps = 100'000}), StatusCode::kOk);
}

TEST(TemplateLimitTest, OutputIsBounded) {
  const RenderOptions small = {.max_output_bytes = 1000};
  EXPECT_EQ(Code("{% for a in range(1001) %}x{% endfor %}", small), StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% for a in range(1000) %}x{% endfor %}", small), StatusCode::kOk);
  EXPECT_EQ(Code("{{ 'x' * 1000000000000 }}", small), StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% set a = 'x' * 1001 %}", small), StatusCode::kResourceExhausted);
}

TEST(TemplateLimitTest, NoTextOnTheWayOutgrowsTheLimit) {
  const RenderOptions small = {.max_output_bytes = 10'000, .max_steps = 100'000};
  const std::string grow = "{% set ns = namespace(s='x', l=[1]) %}{% for i in range(64) %}";
  for (const std::string& step :
       {std::string("{% set ns.s = ns.s + ns.s %}"),
        std::string("{% set ns.s = ns.s ~ ns.s %}"),
        std::string("{% set ns.s = ns.s | replace('x', 'xx') %}"),
        std::string("{% set ns.s = ns.s.replace('', 'xx') %}"),
        std::string("{% set ns.l = ns.l + ns.l %}"),
        std::string("{% set ns.l = [ns.l, ns.l] %}{{ ns.l }}"),
        std::string("{% set ns.l = [ns.l, ns.l] %}{% set x = ns.l | tojson %}"),
        std::string("{% set ns.l = [ns.l, ns.l] %}{% set x = ns.l | string %}"),
        std::string("{% set ns.l = [ns.l, ns.l] %}{% set x = ns.l == ns.l %}"),
        std::string("{% set ns.s = 'xx'.join(ns.s) ~ 'x' %}"),
        std::string("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}")}) {
    EXPECT_EQ(Code(grow + step + "{% endfor %}", small), StatusCode::kResourceExhausted) << step;
  }
  EXPECT_NE(Code("{{ '%999999999d' % 1 }}", small), StatusCode::kOk);
  // Widths and precisions of formats.
  for (const std::string source :
       {"{{ '%*d' % (999999999, 1) }}",
        "{{ '%.999999999f' % 1 }}",
        "{{ '%99999999999999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 999999999) }}",
        "{{ '{:.999999999e}'.format(1.5) }}",
        "{{ '%99999s' | format('a') }}",
        "{{ 'x'.center(999999999) }}",
        "{{ 'x'.zfill(999999999) }}",
        "{{ '\\t\\t'.expandtabs(9999) }}",
        "{{ [1] | batch(999999999, 0) }}",
        "{{ [1] | slice(999999999) }}",
        "{{ 'x' | center(999999999) }}",
        "{{ 'a' * 10 ** 9 }}",
        "{% for i in range(2000) %}{% set c = cycler(1) %}{% endfor %}"}) {
    EXPECT_EQ(Code(source, small), StatusCode::kResourceExhausted) << source;
  }
  EXPECT_NE(Code("{{ 'x' | indent(999999999, true) }}", small), StatusCode::kOk);
  EXPECT_NE(Code("{{ [1] | tojson(indent=999999999) }}", small), StatusCode::kOk);
  EXPECT_NE(Code("{{ range(999999999) | list }}", small), StatusCode::kOk);
}

TEST(TemplateLimitTest, RecursionIsBounded) {
  EXPECT_EQ(Code("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
            StatusCode::kResourceExhausted);
  EXPECT_NE(Code("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns.x }}"), StatusCode::kInternal);
  EXPECT_NE(Code("{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] "
                 "%}{% endfor %}{{ ns.l }}"),
            StatusCode::kOk);
}

std::string Repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(TemplateLimitTest, NestingOfTheSourceIsBounded) {
  const int n = 20'000;
  for (const std::string& source : {"{{ " + Repeated("(", n) + "1" + Repeated(")", n) + " }}",
                                    "{{ " + Repeated("[", n) + Repeated("]", n) + " }}",
                                    "{{ " + Repeated("-", n) + "1 }}",
                                    "{{ " + Repeated("not ", n) + "1 }}",
                                    Repeated("{% if 1 %}", n) + Repeated("{% endif %}", n),
                                    Repeated("{% for a in b %}", n) + Repeated("{% endfor %}", n),
                                    "{{ a" + Repeated("[a", n) + Repeated("]", n) + " }}",
                                    "{{ " + Repeated("1 if 1 else ", n) + "1 }}",
                                    "{{ " + Repeated("{1:", n) + "1" + Repeated("}", n) + " }}",
                                    "{{ " + Repeated("f(", n) + Repeated(")", n) + " }}",
                                    "{{ 1" + Repeated(" is eq (1", n) + Repeated(")", n) + " }}"}) {
    EXPECT_EQ(Template::Parse(source).status().code(), StatusCode::kInvalidArgument)
        << source.substr(0, 40);
  }
}

TEST(TemplateLimitTest, LongChainsAreNoTrouble) {
  const int n = 20'000;  // left-deep trees: 1 + 1 + 1 ..., a.b.b.b ..., x | string | string ...
  for (const std::string& source : {"{{ 1" + Repeated(" + 1", n) + " }}",
                                    "{{ a" + Repeated(".b", n) + " }}",
                                    "{{ 1" + Repeated(" | string", n) + " }}",
                                    "{{ 1" + Repeated(" ~ 1", n) + " }}",
                                    "{{ 1" + Repeated(" and 1", n) + " }}",
                                    "{{ a" + Repeated("[0]", n) + " }}",
                                    "{{ a" + Repeated("()", n) + " }}",
                                    "{{ 1" + Repeated(" ** 1", n) + " }}",
                                    "{{ 1" + Repeated(" is defined", n) + " }}",
                                    "{% if 1 %}" + Repeated("{% elif 1 %}", n) + "{% endif %}",
                                    "{{ 1" + Repeated(" if 1", n) + " }}"}) {
    const auto result = RenderSource(source, Dict{});  // an answer or a refusal, no crash
    EXPECT_NE(result.status().code(), StatusCode::kInternal) << source.substr(0, 40);
  }
}

TEST(TemplateLimitTest, LongSourceIsRefused) {
  EXPECT_FALSE(Template::Parse(std::string(Template::kMaxSourceBytes + 1, 'x')).ok());
  EXPECT_TRUE(Template::Parse(std::string(Template::kMaxSourceBytes, 'x')).ok());
}

TEST(TemplateErrorTest, ErrorsNameTheLine) {
  EXPECT_NE(Template::Parse("a\nb\n{{ 1 + }}").status().message().find("line 3"),
            std::string_view::npos);
  EXPECT_NE(RenderSource("a\n{{ x.y.z }}", Dict{}).status().message().find("line 2"),
            std::string_view::npos);
  EXPECT_EQ(RenderSource("a\n{{ raise_exception('just this') }}", Dict{}).status().message(),
            "just this");
}

}  // namespace
}  // namespace holmes::text
