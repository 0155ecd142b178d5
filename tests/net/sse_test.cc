#include "net/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holmes::net {
namespace {

std::vector<std::string> Read(const std::vector<std::string>& pieces) {
  SseParser parser;
  std::vector<std::string> events;
  for (const std::string& piece : pieces) {
    EXPECT_TRUE(parser
                    .Push(piece,
                          [&](SseEvent&& event) {
                            events.push_back(event.type + "|" + event.id + "|" + event.data);
                            return true;
                          })
                    .ok());
  }
  return events;
}

// Expected values follow the examples and rules of WHATWG HTML, sections 9.2.5 and 9.2.6.
const std::string kStream =
    "\xEF\xBB\xBF: a comment\n\ndata: one\r\n\r\ndata:two\rdata:  three\r\rdata\n\nevent: add\nid: "
    "7\ndata: {\"a\":1}\n\n"
    "unknown: x\ndata\ndata\n\nid: 8\n\nevent: dropped\n\nid\ndata: \xE4\xBD\xA0\r\n\r\ndata: not "
    "ended\n";
const std::vector<std::string> kEvents = {
    "||one", "||two\n three", "||", "add|7|{\"a\":1}", "|7|\n", "||\xE4\xBD\xA0"};

TEST(SseParserTest, FollowsTheSpecification) { EXPECT_EQ(Read({kStream}), kEvents); }

TEST(SseParserTest, CutsDoNotMatter) {
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    EXPECT_EQ(Read({kStream.substr(0, cut), kStream.substr(cut)}), kEvents) << "cut at " << cut;
  }
  std::vector<std::string> bytes;
  for (const char c : kStream) bytes.emplace_back(1, c);
  EXPECT_EQ(Read(bytes), kEvents);
}

TEST(SseParserTest, RefusesAnEndlessLine) {
  SseParser parser(100);
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    status = parser.Push("data: 0123456789", [](SseEvent&&) { return true; });
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(SseParserTest, RefusesAnEndlessEvent) {
  SseParser parser(100);
  Status status;
  for (int i = 0; i < 200 && status.ok(); ++i) {
    status = parser.Push("data: 0123456789\n", [](SseEvent&&) { return true; });
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(SseDataTest, ReadsBackAsOneEvent) {
  EXPECT_EQ(Read({SseData("{\"x\":\"\\n\"}"), SseComment("wait")}),
            std::vector<std::string>{"||{\"x\":\"\\n\"}"});
}

}  // namespace
}  // namespace holmes::net
