// bench_json and its reader (actors/cli/bench/report.hpp), apart: JSON is a heavy header.
#include "actors/cli/bench/report.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

namespace troupe::cli {

using nlohmann::ordered_json;

namespace {

constexpr std::string_view format_name = "troupe bench 1";

ordered_json host_json(const host_description& host) {
  return {{"cpu", host.cpu},
          {"cores", host.cores},
          {"memory_bytes", host.memory_bytes},
          {"instruction_set", host.instruction_set},
          {"system", host.system},
          {"ucx", host.ucx}};
}

ordered_json row_json(const bench_row& row) {
  return {{"part", row.part},
          {"what", row.what},
          {"unit", row.unit},
          {"median", row.found.median},
          {"low", row.found.low},
          {"high", row.found.high},
          {"n", row.found.count},
          {"limited_by", row.limited_by},
          {"limit", row.limit},
          {"fraction", row.fraction},
          {"bytes", row.bytes},
          {"operations", row.operations},
          {"threads", row.threads}};
}

/// Fields of one object of a document; the first that is missing or wrong is the reader's error.
class field_reader {
public:
  field_reader(const ordered_json& from, std::string where, std::optional<error>& failure)
    : from_(from), where_(std::move(where)), failure_(failure) {
    if (!from_.is_object())
      fail("", "an object", &from_);
  }

  void read(const char* key, std::string& into) {
    if (const auto* found = find(key, "a text"); found != nullptr) {
      if (found->is_string())
        into = found->get<std::string>();
      else
        fail(key, "a text", found);
    }
  }

  void read(const char* key, double& into) {
    if (const auto* found = find(key, "a number"); found != nullptr) {
      if (found->is_number())
        into = found->get<double>();
      else
        fail(key, "a number", found);
    }
  }

  template <class Count>
  void read_count(const char* key, Count& into) {
    if (const auto* found = find(key, "a whole number"); found != nullptr) {
      if (found->is_number_unsigned())
        into = found->get<Count>();
      else
        fail(key, "a whole number from 0 on", found);
    }
  }

private:
  const ordered_json* find(const char* key, const char* wanted) {
    if (failure_ || !from_.is_object())
      return nullptr;
    const auto found = from_.find(key);
    if (found != from_.end())
      return &*found;
    fail(key, wanted, nullptr);
    return nullptr;
  }

  void fail(const std::string& key, const std::string& wanted, const ordered_json* found) {
    if (failure_)
      return;
    const auto place = where_ + (key.empty() || where_.empty() ? "" : ".") + key;
    failure_ =
      error{errc::invalid_model,
            fmt::format("{}: {}; {} would work",
                        place.empty() ? "the document" : place,
                        found == nullptr ? std::string("it is missing")
                                         : fmt::format("found {}", found->dump().substr(0, 40)),
                        wanted)};
  }

  const ordered_json& from_;
  std::string where_;
  std::optional<error>& failure_;
};

void read_host(const ordered_json& from, host_description& into, std::optional<error>& failure) {
  field_reader fields(from, "host", failure);
  fields.read("cpu", into.cpu);
  fields.read_count("cores", into.cores);
  fields.read_count("memory_bytes", into.memory_bytes);
  fields.read("instruction_set", into.instruction_set);
  fields.read("system", into.system);
  fields.read("ucx", into.ucx);
}

bench_row read_row(const ordered_json& from, std::size_t index, std::optional<error>& failure) {
  bench_row row;
  field_reader fields(from, fmt::format("rows[{}]", index), failure);
  fields.read("part", row.part);
  fields.read("what", row.what);
  fields.read("unit", row.unit);
  fields.read("median", row.found.median);
  fields.read("low", row.found.low);
  fields.read("high", row.found.high);
  fields.read_count("n", row.found.count);
  fields.read("limited_by", row.limited_by);
  fields.read("limit", row.limit);
  fields.read("fraction", row.fraction);
  fields.read("bytes", row.bytes);
  fields.read("operations", row.operations);
  fields.read_count("threads", row.threads);
  return row;
}

/// "line 3, column 7" of a byte of the text.
std::string place_of(const std::string& text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  const auto line = 1 + std::count(text.begin(), end, '\n');
  const auto begin = std::find(std::make_reverse_iterator(end), text.rend(), '\n');
  return fmt::format("line {}, column {}", line, begin - std::make_reverse_iterator(end));
}

result<ordered_json> parse(const std::string& text) {
  try {
    return ordered_json::parse(text);
  } catch (const ordered_json::parse_error& mistake) {
    return error{errc::invalid_model,
                 fmt::format("{}: no JSON; `troupe bench --json --output FILE` writes what would "
                             "work",
                             place_of(text, mistake.byte))};
  }
}

} // namespace

std::string bench_json(const bench_report& report) {
  auto rows = ordered_json::array();
  for (const auto& row : report.rows)
    rows.push_back(row_json(row));
  const ordered_json whole{{"format", format_name},
                           {"version", report.version},
                           {"measured", report.measured},
                           {"model", report.model},
                           {"held", report.held},
                           {"host", host_json(report.host)},
                           {"rows", std::move(rows)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

result<bench_report> parse_bench_json(const std::string& text, const std::string& name) {
  const auto whole = parse(text);
  if (!whole)
    return with_context(name, whole.error());
  std::optional<error> failure;
  std::string format;
  bench_report report;
  field_reader fields(*whole, "", failure);
  fields.read("format", format);
  if (!failure && format != format_name)
    return error{
      errc::invalid_model,
      fmt::format("{}: format: found \"{}\"; \"{}\" would work", name, format, format_name)};
  fields.read("version", report.version);
  fields.read("measured", report.measured);
  fields.read("model", report.model);
  fields.read("held", report.held);
  if (!failure) {
    const auto host = whole->find("host");
    read_host(host == whole->end() ? ordered_json() : *host, report.host, failure);
  }
  const auto rows = failure ? whole->end() : whole->find("rows");
  if (!failure && (rows == whole->end() || !rows->is_array()))
    failure = error{errc::invalid_model, "rows: a list of rows is missing"};
  for (std::size_t i = 0; !failure && i < rows->size(); ++i)
    report.rows.push_back(read_row((*rows)[i], i, failure));
  if (failure)
    return with_context(name, *failure);
  return report;
}

result<bench_report> read_bench_json(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    return error{errc::not_found, fmt::format("cannot read {}", file.string())};
  return parse_bench_json(text, file.string());
}

} // namespace troupe::cli
