#include "nibble/chat/string_split.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "nibble/chat/string_tools.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

using Piece = std::pair<size_t, size_t>;  // bytes [first, second)

const TextPtr& self_text(const Call& call) { return *call.self.get<TextPtr>(); }

std::vector<Piece> split_at(Run& run, std::string_view text, std::string_view separator, int64_t most) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  for (; most != 0; --most) {
    const std::string_view rest = text.substr(begin);
    // One scan over the text in all, so it is counted once.
    const void* found = memmem(rest.data(), rest.size(), separator.data(), separator.size());
    if (found == nullptr) break;
    const auto at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    pieces.emplace_back(begin, at);
    begin = at + separator.size();
  }
  pieces.emplace_back(begin, text.size());
  run.budget.work(text.size());
  run.budget.step(pieces.size() / 4);
  return pieces;
}

std::vector<Piece> rsplit_at(Run& run, std::string_view text, std::string_view separator, int64_t most) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string separator_backwards(separator.rbegin(), separator.rend());
  std::vector<Piece> pieces = split_at(run, backwards, separator_backwards, most);
  for (auto& [begin, end] : pieces) std::tie(begin, end) = Piece{text.size() - end, text.size() - begin};
  std::ranges::reverse(pieces);
  return pieces;
}

std::vector<Piece> split_words(Run& run, std::string_view text, int64_t most) {
  std::vector<Piece> pieces;
  run.budget.step(text.size() / 16);
  size_t at = 0;
  while (at < text.size()) {
    size_t behind = at;
    if (is_space(next_code_point(text, &behind))) {
      at = behind;
      continue;
    }
    const size_t begin = at;
    if (most-- == 0) {
      pieces.emplace_back(begin, text.size());
      break;
    }
    while (at < text.size()) {
      behind = at;
      if (is_space(next_code_point(text, &behind))) break;
      at = behind;
    }
    pieces.emplace_back(begin, at);
  }
  return pieces;
}

std::vector<Piece> rsplit_words(Run& run, std::string_view text, int64_t most) {
  std::vector<Piece> words = split_words(run, text, -1);
  if (most < 0 || words.size() <= static_cast<size_t>(most) + 1) return words;
  const size_t joined = words.size() - static_cast<size_t>(most);
  std::vector<Piece> pieces = {{0, words[joined - 1].second}};
  pieces.insert(pieces.end(), words.begin() + static_cast<std::ptrdiff_t>(joined), words.end());
  return pieces;
}

Value made_of(Call& call, const std::vector<Piece>& pieces, List::Kind kind = List::Kind::kList) {
  Values items;
  for (const auto& [begin, end] : pieces) items.push_back(Value{cut(call.run.budget, self_text(call), begin, end)});
  return make_list(call.run.budget, std::move(items), kind);
}

Value split_with(Call& call, std::vector<Piece> (*by_words)(Run&, std::string_view, int64_t),
                 std::vector<Piece> (*by_separator)(Run&, std::string_view, std::string_view, int64_t)) {
  const Text* separator = call.text_or_none(0);
  const int64_t most = call.index(1, -1);
  if (separator == nullptr) return made_of(call, by_words(call.run, self_text(call)->bytes(), most));
  if (separator->size() == 0) fail("empty separator");
  return made_of(call, by_separator(call.run, self_text(call)->bytes(), separator->bytes(), most));
}

Value partition(Call& call, bool from_right) {
  const Text& separator = *call.text(0);
  if (separator.size() == 0) fail("empty separator");
  const TextPtr& text = self_text(call);
  const size_t at = from_right ? rfind_bytes(call.run, text->bytes(), separator.bytes())
                               : find_bytes(call.run, text->bytes(), separator.bytes());
  const size_t size = text->size();
  if (at == std::string_view::npos) {
    const std::vector<Piece> missing =
        from_right ? std::vector<Piece>{{0, 0}, {0, 0}, {0, size}} : std::vector<Piece>{{0, size}, {0, 0}, {0, 0}};
    return made_of(call, missing, List::Kind::kTuple);
  }
  return made_of(call, {{0, at}, {at, at + separator.size()}, {at + separator.size(), size}}, List::Kind::kTuple);
}

}  // namespace

Value string_split(Call& call) { return split_with(call, split_words, split_at); }
Value string_rsplit(Call& call) { return split_with(call, rsplit_words, rsplit_at); }
Value string_partition(Call& call) { return partition(call, false); }
Value string_rpartition(Call& call) { return partition(call, true); }

Value string_splitlines(Call& call) {
  return make_list(call.run.budget, split_lines(call.run, self_text(call), call.flag(0)));
}

}  // namespace nibble::jinja
