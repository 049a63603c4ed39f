#include "nibble/testing/markup.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace nibble::testing {
namespace {

class MarkupReader {
 public:
  explicit MarkupReader(std::string_view text) : text_(text) {}

  std::vector<MarkupElement> run() {
    take("<!DOCTYPE html>\n");
    while (at_ < text_.size()) {
      if (!take("<")) {
        words();
      } else if (take("/")) {
        close();
      } else {
        open();
      }
    }
    check(open_.empty(), "something is not closed");
    return std::move(elements_);
  }

 private:
  void check(bool good, const char* what) const {
    if (!good) throw std::runtime_error(std::string(what) + " at " + std::string(text_.substr(at_, 60)));
  }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  std::string name() {
    const size_t end = std::min(
        text_.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", at_), text_.size());
    check(end > at_, "no name");
    std::string found(text_.substr(at_, end - at_));
    at_ = end;
    return found;
  }
  // Up to `stop`, in which nothing may look like markup.
  std::string plain(char stop) {
    const size_t end = text_.find(stop, at_);
    check(end != std::string_view::npos || stop == '<', "no end");
    std::string found(text_.substr(at_, std::min(end, text_.size()) - at_));
    for (size_t i = found.find('&'); i != std::string::npos; i = found.find('&', i + 1)) {
      const std::string entity = found.substr(i, found.find(';', i) - i + 1);
      static const std::set<std::string> kEntities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      check(kEntities.contains(entity), "bad entity");
    }
    check(stop == '<' || found.find('<') == std::string::npos, "a tag in an attribute");
    at_ += found.size();
    return found;
  }
  void words() {
    const std::string found = plain('<');
    if (!open_.empty()) elements_[open_.back()].text += found;
  }
  void open() {
    MarkupElement element{name(), {}, {}};
    while (take(" ")) {
      const std::string key = name();
      check(take("=\""), "no value");
      check(element.attributes.emplace(key, plain('"')).second, "an attribute twice");
      check(take("\""), "no quote");
      if (key == "id") check(ids_.insert(element.attributes[key]).second, "an id twice");
    }
    const bool empty = take("/");
    check(take(">"), "no end of a tag");
    elements_.push_back(std::move(element));
    if (!empty) open_.push_back(elements_.size() - 1);
  }
  void close() {
    const std::string which = name();
    check(!open_.empty() && elements_[open_.back()].name == which && take(">"), "closes something else");
    open_.pop_back();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<MarkupElement> elements_;
  std::vector<size_t> open_;
  std::set<std::string> ids_;
};

}  // namespace

std::vector<MarkupElement> parse_markup(std::string_view text) { return MarkupReader(text).run(); }

std::vector<MarkupElement> with_class(const std::vector<MarkupElement>& elements, std::string_view name,
                                      std::string_view word) {
  std::vector<MarkupElement> found;
  for (const MarkupElement& element : elements) {
    const auto css = element.attributes.find("class");
    if (element.name != name || css == element.attributes.end()) continue;
    if ((" " + css->second + " ").find(" " + std::string(word) + " ") != std::string::npos) found.push_back(element);
  }
  return found;
}

}  // namespace nibble::testing
