// Pieces of a report's page. Everything given as text is escaped here (chart/svg.h's markup()).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/report/chart/svg.h"

namespace nibble {

struct HtmlRow {
  std::vector<std::string> cells;  // text
  std::string swatch = {};         // class of a patch of colour before the first cell
  bool marked = false;
};

struct HtmlTable {
  std::string caption;
  std::vector<std::string> head;
  std::vector<HtmlRow> rows = {};
};

// First cells are headers of their rows; columns of numbers are set to the right. Scrolls by itself where it is too
// wide. Empty without rows.
std::string html_table(const HtmlTable& table);

// <section> with a heading; empty if `body`, which is markup already, is.
std::string html_section(std::string_view id, std::string_view heading, const std::string& body);
std::string html_paragraph(std::string_view text);
// A picture, a key of its colours (markup) and its explanation; empty if there is no picture.
std::string html_figure(const std::string& svg, std::string_view caption, const std::string& key = "");
// Pieces side by side where there is room.
std::string html_beside(const std::string& pieces);
// Terms and what they are: text.
std::string html_facts(std::string_view css, const std::vector<std::pair<std::string, std::string>>& facts);
// The meaning of colours: class and name.
std::string html_key(const std::vector<std::pair<std::string, std::string>>& colours);
std::string html_list(const std::vector<std::string>& items);

// The whole page around its content, which is markup already: one file that needs and runs nothing from elsewhere. Good
// XML, too.
std::string html_page(std::string_view title, const std::string& content);

}  // namespace nibble
