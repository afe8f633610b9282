#include "config/source_mark.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe {

namespace {

// Longer lines are shown in part, so that the caret stays on the screen.
constexpr std::size_t shown_bytes = 100;
constexpr std::size_t shown_before = 60;

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Columns that a terminal uses for `text`, for all scripts whose letters are one cell wide.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
    std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

// As wide as `text` on the screen, whatever the width of a tab there.
std::string blank(std::string_view text) {
  std::string spaces;
  for (const char c : text)
    if (!continues_character(c))
      spaces += c == '\t' ? '\t' : ' ';
  return spaces;
}

} // namespace

std::string source_mark::place() const {
  return on_command_line() ? fmt::format("{} {}", name, text) : fmt::format("{}:{}", name, line);
}

std::string source_mark::excerpt(std::string_view comment) const {
  const std::string_view whole = text;
  auto begin = std::min(column == 0 ? 0 : column - 1, whole.size());
  auto size = std::min(std::max<std::size_t>(length, 1), whole.size() - begin);
  auto first = begin > shown_before && whole.size() > shown_bytes ? begin - shown_before : 0;
  while (first < begin && continues_character(whole[first]))
    ++first;
  auto last = std::min(whole.size(), first + shown_bytes);
  while (last < whole.size() && continues_character(whole[last]))
    ++last;
  size = std::min(size, last - begin);

  const auto number = on_command_line() ? std::string{} : std::to_string(line);
  const std::string margin(number.size(), ' ');
  const std::string_view before = first > 0 ? "..." : "";
  const std::string_view after = last < whole.size() ? "..." : "";
  const auto carets = std::max<std::size_t>(width(whole.substr(begin, size)), 1);
  return fmt::format(" {0} |\n {1} | {2}{3}{4}\n {0} | {5}{6}{7} {8}",
                     margin,
                     number,
                     before,
                     whole.substr(first, last - first),
                     after,
                     blank(before),
                     blank(whole.substr(first, begin - first)),
                     std::string(carets, '^'),
                     comment);
}

std::string point(const source_mark& mark, std::string_view message, std::string_view comment) {
  return fmt::format("{}: {}\n{}", mark.place(), message, mark.excerpt(comment));
}

void mistakes::add(std::string message) {
  if (messages_.size() < told_at_most)
    messages_.push_back(std::move(message));
  ++count_;
}

error mistakes::to_error() const {
  check(count_ > 0, "an error is made of at least one mistake");
  std::string text;
  for (const auto& message : messages_)
    text += (text.empty() ? "" : "\n") + message;
  if (count_ > messages_.size())
    text += fmt::format("\n... and {} more", count_ - messages_.size());
  return {errc::invalid_config, std::move(text)};
}

} // namespace troupe
