#include "tests/support/rate_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>

namespace troupe::tests {

namespace {

// The picture: rates against the scale on the left, ranks against the one on the right.
constexpr double width = 760;
constexpr double height = 300;
constexpr double left = 64;
constexpr double right = 700;
constexpr double top = 48;
constexpr double bottom = 250;
constexpr double most_ranks = 5;
constexpr auto rate_colour = "#1f5fa8";
constexpr auto rank_colour = "#b4531a";

std::optional<double> number_behind(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\":");
  if (at == std::string::npos)
    return std::nullopt;
  return std::stod(json.substr(at + name.size() + 3));
}

/// 1, 2 or 5 times a power of ten, so that about five of them make `most`.
double step_of_scale(double most) {
  const auto power = std::pow(10.0, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most / (factor * power) <= 6)
      return factor * power;
  return 10 * power;
}

std::string
text_at(double x, double y, const char* anchor, const char* colour, const std::string& words) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="{}">{}</text>)"
                     "\n",
                     x,
                     y,
                     anchor,
                     colour,
                     words);
}

std::string line_between(double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#dddddd"/>)"
                     "\n",
                     x1,
                     y1,
                     x2,
                     y2);
}

std::string polyline(const std::string& points, const char* colour) {
  return fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>)"
                     "\n",
                     points,
                     colour);
}

} // namespace

rate_plot::rate_plot(const cluster& where) : where_(where), watcher_([this] { watch(); }) {}

rate_plot::~rate_plot() {
  end();
}

void rate_plot::end() {
  done_ = true;
  if (watcher_.joinable())
    watcher_.join();
}

void rate_plot::watch() {
  const auto begin = std::chrono::steady_clock::now();
  std::optional<double> first;
  while (!done_) {
    const auto told = where_.run({"status", "FILE", "--json"}, 5);
    const auto tokens = number_behind(told.all(), "answer_tokens");
    if (!tokens)
      continue;
    first = first.value_or(*tokens);
    const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin;
    samples_.push_back({now.count(), *tokens - *first, read_gauges(told.lines).size()});
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
}

/// Tokens a second around each sample: those of half a second, since they come in steps.
std::vector<double> rate_plot::rates() const {
  constexpr double window = 0.25; // seconds to either side
  std::vector<double> made;
  for (std::size_t i = 0, from = 0, to = 0; i < samples_.size(); ++i) {
    while (samples_[from].seconds < samples_[i].seconds - window)
      ++from;
    while (to + 1 < samples_.size() && samples_[to].seconds < samples_[i].seconds + window)
      ++to;
    const auto seconds = samples_[to].seconds - samples_[from].seconds;
    made.push_back(seconds > 0 ? (samples_[to].tokens - samples_[from].tokens) / seconds : 0);
  }
  return made;
}

void rate_plot::write(const std::filesystem::path& file) {
  end();
  const auto found = rates();
  const auto most =
    std::max(1.0, found.empty() ? 0 : *std::max_element(found.begin(), found.end()));
  const auto step = step_of_scale(most);
  const auto full = step * std::ceil(most / step);
  const auto last = samples_.empty() ? 1 : std::max(1.0, samples_.back().seconds);
  const auto x = [&](double seconds) { return left + (right - left) * seconds / last; };
  const auto y = [&](double part) { return bottom - (bottom - top) * part; };
  std::string body;
  for (double value = 0; value <= full + step / 2; value += step) {
    body += line_between(left, y(value / full), right, y(value / full));
    body +=
      text_at(left - 8, y(value / full) + 4, "end", rate_colour, fmt::format("{:.0f}", value));
  }
  for (double seconds = 0; seconds <= last; seconds += step_of_scale(last))
    body += text_at(x(seconds), bottom + 18, "middle", "#555555", fmt::format("{:.0f} s", seconds));
  for (int ranks = 1; ranks < most_ranks; ++ranks)
    body +=
      text_at(right + 8, y(ranks / most_ranks) + 4, "start", rank_colour, std::to_string(ranks));
  std::string rate_points;
  std::string rank_points;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const auto now = x(samples_[i].seconds);
    const auto ranks = [&](std::size_t at) {
      return y(static_cast<double>(samples_[at].ranks) / most_ranks);
    };
    rate_points += fmt::format("{:.1f},{:.1f} ", now, y(found[i] / full));
    rank_points +=
      fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", now, ranks(i > 0 ? i - 1 : 0), now, ranks(i));
  }
  body += polyline(rank_points, rank_colour) + polyline(rate_points, rate_colour);
  body += text_at(left, top - 18, "start", rate_colour, "tokens a second, of all requests");
  body += text_at(right, top - 18, "end", rank_colour, "ranks");
  std::ofstream out(file);
  out << fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" )"
                     R"(font-family="sans-serif" font-size="13">)"
                     "\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
                     width,
                     height,
                     body);
}

} // namespace troupe::tests
