#include "actors/cli/svg_canvas.hpp"

#include <fmt/format.h>

namespace troupe::cli {

namespace {

/// XML knows no control characters, and no bytes that are not UTF-8: everything but printable ASCII
/// becomes a question mark. Names are ASCII (config), only paths can be anything.
std::string escaped(std::string_view words) {
  std::string safe;
  for (const char c : words) {
    switch (c) {
    case '&': safe += "&amp;"; break;
    case '<': safe += "&lt;"; break;
    case '>': safe += "&gt;"; break;
    case '"': safe += "&quot;"; break;
    default: safe += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return safe;
}

/// Of all pictures: words, and the page below them, on light and dark pages.
constexpr std::string_view common_style =
  "text { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: "
  "#1f2328; }\n"
  ".title { font-size: 19px; font-weight: 600; }\n"
  ".strong { font-size: 13px; font-weight: 600; }\n"
  ".quiet { fill: #59636e; }\n"
  ".small { font-size: 11px; }\n"
  ".right { text-anchor: end; }\n"
  ".middle { text-anchor: middle; }\n"
  ".page { fill: #ffffff; }\n"
  "@media (prefers-color-scheme: dark) {\n"
  "  text { fill: #e6edf3; }\n"
  "  .quiet { fill: #9aa4af; }\n"
  "  .page { fill: #0d1117; }\n"
  "}\n";

} // namespace

svg_canvas::svg_canvas(double width,
                       double height,
                       std::string_view title,
                       std::string_view style) {
  body_ = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0:g}\" "
                      "height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\">\n<title>{2}</title>\n"
                      "<style>\n{3}{4}</style>\n",
                      width,
                      height,
                      escaped(title),
                      common_style,
                      style);
}

void svg_canvas::rectangle(const svg_box& where, std::string_view classes, double corner) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
                       "height=\"{:.2f}\" rx=\"{:g}\"/>\n",
                       classes,
                       where.x,
                       where.y,
                       where.width,
                       where.height,
                       corner);
}

void svg_canvas::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" "
                       "y2=\"{:.2f}\"/>\n",
                       classes,
                       x1,
                       y1,
                       x2,
                       y2);
}

void svg_canvas::arrow(double x1, double y1, double x2, double y2, std::string_view classes) {
  constexpr double head = 8;
  line(x1, y1, x2 - head, y2, classes);
  body_ += fmt::format("<path class=\"{} head\" d=\"M{:.2f} {:.2f}l{:.2f} {:.2f}v{:.2f}z\"/>\n",
                       classes,
                       x2,
                       y2,
                       -head,
                       -head / 2,
                       head);
}

void svg_canvas::text(double x, double y, std::string_view words, std::string_view classes) {
  body_ += fmt::format(
    "<text class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", classes, x, y, escaped(words));
}

std::string svg_canvas::finish() && {
  return std::move(body_) + "</svg>\n";
}

std::string shortened(std::string_view words, std::size_t length) {
  if (words.size() <= length)
    return std::string(words);
  return std::string(words.substr(0, length - 3)) + "...";
}

} // namespace troupe::cli
