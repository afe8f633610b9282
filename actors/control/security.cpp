#include "actors/control/security.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace troupe::actors {

namespace {

constexpr std::size_t least_secret_bytes = 16;
constexpr std::string_view salt = "troupe cluster identity 1"; // Another one is another cluster.

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* what) const {
    Free(what);
  }
};

using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using bio_ptr = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using context_ptr = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;
using store_context_ptr = std::unique_ptr<X509_STORE_CTX, freed_by<X509_STORE_CTX_free>>;

// The innermost reason of the library's last failure; empties its queue.
std::string last_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown reason";
}

error broken(std::string_view what) {
  return {errc::io_error, fmt::format("OpenSSL: {}: {}", what, last_reason())};
}

template <class Write>
std::string to_pem(Write write) {
  const bio_ptr memory(BIO_new(BIO_s_mem()));
  if (!memory || write(memory.get()) != 1)
    return {};
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

bool add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>> made(
    X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return made && X509_add_ext(certificate, made.get(), -1) == 1;
}

// Every field is fixed and Ed25519 signs without randomness: the same key gives the same bytes on
// every host, which verification needs, since the certificate is its own authority.
certificate_ptr self_signed(EVP_PKEY* key) {
  certificate_ptr made(X509_new());
  if (!made || X509_set_version(made.get(), X509_VERSION_3) != 1
      || ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1) != 1
      || ASN1_TIME_set_string_X509(X509_getm_notBefore(made.get()), "20000101000000Z") != 1
      || ASN1_TIME_set_string_X509(X509_getm_notAfter(made.get()), "99991231235959Z") != 1
      || X509_set_pubkey(made.get(), key) != 1)
    return nullptr;
  X509_NAME* name = X509_get_subject_name(made.get());
  const auto* text = reinterpret_cast<const unsigned char*>("troupe cluster");
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) != 1
      || X509_set_issuer_name(made.get(), name) != 1
      || !add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE")
      || X509_sign(made.get(), key, nullptr) == 0)
    return nullptr;
  return made;
}

// Never asks on a terminal: a node has none.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

error at(const cluster_settings& settings, std::string_view key, std::string what) {
  return {errc::invalid_config, settings.point_at(fmt::format("security.{}", key), what)};
}

result<void> check_authority(const cluster_settings& settings, SSL_CTX* context) {
  const auto& file = settings.security.authority;
  if (SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1)
    return at(settings,
              "authority",
              fmt::format("{}: no certificates in PEM form: {}", file.string(), last_reason()));
  const store_context_ptr store(X509_STORE_CTX_new());
  if (!store
      || X509_STORE_CTX_init(
           store.get(), SSL_CTX_get_cert_store(context), SSL_CTX_get0_certificate(context), nullptr)
           != 1)
    return broken("cannot verify the certificate");
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  X509_STORE_CTX_set0_untrusted(store.get(), chain);
  if (X509_verify_cert(store.get()) == 1)
    return {};
  const int why = X509_STORE_CTX_get_error(store.get());
  ERR_clear_error();
  return at(settings,
            "certificate",
            fmt::format("{} is not good for the authority {}: {}",
                        settings.security.certificate.string(),
                        file.string(),
                        X509_verify_cert_error_string(why)));
}

// What the actor framework will do with the files for each connection, done once with clear words:
// there, a failure is an exception on a thread of its own.
result<void> check_certificates(const cluster_settings& settings) {
  const auto& security = settings.security;
  const context_ptr context(SSL_CTX_new(TLS_method()));
  if (!context)
    return broken("cannot make a context");
  bool asked = false;
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), &asked);
  if (SSL_CTX_use_certificate_chain_file(context.get(), security.certificate.c_str()) != 1)
    return at(settings,
              "certificate",
              fmt::format("{}: no certificate in PEM form: {}",
                          security.certificate.string(),
                          last_reason()));
  if (SSL_CTX_use_PrivateKey_file(context.get(), security.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const auto reason = last_reason();
    if (asked)
      return at(
        settings,
        "key",
        fmt::format("{} asks for a passphrase; a node cannot give one", security.key.string()));
    return at(settings,
              "key",
              fmt::format("{}: no private key for certificate {}: {}",
                          security.key.string(),
                          security.certificate.string(),
                          reason));
  }
  if (SSL_CTX_check_private_key(context.get()) != 1)
    return at(settings,
              "key",
              fmt::format("{} does not belong to certificate {}: {}",
                          security.key.string(),
                          security.certificate.string(),
                          last_reason()));
  return check_authority(settings, context.get());
}

