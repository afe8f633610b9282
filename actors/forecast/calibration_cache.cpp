// The kept figures (actors/forecast/calibration.hpp), apart from the measuring: JSON is a heavy
// header.
#include "actors/forecast/calibration.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace troupe::actors {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr int layout = 1; ///< Of the file.

ordered_json key_json(const calibration_key& key) {
  return {{"layout", layout},
          {"processor", key.processor},
          {"instruction_set", key.instruction_set},
          {"version", key.version},
          {"cores", key.cores},
          {"dtype", to_string(key.hold)}};
}

fs::path file_of(const fs::path& folder, const calibration_key& key) {
  const auto text = key_json(key).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return folder / fmt::format("speed-{:016x}.json", XXH3_64bits(text.data(), text.size()));
}

ordered_json points_json(const std::vector<product_point>& points) {
  auto list = ordered_json::array();
  for (const auto& point : points)
    list.push_back({point.rows, point.element_s});
  return list;
}

/// Positive and finite, or the whole file is damaged.
double positive(const ordered_json& value) {
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number <= 0)
    throw std::range_error("a figure that no measurement gives");
  return number;
}

std::vector<product_point> read_points(const ordered_json& list) {
  std::vector<product_point> points;
  for (const auto& point : list)
    points.push_back({positive(point.at(0)), positive(point.at(1))});
  if (points.empty())
    throw std::range_error("no point");
  return points;
}

/// Every single figure, under its name.
template <class Speed, class F>
void each_figure(Speed& speed, const F& f) {
  f("measured_bytes", speed.measured_bytes);
  f("unit_s", speed.unit_s);
  f("unit_all_s", speed.unit_all_s);
  f("state_byte_s", speed.state_byte_s);
  f("attention_op_s", speed.attention_op_s);
  f("logit_s", speed.logit_s);
  f("begin_s", speed.begin_s);
  f("awake_hop_s", speed.awake_hop_s);
  f("asleep_hop_s", speed.asleep_hop_s);
}

calibration read_calibration(const ordered_json& whole, const calibration_key& key) {
  if (whole.at("key") != key_json(key))
    throw std::range_error("another key");
  calibration made;
  auto& speed = made.speed;
  speed.name = "measured here";
  speed.cores = key.cores;
  speed.products = {read_points(whole.at("one")), read_points(whole.at("all"))};
  for (const auto& point : whole.at("reads"))
    speed.reads.push_back({positive(point.at(0)), positive(point.at(1))});
  each_figure(speed, [&](const char* name, double& into) { into = positive(whole.at(name)); });
  made.reducing = {positive(whole.at("sum_latency_s")), positive(whole.at("sum_bytes_per_s"))};
  return made;
}

} // namespace

fs::path cache_folder() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && *given == '/')
    return fs::path(given) / "troupe";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache" / "troupe" : fs::path();
}

std::optional<calibration> find_calibration(const fs::path& folder, const calibration_key& key) {
  std::ifstream in(file_of(folder, key), std::ios::binary);
  if (folder.empty() || !in)
    return std::nullopt;
  try {
    return read_calibration(ordered_json::parse(in), key);
  } catch (const std::exception&) {
    return std::nullopt; // Damaged: it is measured again.
  }
}

result<void>
keep_calibration(const fs::path& folder, const calibration_key& key, const calibration& found) {
  if (folder.empty())
    return error{errc::not_found, "neither XDG_CACHE_HOME nor HOME names a folder for the figures"};
  const auto& speed = found.speed;
  ordered_json whole{{"key", key_json(key)},
                     {"one", points_json(speed.products.one)},
                     {"all", points_json(speed.products.all)},
                     {"reads", ordered_json::array()}};
  for (const auto& point : speed.reads)
    whole["reads"].push_back({point.bytes, point.bytes_per_s});
  each_figure(speed, [&](const char* name, double value) { whole[name] = value; });
  whole["sum_latency_s"] = found.reducing.latency_s;
  whole["sum_bytes_per_s"] = found.reducing.bytes_per_s;
  std::error_code code;
  fs::create_directories(folder, code);
  const auto file = file_of(folder, key);
  const fs::path fresh = file.string() + fmt::format(".{}", ::getpid());
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
  out.close();
  if (out)
    fs::rename(fresh, file, code);
  if (out && !code)
    return {};
  std::error_code ignored;
  fs::remove(fresh, ignored);
  return error{errc::io_error,
               fmt::format("the figures of this host cannot be kept in {}", folder.string())};
}

} // namespace troupe::actors
