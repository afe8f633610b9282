#pragma once
// What a node shows to prove that it belongs to the cluster, as files for mutual TLS.
//
// Two ways: certificates of the cluster's own authority, or a secret that all nodes share. From a
// secret every node derives the same Ed25519 key and the same self-signed certificate, which is its
// certificate and its authority at once; so only holders of the secret finish a handshake. They
// live in memory files (memfd) that no other user can open and that vanish with the process.

#include "config/result.hpp"
#include "config/settings.hpp"

#include <string>

namespace troupe::actors {

/// A file that exists only in this process' memory.
class memory_file {
public:
  /// `name` shows up in /proc only. Error: io_error.
  static result<memory_file> make(const char* name, const std::string& content);

  memory_file() = default;
  memory_file(memory_file&& other) noexcept;
  memory_file& operator=(memory_file&& other) noexcept;
  ~memory_file();

  /// A path that this process can open any number of times.
  std::string path() const;

private:
  int descriptor_ = -1;
};

/// Owns its memory files: keep it as long as connections are made, each of which reads them.
class credentials {
public:
  /// Reads what [security] names and proves that it fits together. Neither a secret nor
  /// certificates: no TLS. Errors point at the key of the cluster file: a file that cannot be read
  /// or is not PEM, a key that belongs to another certificate or asks for a passphrase, a
  /// certificate that the authority did not sign or that is out of date, a secret below 16 bytes, a
  /// secret beside certificates (which of the two would count?).
  static result<credentials> load(const cluster_settings& settings);

  bool secured() const noexcept { return !certificate_.empty(); }

  /// Paths of PEM files; empty when not secured.
  const std::string& certificate() const noexcept { return certificate_; }

  const std::string& key() const noexcept { return key_; }

  const std::string& authority() const noexcept { return authority_; }

private:
  std::string certificate_;
  std::string key_;
  std::string authority_;
  memory_file certificate_file_;
  memory_file key_file_;
};

/// The PEM texts that every holder of `secret` derives alike; blanks at its end do not count.
/// The key goes through scrypt (RFC 7914): whoever connects sees the certificate, and must not be
/// able to guess a weak secret from it at the speed of a plain hash. Takes some 50 ms.
struct derived_identity {
  std::string certificate;
  std::string key;
};

result<derived_identity> derive_identity(std::string secret);

} // namespace troupe::actors