result<std::string> read_secret(const cluster_settings& settings) {
  const auto& file = settings.security.secret_file;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in)
    return at(settings,
              "secret_file",
              fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  return content.str();
}

} // namespace

result<memory_file> memory_file::make(const char* name, const std::string& content) {
  memory_file made;
  made.descriptor_ = ::memfd_create(name, MFD_CLOEXEC);
  if (made.descriptor_ < 0)
    return error{errc::io_error,
                 fmt::format("cannot make a memory file: {}", std::strerror(errno))};
  const auto written = ::write(made.descriptor_, content.data(), content.size());
  if (written != static_cast<ssize_t>(content.size()))
    return error{errc::io_error,
                 fmt::format("cannot fill a memory file: {}", std::strerror(errno))};
  return made;
}

memory_file::memory_file(memory_file&& other) noexcept
  : descriptor_(std::exchange(other.descriptor_, -1)) {}

memory_file& memory_file::operator=(memory_file&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

memory_file::~memory_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

std::string memory_file::path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

result<derived_identity> derive_identity(std::string secret) {
  while (!secret.empty() && std::strchr(" \t\r\n", secret.back()) != nullptr)
    secret.pop_back();
  if (secret.size() < least_secret_bytes)
    return error{errc::invalid_config,
                 fmt::format("a secret of {} bytes; at least {} would work, such as: "
                             "head -c 32 /dev/urandom | base64",
                             secret.size(),
                             least_secret_bytes)};
  std::array<unsigned char, 32> seed{};
  const auto* salt_bytes = reinterpret_cast<const unsigned char*>(salt.data());
  if (EVP_PBE_scrypt(secret.data(),
                     secret.size(),
                     salt_bytes,
                     salt.size(),
                     1 << 14,
                     8,
                     1,
                     std::uint64_t{64} << 20,
                     seed.data(),
                     seed.size())
      != 1)
    return broken("scrypt");
  const key_ptr key(
    EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  OPENSSL_cleanse(seed.data(), seed.size());
  OPENSSL_cleanse(secret.data(), secret.size());
  if (!key)
    return broken("cannot make an Ed25519 key");
  const auto certificate = self_signed(key.get());
  if (!certificate)
    return broken("cannot make a certificate");
  derived_identity made;
  made.certificate = to_pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
  made.key = to_pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (made.certificate.empty() || made.key.empty())
    return broken("cannot write PEM");
  return made;
}

result<credentials> credentials::load(const cluster_settings& settings) {
  const auto& security = settings.security;
  credentials made;
  if (security.has_secret() && security.has_certificates())
    return at(settings, "secret_file", "a secret and certificates: only one of them can count");
  if (security.has_certificates()) {
    if (auto good = check_certificates(settings); !good)
      return good.error();
    made.certificate_ = security.certificate;
    made.key_ = security.key;
    made.authority_ = security.authority;
    return made;
  }
  if (!security.has_secret())
    return made;
  auto secret = read_secret(settings);
  if (!secret)
    return secret.error();
  auto identity = derive_identity(std::move(*secret));
  if (!identity)
    return at(settings,
              "secret_file",
              fmt::format("{}: {}", security.secret_file.string(), identity.error().what));
  auto certificate = memory_file::make("troupe-certificate", identity->certificate);
  auto key = memory_file::make("troupe-key", identity->key);
  OPENSSL_cleanse(identity->key.data(), identity->key.size());
  if (!certificate || !key)
    return !certificate ? certificate.error() : key.error();
  made.certificate_file_ = std::move(*certificate);
  made.key_file_ = std::move(*key);
  made.certificate_ = made.authority_ = made.certificate_file_.path();
  made.key_ = made.key_file_.path();
  return made;
}

} // namespace troupe::actors
