#pragma once
// The front door of a cluster: an OpenAI-compatible API, health and tokenizing over HTTP, in the
// head's process. Docs: docs/api.md.

#include "actors/messages.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe::actors::serve {

/// What a server is given at birth. `settings` and the actor system outlive it.
struct server_setup {
  const cluster_settings* settings = nullptr;
  gateway_actor gateway;
  std::shared_ptr<const compute::tokenizer> words;
  std::filesystem::path words_folder; ///< Of tokenizer and chat template.
  std::size_t context = 0;            ///< Tokens of prompt and answer together.
  std::string plan_svg;               ///< The plan as a picture; empty: there is none.
};

class server {
public:
  /// Listens as [serve] says; answers from now on, with 503 while the cluster is not ready. Errors:
  /// invalid_config that points at the key under [serve]: a taken port, a bad certificate, a bad
  /// keys file.
  static result<std::unique_ptr<server>> start(caf::actor_system& system, server_setup setup);

  virtual ~server() = default;

  /// "http://127.0.0.1:8080"
  virtual const std::string& url() const = 0;

  /// Lets running answers end up to `grace`; then nothing of it is left. The destructor stops
  /// without grace.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

} // namespace troupe::actors::serve
