#include "nibble/report/chart/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nibble/base/error.h"

namespace nibble {
namespace {

std::string points(std::span<const Spot> spots) {
  std::string text;
  for (const Spot& spot : spots) {
    if (!text.empty()) text += ' ';
    text += fixed(spot.x) + "," + fixed(spot.y);
  }
  return text;
}

// The end of an element: closed at once, or around its tip.
std::string closed(const char* element, std::string_view tip) {
  if (tip.empty()) return "/>\n";
  return fmt::format("><title>{}</title></{}>\n", markup(tip), element);
}

}  // namespace

std::string markup(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string fixed(double number) {
  std::string text = fmt::format("{:.2f}", std::isfinite(number) ? number : 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

Svg::Svg(std::string_view id, double width, std::string_view title, std::string_view description)
    : id_(id), width_(width) {
  head_ = fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-desc\">{2}</desc>\n", id, markup(title),
                      markup(description));
}

void Svg::rect(Spot corner, double width, double height, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", css, fixed(corner.x),
                       fixed(corner.y), fixed(width), fixed(height)) +
           closed("rect", tip);
}

void Svg::line(Spot from, Spot to, std::string_view css) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", css, fixed(from.x),
                       fixed(from.y), fixed(to.x), fixed(to.y));
}

void Svg::polyline(std::span<const Spot> spots, std::string_view css) {
  body_ += fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", css, points(spots));
}

void Svg::polygon(std::span<const Spot> spots, std::string_view css) {
  body_ += fmt::format("<polygon class=\"{}\" points=\"{}\"/>\n", css, points(spots));
}

void Svg::marker(size_t kind, Spot at, std::string_view css, std::string_view tip) {
  // Circle, square, diamond, two triangles: about the same area each.
  constexpr std::array<std::array<Spot, 4>, 4> kShapes{{
      {{{-3, -3}, {3, -3}, {3, 3}, {-3, 3}}},
      {{{0, -4.3}, {4.3, 0}, {0, 4.3}, {-4.3, 0}}},
      {{{0, -4.3}, {4.2, 3}, {-4.2, 3}, {0, -4.3}}},
      {{{0, 4.3}, {-4.2, -3}, {4.2, -3}, {0, 4.3}}},
  }};
  if (kind % 5 == 0) {
    body_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3.4\"", css, fixed(at.x), fixed(at.y)) +
             closed("circle", tip);
    return;
  }
  std::array<Spot, 4> shape = kShapes[kind % 5 - 1];
  for (Spot& spot : shape) spot = {at.x + spot.x, at.y + spot.y};
  body_ += fmt::format("<polygon class=\"{}\" points=\"{}\"", css, points(shape)) + closed("polygon", tip);
}

void Svg::ring(Spot at, double radius, std::string_view css) {
  body_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", css, fixed(at.x), fixed(at.y),
                       fixed(radius));
}

void Svg::text(Spot at, TextAnchor anchor, std::string_view css, std::string_view words) {
  const char* where = anchor == TextAnchor::kStart ? "" : anchor == TextAnchor::kMiddle ? " mid" : " end";
  body_ += fmt::format("<text class=\"{}{}\" x=\"{}\" y=\"{}\">{}</text>\n", css, where, fixed(at.x), fixed(at.y),
                       markup(words));
}

void Svg::hatched(Spot corner, double width, double height, std::string_view css, std::string_view tip) {
  hatch_ = true;
  body_ += fmt::format("<rect class=\"{}\" fill=\"url(#{}-hatch)\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", css,
                       id_, fixed(corner.x), fixed(corner.y), fixed(width), fixed(height)) +
           closed("rect", tip);
}

std::string Svg::finish(double height) const {
  std::string text =
      fmt::format("<svg id=\"{0}\" role=\"img\" aria-labelledby=\"{0}-title {0}-desc\" viewBox=\"0 0 {1} {2}\">\n", id_,
                  fixed(width_), fixed(height)) +
      head_;
  if (hatch_) {
    text += fmt::format(
        "<defs><pattern id=\"{}-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect class=\"hatch\" width=\"3\" height=\"6\"/></pattern></defs>\n",
        id_);
  }
  return text + body_ + "</svg>\n";
}

double text_width(std::string_view words) {
  const auto letters =
      std::count_if(words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return 8.4 * static_cast<double>(letters);
}

}  // namespace nibble
