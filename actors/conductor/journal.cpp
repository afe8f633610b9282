#include "actors/conductor/journal.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <fmt/core.h>
#include <sqlite3.h>

#include <bit>
#include <map>
#include <string>

namespace troupe::actors {

namespace {

/// Requests that have ended and can still be asked for.
constexpr int ended_kept = 4096;

constexpr const char* schema = R"(
  create table if not exists about (key text primary key, value text not null);
  create table if not exists request (
    id integer primary key, wish blob not null, ended blob);
  create index if not exists running on request (id) where ended is null;
  create table if not exists token (
    request integer not null, position integer not null, token integer not null,
    logprob integer not null, digest integer not null, top blob,
    primary key (request, position)) without rowid;
)";

template <class Message>
std::vector<char> to_blob(Message message) {
  std::vector<char> bytes;
  caf::binary_serializer sink{nullptr, bytes};
  check(!sink(message), "a message of ours can be written");
  return bytes;
}

template <class Message>
bool from_blob(const void* data, int bytes, Message& message) {
  caf::binary_deserializer source{
    nullptr, static_cast<const char*>(data), static_cast<std::size_t>(bytes)};
  return !source(message) && source.remaining() == 0;
}

class statement {
public:
  statement(sqlite3* db, const char* text) {
    sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  }

  ~statement() { sqlite3_finalize(handle_); }

  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  statement& bind(int at, std::uint64_t value) {
    sqlite3_bind_int64(handle_, at, static_cast<sqlite3_int64>(value));
    return *this;
  }

  statement& bind(int at, const std::vector<char>& blob) {
    sqlite3_bind_blob(handle_, at, blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
    return *this;
  }

  statement& bind(int at, const std::string& text) {
    sqlite3_bind_text(handle_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }

  /// Whether there is a row. False at the end, and on errors.
  bool row() { return sqlite3_step(handle_) == SQLITE_ROW; }

  /// Runs a statement without rows, and makes it ready for the next time.
  bool run() {
    const bool done = sqlite3_step(handle_) == SQLITE_DONE;
    reset();
    return done;
  }

  void reset() {
    sqlite3_reset(handle_);
    sqlite3_clear_bindings(handle_);
  }

  std::uint64_t number_at(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(handle_, column));
  }

  std::string text_at(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return text == nullptr ? std::string{} : text;
  }

  bool is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

  template <class Message>
  bool read(int column, Message& message) const {
    const auto bytes = sqlite3_column_bytes(handle_, column);
    return from_blob(sqlite3_column_blob(handle_, column), bytes, message);
  }

private:
  sqlite3_stmt* handle_ = nullptr;
};

class sqlite_journal final : public journal {
public:
  explicit sqlite_journal(sqlite3* db, std::string name)
    : db_(db), name_(std::move(name)), begin_(db, "begin immediate"), commit_(db, "commit"),
      add_request_(db, "insert into request (id, wish) values (?, ?)"),
      add_token_(db,
                 "insert or replace into token (request, position, token, logprob, digest, top) "
                 "values (?, ?, ?, ?, ?, ?)"),
      end_request_(db, "update request set ended = ? where id = ?") {}

  result<std::vector<journal_entry>> unfinished() override;
  result<journal_entry> find(request_id id) override;
  result<request_id> last_request() override;
  result<void> begin(request_id id, const generate_request& wish) override;
  result<void> append(const std::vector<committed_token>& given) override;
  result<void> end(const request_end& told) override;

  error failure(std::string_view doing) const {
    return {errc::io_error,
            fmt::format("journal {}: {}: {}", name_, doing, sqlite3_errmsg(db_.get()))};
  }

private:
  struct closer {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); } // waits for statements by itself
  };

  result<journal_entry> read_entry(const statement& row);

  std::unique_ptr<sqlite3, closer> db_;
  std::string name_;
  statement begin_;
  statement commit_;
  statement add_request_;
  statement add_token_;
  statement end_request_;
  std::map<request_id, std::uint64_t> positions_; ///< The next token's, of requests that run.
};

result<journal_entry> sqlite_journal::read_entry(const statement& row) {
  journal_entry entry;
  entry.id = static_cast<request_id>(row.number_at(0));
  if (!row.read(1, entry.wish))
    return error{errc::io_error,
                 fmt::format("journal {}: request {} cannot be read", name_, number(entry.id))};
  if (!row.is_null(2)) {
    entry.end.emplace();
    if (!row.read(2, *entry.end))
      return error{
        errc::io_error,
        fmt::format("journal {}: the end of request {} cannot be read", name_, number(entry.id))};
  }
  statement tokens(
    db_.get(), "select token, logprob, digest, top from token where request = ? order by position");
  tokens.bind(1, number(entry.id));
  while (tokens.row()) {
    committed_token one;
    one.id = entry.id;
    one.token = static_cast<token_id>(tokens.number_at(0));
    one.logprob = std::bit_cast<float>(static_cast<std::uint32_t>(tokens.number_at(1)));
    one.digest = tokens.number_at(2);
    if (!tokens.is_null(3) && !tokens.read(3, one.top))
      return error{
        errc::io_error,
        fmt::format("journal {}: a token of request {} cannot be read", name_, number(entry.id))};
    entry.answer.push_back(one);
  }
  positions_[entry.id] = entry.answer.size();
  return entry;
}

