/// A server over the engine that says what a test tells it to, and a client for it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "net/raw_client.h"
#include "server/fake_engine.h"
#include "server/server.h"

namespace holmes::server {

namespace json = boost::json;

inline std::chrono::steady_clock::time_point Later() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

/// "<|im_start|>role\ncontent<|im_end|>\n" per message, as ChatML has it.
inline StatusOr<std::string> RenderChatMl(const text::Value& variables) {
  std::string out;
  for (const text::Value& message : variables.Find("messages")->as_list()) {
    const std::string role = message.Find("role")->as_string();
    if (role == "mystery") return base::InvalidArgumentError("roles must be known");
    out += "<|im_start|>" + role + "\n" + message.Find("content")->as_string() + "<|im_end|>\n";
  }
  if (variables.Find("add_generation_prompt")->Truthy()) out += "<|im_start|>assistant\n";
  return out;
}

struct Reply {
  int status = 0;
  std::string head;
  std::string body;
  json::value Json() const { return json::parse(body); }
  std::string Error(const char* field) const {
    const json::value value = Json().at("error").at(field);
    return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
  }
};

/// The body of a chunked answer.
inline std::string Unchunk(std::string_view body) {
  std::string out;
  while (!body.empty()) {
    const std::size_t size =
        std::stoul(std::string(body.substr(0, body.find("\r\n"))), nullptr, 16);
    body.remove_prefix(body.find("\r\n") + 2);
    out += body.substr(0, size);
    body.remove_prefix(std::min(body.size(), size + 2));
  }
  return out;
}

class ServerTest : public testing::Test {
 protected:
  void StartServer(FakeEngine::Script script, ServerOptions options = {}, ServedModel model = {}) {
    engine_ = std::make_unique<FakeEngine>(std::move(script));
    StartServer(std::move(options), std::move(model));
  }
  void StartServer(ServerOptions options = {}, ServedModel model = {}) {
    StartWithoutModel(std::move(options));
    if (!model.render_chat) model.render_chat = RenderChatMl;
    server_->Serve(engine_.get(), std::move(model));
    server_->SetReady(true);
  }
  void StartWithoutModel(ServerOptions options = {}) {
    auto server = Server::Create(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    server_->Start();
  }

  Reply Ask(const std::string& request) {
    const std::string answer = net::RawClient(server_->port()).Exchange(request);
    Reply reply;
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == std::string::npos) return reply;
    reply.status = std::stoi(answer.substr(9, 3));
    reply.head = answer.substr(0, end + 2);
    reply.body = answer.substr(end + 4);
    if (reply.head.find("chunked") != std::string::npos) reply.body = Unchunk(reply.body);
    return reply;
  }
  static std::string PostText(const std::string& path,
                              const std::string& body,
                              const std::string& more = "") {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
        "application/json\r\n{}Content-Length: {}\r\n\r\n{}",
        path,
        more,
        body.size(),
        body);
  }
  Reply Post(const std::string& path, const std::string& body, const std::string& more = "") {
    return Ask(PostText(path, body, more));
  }
  Reply Get(const std::string& path, const std::string& more = "") {
    return Ask(
        fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", path, more));
  }

  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<Server> server_;
};

inline const FakeEngine::Script kHello = [](const auto& running) {
  Say(*running, {"Hel", "", "lo ", "\xE4\xBD\xA0"});
};

inline std::string ChatBody(const std::string& more = "") {
  return R"({"model":"fake","messages":[{"role":"user","content":"hi"}])" + more + "}";
}
inline std::string TextBody(const std::string& prompt, const std::string& more = "") {
  return R"({"model":"fake","prompt":)" + prompt + more + "}";
}

}  // namespace holmes::server
