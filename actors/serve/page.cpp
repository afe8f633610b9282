#include "actors/serve/page.hpp"

#include <openssl/evp.h>

#include <array>
#include <string>

namespace troupe::actors::serve {

namespace {

std::string sha256_base64(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::array<unsigned char, 64> written{}; // 44 characters and a zero
  const auto length = EVP_EncodeBlock(written.data(), digest.data(), static_cast<int>(size));
  return {reinterpret_cast<const char*>(written.data()), static_cast<std::size_t>(length)};
}

/// A source list with the digest of each element of that name: only these run.
std::string digests_of(std::string_view html, const std::string& element) {
  const auto begin = "<" + element + ">";
  const auto end = "</" + element + ">";
  std::string list;
  for (auto at = html.find(begin); at != std::string_view::npos; at = html.find(begin, at)) {
    at += begin.size();
    const auto stop = html.find(end, at);
    list += " 'sha256-" + sha256_base64(html.substr(at, stop - at)) + "'";
    at = stop;
  }
  return list;
}

std::string content_policy() {
  return "default-src 'none'; connect-src 'self'; img-src blob: data:; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'; script-src"
         + digests_of(page_html(), "script") + "; style-src" + digests_of(page_html(), "style");
}

} // namespace

http_response page_answer() {
  static const auto policy = content_policy();
  return {200,
          "text/html; charset=utf-8",
          std::string(page_html()),
          {{"Content-Security-Policy", policy},
           {"Referrer-Policy", "no-referrer"},
           {"Cache-Control", "no-cache"}}};
}

} // namespace troupe::actors::serve
