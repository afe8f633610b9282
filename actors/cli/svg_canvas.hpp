#pragma once
// A small SVG document: rectangles, lines and text with classes that a style sheet colours.

#include <string>
#include <string_view>

namespace troupe::cli {

/// Where and how large, in pixels of the picture.
struct svg_box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class svg_canvas {
public:
  /// `title` is what screen readers say; `style` is CSS of further classes than those that all
  /// pictures have: page; for text title, strong, quiet, small, right, middle.
  svg_canvas(double width, double height, std::string_view title, std::string_view style);

  void rectangle(const svg_box& where, std::string_view classes, double corner = 0);
  void line(double x1, double y1, double x2, double y2, std::string_view classes);

  /// A line that ends in an arrow's head.
  void arrow(double x1, double y1, double x2, double y2, std::string_view classes);

  /// `y` is the base line. Any bytes may be in `words`.
  void text(double x, double y, std::string_view words, std::string_view classes);

  /// The whole document; the canvas is used up.
  std::string finish() &&;

private:
  std::string body_;
};

/// At most `length` characters, with an ellipsis where some were left out.
std::string shortened(std::string_view words, std::size_t length);

} // namespace troupe::cli
