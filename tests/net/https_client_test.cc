// The client against a real TLS server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_client.h"
#include "net/tls_server.h"

namespace holmes::net {
namespace {

using testing::HasSubstr;

TEST(HttpsClientTest, TrustsTheAuthorityThatItIsGiven) {
  const TlsServer server("IP:127.0.0.1");
  const auto response = Fetch({.url = server.url(), .ca_file = server.certificate_file()});
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "secret");
}

TEST(HttpsClientTest, RefusesACertificateThatNobodyVouchesFor) {
  const TlsServer server("IP:127.0.0.1");
  const auto response = Fetch({.url = server.url()});
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  const std::string message(response.status().message());
  EXPECT_THAT(message, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(message, HasSubstr("is not trusted: self-signed certificate"));
  EXPECT_THAT(message, HasSubstr("SSL_CERT_FILE"));
  // The server is none the worse for it.
  EXPECT_TRUE(Fetch({.url = server.url(), .ca_file = server.certificate_file()}).ok());
}

TEST(HttpsClientTest, RefusesACertificateOfAnotherName) {
  const TlsServer server("IP:10.9.8.7");
  const auto response = Fetch({.url = server.url(), .ca_file = server.certificate_file()});
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("is not trusted"));
}

TEST(HttpsClientTest, ACaFileThatIsNoneIsNamed) {
  const TlsServer server("IP:127.0.0.1");
  for (const std::string& file : {server.key_file(), std::string("/nonexistent.pem")}) {
    const auto response = Fetch({.url = server.url(), .ca_file = file});
    EXPECT_EQ(response.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(response.status().message()), HasSubstr(file));
  }
}

}  // namespace
}  // namespace holmes::net
