#pragma once
// What the conductor must not forget when its process dies: the requests, the tokens that they were
// given, and how they ended. A SQLite file (https://sqlite.org/fileformat.html, write-ahead log),
// off unless recovery.journal names one. Survives the death of the process at any instruction; not
// meant to survive the loss of power. Owned by the conductor's thread.

#include "actors/conductor/schedule.hpp"
#include "actors/messages/clients.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::actors {

/// A request as the journal knows it.
struct journal_entry {
  request_id id{};
  generate_request wish;
  std::vector<committed_token> answer; ///< In order; `ended` is not kept.
  std::optional<request_end> end;      ///< Set once it has ended.
};

class journal {
public:
  /// Opens or makes the file. `identity`: of the model; a journal of another one is refused
  /// (mismatch), since its tokens mean something else. Other errors: io_error.
  static result<std::unique_ptr<journal>> open(const std::filesystem::path& file,
                                               const std::string& identity);

  virtual ~journal() = default;

  /// The requests that have not ended, by id.
  virtual result<std::vector<journal_entry>> unfinished() = 0;

  /// One request, running or among those that ended last (thousands are kept). Error: not_found.
  virtual result<journal_entry> find(request_id id) = 0;

  /// The highest id that was ever given.
  virtual result<request_id> last_request() = 0;

  virtual result<void> begin(request_id id, const generate_request& wish) = 0;

  /// The tokens of one committed step, together or not at all.
  virtual result<void> append(const std::vector<committed_token>& given) = 0;

  virtual result<void> end(const request_end& told) = 0;
};

} // namespace troupe::actors
