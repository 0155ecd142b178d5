/// An HTTPS server with a certificate that is made on the spot.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace holmes::net {

/// Answers each connection's request with "secret" until it is destroyed; one at a time. The
/// certificate signs itself and is for `name` (a subjectAltName such as "IP:127.0.0.1").
class TlsServer {
 public:
  explicit TlsServer(const std::string& name) {
    std::string dir = (std::filesystem::temp_directory_path() / "holmes_tls_XXXXXX").string();
    dir_ = ::mkdtemp(dir.data());
    MakeCertificate(name);
    context_.use_certificate_file(certificate_file(), boost::asio::ssl::context::pem);
    context_.use_private_key_file(key_file(), boost::asio::ssl::context::pem);
    thread_ = std::thread([this] { Run(); });
  }
  ~TlsServer() {
    stopping_ = true;
    boost::system::error_code ignored;
    boost::asio::ip::tcp::socket waker(io_);  // NOLINT: ends the blocking accept
    waker.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
    std::error_code also_ignored;
    std::filesystem::remove_all(dir_, also_ignored);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  std::string url() const {
    return fmt::format("https://127.0.0.1:{}/", acceptor_.local_endpoint().port());
  }
  std::string certificate_file() const { return dir_ + "/certificate.pem"; }
  std::string key_file() const { return dir_ + "/key.pem"; }

 private:
  void MakeCertificate(const std::string& name) const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
    X509* const x509 = certificate.get();
    X509_set_version(x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key.get());
    X509_NAME* const subject = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(subject,
                               "CN",
                               MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("holmes test"),
                               -1,
                               -1,
                               0);
    X509_set_issuer_name(x509, subject);
    for (const auto& [id, value] :
         {std::pair<int, std::string>{NID_basic_constraints, "critical,CA:TRUE"},
          {NID_subject_alt_name, name}}) {
      X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
      ASSERT_NE(extension, nullptr) << value;
      X509_add_ext(x509, extension, -1);
      X509_EXTENSION_free(extension);
    }
    ASSERT_GT(X509_sign(x509, key.get(), EVP_sha256()), 0);
    Write(certificate_file(), [&](std::FILE* file) { return PEM_write_X509(file, x509); });
    Write(key_file(), [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  template <typename Writer>
  static void Write(const std::string& path, Writer writer) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(writer(file), 1);
    std::fclose(file);
  }

  void Run() {
    while (true) {
      boost::system::error_code error;
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(io_, context_);
      acceptor_.accept(stream.lowest_layer(), error);
      if (stopping_) return;
      if (error) continue;
      stream.handshake(boost::asio::ssl::stream_base::server, error);
      if (error) continue;  // a client that does not trust us
      boost::asio::streambuf request;
      boost::asio::read_until(stream, request, "\r\n\r\n", error);
      boost::asio::write(
          stream,
          boost::asio::buffer(std::string("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")),
          error);
      stream.shutdown(error);
    }
  }

  std::string dir_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_server};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace holmes::net