result<std::vector<journal_entry>> sqlite_journal::unfinished() {
  std::vector<journal_entry> all;
  statement rows(db_.get(), "select id, wish, ended from request where ended is null order by id");
  while (rows.row()) {
    auto entry = read_entry(rows);
    if (!entry)
      return entry.error();
    all.push_back(std::move(*entry));
  }
  return all;
}

result<journal_entry> sqlite_journal::find(request_id id) {
  statement row(db_.get(), "select id, wish, ended from request where id = ?");
  row.bind(1, number(id));
  if (!row.row())
    return error{errc::not_found, fmt::format("there is no request {} in the journal", number(id))};
  return read_entry(row);
}

result<request_id> sqlite_journal::last_request() {
  statement newest(db_.get(), "select max(id) from request"); // the newest are never forgotten
  return static_cast<request_id>(newest.row() ? newest.number_at(0) : 0);
}

result<void> sqlite_journal::begin(request_id id, const generate_request& wish) {
  positions_[id] = 0;
  if (!add_request_.bind(1, number(id)).bind(2, to_blob(wish)).run())
    return failure("a request cannot be noted");
  return {};
}

result<void> sqlite_journal::append(const std::vector<committed_token>& given) {
  if (given.empty())
    return {};
  bool written = begin_.run();
  for (const auto& one : given) {
    if (one.ended == sequence_end::failed)
      continue; // it gave no token
    if (!one.top.empty())
      add_token_.bind(6, to_blob(one.top));
    written = written
              && add_token_.bind(1, number(one.id))
                   .bind(2, positions_[one.id]++)
                   .bind(3, std::uint64_t{one.token})
                   .bind(4, std::uint64_t{std::bit_cast<std::uint32_t>(one.logprob)})
                   .bind(5, one.digest)
                   .run();
  }
  written = commit_.run() && written;
  return written ? result<void>{} : failure("tokens cannot be noted");
}

result<void> sqlite_journal::end(const request_end& told) {
  positions_.erase(told.request);
  if (!end_request_.bind(1, to_blob(told)).bind(2, number(told.request)).run())
    return failure("the end of a request cannot be noted");
  if (number(told.request) % 256 != 0)
    return {};
  statement forget_tokens(db_.get(),
                          "delete from token where request in "
                          "(select id from request where ended is not null and id <= ?)");
  statement forget(db_.get(), "delete from request where ended is not null and id <= ?");
  const auto oldest = number(told.request) > ended_kept ? number(told.request) - ended_kept : 0;
  if (!forget_tokens.bind(1, oldest).run() || !forget.bind(1, oldest).run())
    return failure("old requests cannot be forgotten");
  return {};
}

} // namespace

result<std::unique_ptr<journal>> journal::open(const std::filesystem::path& file,
                                               const std::string& identity) {
  sqlite3* db = nullptr;
  const auto opened = sqlite3_open_v2(
    file.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> owner(db, sqlite3_close_v2);
  const auto refuse = [&](std::string_view doing) {
    return error{errc::io_error,
                 fmt::format("journal {} (recovery.journal): {}: {}",
                             file.string(),
                             doing,
                             db == nullptr ? "out of memory" : sqlite3_errmsg(db))};
  };
  if (opened != SQLITE_OK)
    return refuse("it cannot be opened");
  // One process writes. What the system has taken survives that process; power may go, see above.
  for (const auto* setting : {"pragma locking_mode = exclusive",
                              "pragma journal_mode = wal",
                              "pragma synchronous = off",
                              schema})
    if (sqlite3_exec(db, setting, nullptr, nullptr, nullptr) != SQLITE_OK)
      return refuse("it cannot be used");
  {
    statement known(db, "select value from about where key = 'identity'");
    if (known.row()) {
      if (const auto found = known.text_at(0); found != identity)
        return error{errc::mismatch,
                     fmt::format("journal {} (recovery.journal) belongs to another model or "
                                 "protocol: {}, not {}; move it away, or name another file",
                                 file.string(),
                                 found,
                                 identity)};
    } else {
      statement note(db, "insert into about (key, value) values ('identity', ?)");
      if (!note.bind(1, identity).run())
        return refuse("it cannot be written");
    }
  }
  return std::unique_ptr<journal>(std::make_unique<sqlite_journal>(owner.release(), file.string()));
}

} // namespace troupe::actors
