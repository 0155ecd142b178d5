// Laws 1 and 2 of streaming: what is given out piece by piece equals the whole, nothing of a stop
// string is sent, characters stay whole.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/stop_matcher.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

std::string Decode(const std::string& bytes) { return ReplaceInvalidUtf8(bytes); }

TEST(Utf8Test, ReplacesAsPythonDoes) {
  // Values from Python's bytes.decode('utf-8', 'replace').
  const std::string r(kReplacement);
  EXPECT_EQ(Decode("abc"), "abc");
  EXPECT_EQ(Decode("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(Decode("\xC3"), r);
  EXPECT_EQ(Decode("\xC3("), r + "(");
  EXPECT_EQ(Decode("\xE2\x82"), r);
  EXPECT_EQ(Decode("\xE2\x82(\xE2"), r + "(" + r);
  EXPECT_EQ(Decode("\xF0\x9F\x98"), r);
  EXPECT_EQ(Decode("\xF0\x9F\x98x"), r + "x");
  EXPECT_EQ(Decode("\xED\xA0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(Decode("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(Decode("\xC0\xAF"), r + r);
  EXPECT_EQ(Decode("\xFF\xFE"), r + r);
  EXPECT_EQ(Decode("\xE0\x80\x80"), r + r + r);
  EXPECT_EQ(Decode("\x80"), r);
}

std::string RandomBytes(std::mt19937& rng, std::size_t n) {
  static const std::vector<std::string> kParts = {"a",
                                                  "b",
                                                  "ab",
                                                  "\n",
                                                  "\xC3\xA9",
                                                  "\xE4\xBD\xA0",
                                                  "\xF0\x9F\x98\x80",
                                                  "\xF0\x9F",
                                                  "\x98",
                                                  "\xE2\x82",
                                                  "\xFF",
                                                  "\xC3",
                                                  "\x80"};
  std::string out;
  while (out.size() < n)
    out +=
        rng() % 8 == 0 ? std::string(1, static_cast<char>(rng())) : kParts[rng() % kParts.size()];
  return out;
}

TEST(Utf8Test, AStreamCutAnywhereEqualsTheWhole) {
  std::mt19937 rng(1);
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes = RandomBytes(rng, rng() % 40);
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = 1 + rng() % 4;
      const std::string piece = stream.Push(std::string_view(bytes).substr(at, count));
      EXPECT_TRUE(IsValidUtf8(piece));
      out += piece;
      at += count;
    }
    out += stream.Flush();
    ASSERT_EQ(out, Decode(bytes));
  }
}

/// Where the first-ending stop string ends and the longest one there begins, by looking everywhere.
std::size_t NaiveCut(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& s : stops) {
      if (!s.empty() && s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0)
        longest = std::max(longest, s.size());
    }
    if (longest > 0) return end - longest;
  }
  return std::string::npos;
}

/// The longest tail of text that begins a stop string.
std::size_t NaiveHold(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t keep = text.size(); keep > 0; --keep) {
    for (const std::string& s : stops) {
      if (s.size() > keep && s.compare(0, keep, text, text.size() - keep, keep) == 0) return keep;
    }
  }
  return 0;
}

TEST(StopMatcherTest, EqualsLookingAtTheWholeText) {
  std::mt19937 rng(2);
  const auto random_text = [&](std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<char>('a' + rng() % 3));
    return out;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t i = rng() % 4; i > 0; --i) stops.push_back(random_text(rng() % 6));
    const std::string text = random_text(rng() % 30);
    const StopSet set(stops);
    StopMatcher matcher(set);
    std::string out;
    std::string fed;
    const std::size_t cut = NaiveCut(text, stops);
    for (std::size_t at = 0; at < text.size() && !matcher.matched();) {
      const std::size_t count = 1 + rng() % 3;
      out += matcher.Push(std::string_view(text).substr(at, count));
      at += count;
      fed = text.substr(0, at);
      if (!matcher.matched()) {
        ASSERT_EQ(matcher.held_bytes(), NaiveHold(fed, stops)) << "held back longer than needed";
      }
    }
    ASSERT_EQ(matcher.matched().has_value(), cut != std::string::npos);
    if (!matcher.matched()) out += matcher.Flush();
    ASSERT_EQ(out, cut == std::string::npos ? text : text.substr(0, cut));
  }
}

TEST(StopMatcherTest, AStopStringInsideOneTokenCutsIt) {
  const StopSet set({"DE"});
  StopMatcher matcher(set);
  EXPECT_EQ(matcher.Push("xDEF"), "x");
  EXPECT_EQ(matcher.matched(), "DE");
  EXPECT_EQ(matcher.Push("more"), "");
}

}  // namespace
}  // namespace holmes::text
