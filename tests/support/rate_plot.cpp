#include "tests/support/rate_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace troupe::tests {

namespace {

constexpr double width = 720;
constexpr double height = 240;
constexpr double left = 56;
constexpr double bottom = 200;
constexpr double top = 24;
constexpr double right = 700;

std::optional<double> number_behind(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\":");
  if (at == std::string::npos)
    return std::nullopt;
  return std::stod(json.substr(at + name.size() + 3));
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

void rate_plot::write(const std::filesystem::path& file) {
  end();
  std::string rates;
  std::string ranks;
  double fastest = 1;
  double last = 1;
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    const auto& now = samples_[i];
    const auto& before = samples_[i - 1];
    fastest = std::max(fastest, (now.tokens - before.tokens) / (now.seconds - before.seconds));
    last = now.seconds;
  }
  const auto x = [&](double seconds) { return left + (right - left) * seconds / last; };
  const auto y = [&](double part) { return bottom - (bottom - top) * part; };
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    const auto& now = samples_[i];
    const auto& before = samples_[i - 1];
    const auto rate = (now.tokens - before.tokens) / (now.seconds - before.seconds);
    rates += fmt::format("{:.1f},{:.1f} ", x(now.seconds), y(rate / fastest));
    ranks += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ",
                         x(before.seconds),
                         y(static_cast<double>(now.ranks) / 5),
                         x(now.seconds),
                         y(static_cast<double>(now.ranks) / 5));
  }
  std::ofstream out(file);
  out << fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
                     "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#888888\"/>\n",
                     width,
                     height,
                     left,
                     top,
                     bottom,
                     right);
  out << fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#c05020\" stroke-width=\"2\" "
                     "stroke-dasharray=\"5 3\"/>\n",
                     ranks);
  out << fmt::format(
    "<polyline points=\"{}\" fill=\"none\" stroke=\"#2060a0\" stroke-width=\"2\"/>\n", rates);
  for (int rank = 1; rank <= 4; ++rank)
    out << fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#c05020\">{}</text>\n",
                       left - 6,
                       y(rank / 5.0) + 4,
                       rank);
  out << fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#2060a0\">tokens/s (at most {:.0f})</text>\n",
                     left + 8,
                     top - 8,
                     fastest);
  out << fmt::format(
    "<text x=\"{}\" y=\"{}\" fill=\"#c05020\">ranks</text>\n", left + 180, top - 8);
  out << fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f} s</text>\n</svg>\n",
                     right,
                     bottom + 18,
                     last);
}

} // namespace troupe::tests
