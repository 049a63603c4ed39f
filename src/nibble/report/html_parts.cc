#include "nibble/report/html_parts.h"

#include <fmt/format.h>

#include <cctype>

#include "nibble/report/page_style.h"

namespace nibble {
namespace {

constexpr std::string_view kNone = "–";

bool looks_numeric(std::string_view cell) {
  if (cell.size() > 1 && (cell[0] == '-' || cell[0] == '+')) cell.remove_prefix(1);
  return cell == kNone || (!cell.empty() && std::isdigit(static_cast<unsigned char>(cell[0])) != 0);
}

std::vector<bool> numeric_columns(const HtmlTable& table) {
  std::vector<bool> numeric(table.head.size(), true);
  for (const HtmlRow& row : table.rows) {
    for (size_t c = 0; c < numeric.size(); ++c) numeric[c] = numeric[c] && looks_numeric(row.cells[c]);
  }
  return numeric;
}

// Sentences: a narrow screen must not squeeze them into columns of single words.
const char* room_of(std::string_view cell) {
  return cell.size() > 28 ? " class=\"long\"" : cell.size() > 16 ? " class=\"some\"" : "";
}

std::string row_markup(const HtmlRow& row, const std::vector<bool>& numeric) {
  std::string text = row.marked ? "<tr class=\"marked\">" : "<tr>";
  for (size_t c = 0; c < row.cells.size(); ++c) {
    const char* css = numeric[c] ? " class=\"num\"" : room_of(row.cells[c]);
    if (c > 0) {
      text += fmt::format("<td{}>{}</td>", css, markup(row.cells[c]));
      continue;
    }
    text += fmt::format("<th scope=\"row\"{}>", css);
    if (!row.swatch.empty()) text += fmt::format("<span class=\"swatch {}\"></span>", row.swatch);
    text += markup(row.cells[c]) + "</th>";
  }
  return text + "</tr>\n";
}

}  // namespace

std::string html_table(const HtmlTable& table) {
  if (table.rows.empty()) return "";
  const std::vector<bool> numeric = numeric_columns(table);
  // What scrolls must be within reach of a keyboard.
  std::string text = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table>\n<caption>{0}</caption>\n<thead><tr>",
      markup(table.caption));
  for (size_t c = 0; c < table.head.size(); ++c)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", numeric[c] ? " class=\"num\"" : "", markup(table.head[c]));
  text += "</tr></thead>\n<tbody>\n";
  for (const HtmlRow& row : table.rows) text += row_markup(row, numeric);
  return text + "</tbody>\n</table>\n</div>\n";
}

std::string html_section(std::string_view id, std::string_view heading, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n{2}"
      "</section>\n",
      id, markup(heading), body);
}

std::string html_paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", markup(text)); }

std::string html_figure(const std::string& svg, std::string_view caption, const std::string& key) {
  if (svg.empty()) return "";
  return fmt::format("<figure>\n{}{}<figcaption>{}</figcaption>\n</figure>\n", svg, key, markup(caption));
}

std::string html_beside(const std::string& pieces) {
  return pieces.empty() ? "" : "<div class=\"beside\">\n" + pieces + "</div>\n";
}

std::string html_facts(std::string_view css, const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string text = fmt::format("<dl class=\"{}\">\n", css);
  for (const auto& [term, what] : facts)
    text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", markup(term), markup(what));
  return text + "</dl>\n";
}

std::string html_key(const std::vector<std::pair<std::string, std::string>>& colours) {
  std::string text = "<ul class=\"key\">\n";
  for (const auto& [css, name] : colours)
    text += fmt::format("<li><span class=\"swatch {}\"></span>{}</li>\n", css, markup(name));
  return text + "</ul>\n";
}

std::string html_list(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& item : items) text += "<li>" + markup(item) + "</li>\n";
  return text + "</ul>\n";
}

std::string html_page(std::string_view title, const std::string& content) {
  // The policy lets the browser itself refuse whatever would reach out or run.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}</main>\n</body>\n</html>\n",
      markup(title), page_style(), content);
}

}  // namespace nibble
