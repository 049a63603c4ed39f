#include "nibble/tokenizer/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

constexpr uint32_t kNoToken = UINT32_MAX;

bool has_type(uint32_t code_point, uint32_t mask) {
  return (U_MASK(u_charType(static_cast<UChar32>(code_point))) & mask) != 0;
}

bool is_space(uint32_t code_point) { return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0; }

// What \w is to the library: it decides whether a token stands alone.
bool is_word(uint32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0 ||
         has_type(code_point, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK);
}

// The character before `at`, which is the beginning of one; 0 bytes at the beginning.
Utf8Step step_before(std::string_view text, size_t at) {
  if (at == 0) return {Utf8State::kCut, 0, 0};
  size_t begin = at - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return next_utf8(text.substr(begin, at - begin));
}

Utf8Step step_after(std::string_view text, size_t at) {
  return at == text.size() ? Utf8Step{Utf8State::kCut, 0, 0} : next_utf8(text.substr(at, 4));
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const Utf8Step before = step_before(text, begin);
  const Utf8Step after = step_after(text, end);
  return (before.bytes == 0 || !is_word(before.code_point)) && (after.bytes == 0 || !is_word(after.code_point));
}

// Bytes [begin, end) of a text with its ranges.
MarkedText slice(const MarkedText& marked, size_t begin, size_t end) {
  MarkedText part;
  part.text = marked.text.substr(begin, end - begin);
  auto range = std::partition_point(marked.trusted.begin(), marked.trusted.end(),
                                    [&](const auto& candidate) { return candidate.end <= begin; });
  for (; range != marked.trusted.end() && range->begin < end; ++range)
    part.trusted.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
  return part;
}

}  // namespace

bool is_control_name(std::string_view name, bool special) {
  // One character cannot be told from a text's.
  if (name.size() <= 1) return false;
  if (special) return true;
  while (!name.empty()) {
    const Utf8Step step = next_utf8(name);
    if (!is_space(step.code_point) && !has_type(step.code_point, U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)) return true;
    name.remove_prefix(step.bytes);
  }
  return false;
}

MarkedText marked_text(const std::vector<TextSpan>& spans) {
  MarkedText marked;
  for (const TextSpan& span : spans) {
    const size_t begin = marked.text.size();
    marked.text += replace_broken_utf8(span.text);
    if (span.may_hold_control_tokens && marked.text.size() > begin)
      marked.trusted.push_back({begin, marked.text.size()});
  }
  return marked;
}

MarkedText normalized_text(const MarkedText& marked, const TextNormalizer& normalizer) {
  MarkedText out;
  size_t at = 0;
  const auto add = [&](size_t end) {
    out.text += normalizer.apply_utf8(marked.text.substr(at, end - at));
    at = end;
  };
  for (const auto& range : marked.trusted) {
    add(range.begin);
    const size_t begin = out.text.size();
    add(range.end);
    if (out.text.size() > begin) out.trusted.push_back({begin, out.text.size()});
  }
  add(marked.text.size());
  return out;
}

AddedTokenFinder::AddedTokenFinder(std::vector<const AddedToken*> tokens, const TextNormalizer& normalizer)
    : tokens_(std::move(tokens)), ends_(1, kNoToken), first_bytes_(256, false) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string name = normalizer.apply_utf8(tokens_[i]->name);
    if (!name.empty()) insert(name, static_cast<uint32_t>(i));
  }
}

void AddedTokenFinder::insert(std::string_view name, uint32_t token) {
  first_bytes_[static_cast<uint8_t>(name[0])] = true;
  uint32_t node = 0;
  for (const char byte : name) {
    const auto fresh = static_cast<uint32_t>(ends_.size());
    const auto [edge, added] = edges_.emplace(uint64_t{node} << 8 | static_cast<uint8_t>(byte), fresh);
    if (added) ends_.push_back(kNoToken);
    node = edge->second;
  }
  if (ends_[node] == kNoToken) ends_[node] = token;  // of two with one normalized name, the first
}

AddedTokenFinder::Match AddedTokenFinder::longest_at(const MarkedText& marked, size_t at, size_t trusted_end) const {
  Match longest;
  uint32_t node = 0;
  for (size_t i = at; i < marked.text.size(); ++i) {
    const auto edge = edges_.find(uint64_t{node} << 8 | static_cast<uint8_t>(marked.text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (ends_[node] == kNoToken) continue;
    const AddedToken* token = tokens_[ends_[node]];
    if (!token->control || i < trusted_end) longest = {token, i + 1 - at};
  }
  return longest;
}

std::vector<TextPart> AddedTokenFinder::cut(const MarkedText& marked) const {
  std::vector<TextPart> parts;
  const std::string_view text = marked.text;
  size_t done = 0;
  const auto add_text = [&](size_t end) {
    if (done < end) parts.push_back({-1, done == 0 && end == text.size() ? marked : slice(marked, done, end)});
  };
  auto range = marked.trusted.begin();
  for (size_t at = 0; !empty() && at < text.size();) {
    while (range != marked.trusted.end() && range->end <= at) ++range;
    const bool trusted = range != marked.trusted.end() && range->begin <= at;
    const bool may_begin = first_bytes_[static_cast<uint8_t>(text[at])];
    const Match match = may_begin ? longest_at(marked, at, trusted ? range->end : 0) : Match{};
    if (match.token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + match.bytes;
    at = end;
    if (match.token->single_word && !stands_alone(text, begin, end)) continue;
    if (match.token->takes_left_space) {
      for (Utf8Step step = step_before(text, begin); begin > done && is_space(step.code_point);
           step = step_before(text, begin))
        begin -= step.bytes;
    }
    if (match.token->takes_right_space) {
      for (Utf8Step step = step_after(text, end); step.bytes > 0 && is_space(step.code_point);
           step = step_after(text, end))
        end += step.bytes;
    }
    add_text(begin);
    parts.push_back({match.token->id, {}});
    done = end;
    at = std::max(at, end);
  }
  add_text(text.size());
  return parts;
}

}  // namespace nibble
