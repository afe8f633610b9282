#include "actors/control/security.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>

using namespace troupe;
using namespace troupe::actors;

namespace {

const std::string secret_a = "a secret of the first cluster";
const std::string secret_b = "a secret of another cluster";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A folder with the identities of two secrets as files.
struct two_identities {
  two_identities() {
    for (const auto& [name, secret] : {std::pair{"a", secret_a}, std::pair{"b", secret_b}}) {
      const auto made = derive_identity(secret);
      BOOST_REQUIRE(made);
      write(std::string(name) + ".crt", made->certificate);
      write(std::string(name) + ".key", made->key);
    }
    settings.file = "cluster.toml";
  }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  }

  std::string
  refusal(const std::string& certificate, const std::string& key, const std::string& authority) {
    settings.security.certificate = folder / certificate;
    settings.security.key = folder / key;
    settings.security.authority = folder / authority;
    const auto loaded = credentials::load(settings);
    if (loaded)
      return {};
    BOOST_TEST(static_cast<int>(loaded.error().code) == static_cast<int>(errc::invalid_config));
    return loaded.error().what;
  }

  tests::temporary_folder folder;
  cluster_settings settings;
};

} // namespace

BOOST_AUTO_TEST_CASE(every_holder_of_a_secret_derives_the_same_identity) {
  const auto one = derive_identity(secret_a);
  const auto two = derive_identity(secret_a + "\n"); // As editors and echo leave it.
  const auto other = derive_identity(secret_b);
  BOOST_REQUIRE(one);
  BOOST_REQUIRE(two);
  BOOST_REQUIRE(other);
  BOOST_TEST(one->certificate == two->certificate);
  BOOST_TEST(one->key == two->key);
  BOOST_TEST(one->certificate != other->certificate);
  BOOST_TEST(one->key != other->key);
  BOOST_TEST(holds(one->certificate, "-----BEGIN CERTIFICATE-----"));
  BOOST_TEST(holds(one->key, "-----BEGIN PRIVATE KEY-----"));
}

BOOST_AUTO_TEST_CASE(a_short_secret_is_refused) {
  const auto made = derive_identity("fifteen bytes..  \n\n");
  BOOST_REQUIRE(!made);
  BOOST_TEST(holds(made.error().what, "15 bytes; at least 16"));
}

BOOST_AUTO_TEST_CASE(a_memory_file_can_be_opened_again_and_again) {
  auto file = memory_file::make("test", "some text");
  BOOST_REQUIRE(file);
  BOOST_TEST(content_of(file->path()) == "some text");
  BOOST_TEST(content_of(file->path()) == "some text");
  const memory_file moved = std::move(*file);
  BOOST_TEST(content_of(moved.path()) == "some text");
}

BOOST_FIXTURE_TEST_CASE(nothing_given_means_no_tls, two_identities) {
  const auto loaded = credentials::load(settings);
  BOOST_REQUIRE(loaded);
  BOOST_TEST(!loaded->secured());
}

BOOST_FIXTURE_TEST_CASE(a_secret_becomes_files_in_memory, two_identities) {
  settings.security.secret_file = write("secret", secret_a);
  const auto loaded = credentials::load(settings);
  BOOST_REQUIRE(loaded);
  BOOST_TEST(loaded->secured());
  BOOST_TEST(loaded->certificate() == loaded->authority());
  BOOST_TEST(content_of(loaded->certificate()) == content_of(folder / "a.crt"));
  BOOST_TEST(content_of(loaded->key()) == content_of(folder / "a.key"));
}

BOOST_FIXTURE_TEST_CASE(files_that_fit_together_are_taken, two_identities) {
  BOOST_TEST(refusal("a.crt", "a.key", "a.crt") == "");
}

BOOST_FIXTURE_TEST_CASE(files_that_do_not_fit_together_are_named, two_identities) {
  BOOST_TEST(holds(refusal("a.crt", "b.key", "a.crt"), "b.key"));
  BOOST_TEST(holds(refusal("a.crt", "a.key", "b.crt"), "is not good for the authority"));
  BOOST_TEST(holds(refusal("none.crt", "a.key", "a.crt"), "none.crt"));
  write("text", "not PEM at all");
  BOOST_TEST(holds(refusal("text", "a.key", "a.crt"), "no certificate in PEM form"));
  BOOST_TEST(holds(refusal("a.crt", "text", "a.crt"), "text"));
  BOOST_TEST(holds(refusal("a.crt", "a.key", "text"), "no certificates in PEM form"));
}

BOOST_FIXTURE_TEST_CASE(a_key_with_a_passphrase_is_refused_without_asking, two_identities) {
  // openssl genpkey -algorithm ed25519 -aes-256-cbc -pass pass:troupe
  write("locked.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAibSBLcD4c0bAICCAAw\n"
        "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHJYZREXkYKwQihlo5k/YakEQNA1\n"
        "ZU0+G31XhTVl/GW5dNhf9KUPhxfaIMNxmuNV+KjoRDWgBjXTEBk4fvPqR5mhiDoN\n"
        "5mUTjIWK/+akl0n446M=\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n");
  BOOST_TEST(holds(refusal("a.crt", "locked.key", "a.crt"), "asks for a passphrase"));
}

BOOST_FIXTURE_TEST_CASE(a_secret_beside_certificates_is_refused, two_identities) {
  settings.security.secret_file = write("secret", secret_a);
  BOOST_TEST(holds(refusal("a.crt", "a.key", "a.crt"), "only one of them"));
}

BOOST_FIXTURE_TEST_CASE(a_secret_that_cannot_be_read_is_named, two_identities) {
  settings.security.secret_file = folder / "none";
  const auto loaded = credentials::load(settings);
  BOOST_REQUIRE(!loaded);
  BOOST_TEST(holds(loaded.error().what, (folder / "none").string()));
}
