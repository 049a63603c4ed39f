// A picture inside an HTML page, put together piece by piece. Colours and fonts come from the page by class
// (page_style.h), so that a picture follows light and dark. Numbers are written with at most two decimals: the same
// figures give the same bytes everywhere.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace nibble {

// Text for HTML and SVG: untrusted, so control characters and broken UTF-8 go as printable() says, and what could be
// markup becomes entities. Good for attributes in quotes, too.
std::string markup(std::string_view text);
// "12.5", "0", "-3".
std::string fixed(double number);

struct Spot {
  double x = 0, y = 0;
};

enum class TextAnchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  // The id is unique in the page. Title and description are what somebody hears who does not see the picture.
  Svg(std::string_view id, double width, std::string_view title, std::string_view description);

  // A tip is what a pointer resting on the piece shows.
  void rect(Spot corner, double width, double height, std::string_view css, std::string_view tip = "");
  void line(Spot from, Spot to, std::string_view css);
  void polyline(std::span<const Spot> spots, std::string_view css);
  void polygon(std::span<const Spot> spots, std::string_view css);
  // The kind-th of a few shapes, so that series differ by more than colour.
  void marker(size_t kind, Spot at, std::string_view css, std::string_view tip = "");
  void ring(Spot at, double radius, std::string_view css);
  void text(Spot at, TextAnchor anchor, std::string_view css, std::string_view words);
  // A rectangle of diagonal lines.
  void hatched(Spot corner, double width, double height, std::string_view css, std::string_view tip);

  std::string finish(double height) const;

 private:
  std::string id_, head_, body_;
  double width_;
  bool hatch_ = false;
};

// Room that words take at most, in a chart's letters: fonts are the reader's, this is a wide one.
double text_width(std::string_view words);

}  // namespace nibble
