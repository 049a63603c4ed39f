#include "nibble/tokenizer/byte_level_tokenizer.h"

#include <algorithm>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/tokenizer/utf8.h"
#include "nibble/tokenizer/word_cache.h"

namespace nibble {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;  // ICU counts with 32 bits

std::vector<bool> flags(const TokenizerParts& parts, size_t size, bool AddedToken::* flag) {
  std::vector<bool> set(size, false);
  for (const AddedToken& token : parts.added) set[static_cast<size_t>(token.id)] = token.*flag;
  return set;
}

// What the vocabulary makes of bytes. Control tokens that stand in the vocabulary too are taken out of it: no text
// spells them.
BpeModel bpe_model(const TokenizerParts& parts, const std::vector<bool>& control) {
  BpeModel model;
  model.byte_ids.fill(-1);
  const auto is_control = [&](TokenId id) { return id >= 0 && control[static_cast<size_t>(id)]; };
  if (!is_control(parts.unknown)) model.unknown = parts.unknown;
  model.fuse_unknown = parts.fuse_unknown;
  for (size_t i = 0; i < parts.vocabulary.size(); ++i) {
    const VocabularyToken& token = parts.vocabulary[i];
    const auto id = static_cast<TokenId>(i);
    if (!token.of_bytes || token.bytes.empty() || is_control(id)) continue;
    if (token.bytes.size() == 1) model.byte_ids[static_cast<uint8_t>(token.bytes[0])] = id;
    if (parts.whole_words) model.whole_words.emplace(token.bytes, id);
  }
  return model;
}

std::vector<BpeMerge> safe_merges(const TokenizerParts& parts, const std::vector<bool>& control) {
  std::vector<BpeMerge> merges = parts.merges;
  std::erase_if(merges, [&](const BpeMerge& merge) { return control[static_cast<size_t>(merge.made)]; });
  return merges;
}

std::vector<const AddedToken*> found_in(const std::vector<AddedToken>& added, bool normalized) {
  std::vector<const AddedToken*> tokens;
  for (const AddedToken& token : added) {
    if (token.normalized == normalized) tokens.push_back(&token);
  }
  return tokens;
}

size_t size_of(const TokenizerParts& parts) {
  size_t size = parts.vocabulary.size();
  for (const AddedToken& token : parts.added) size = std::max(size, static_cast<size_t>(token.id) + 1);
  return size;
}

class ByteLevelTokenizer final : public Tokenizer {
 public:
  // Members refer to each other and to `parts_`, which therefore never moves.
  explicit ByteLevelTokenizer(TokenizerParts parts)
      : parts_(std::move(parts)),
        control_(flags(parts_, size_of(parts_), &AddedToken::control)),
        special_(flags(parts_, size_of(parts_), &AddedToken::special)),
        encoder_(bpe_model(parts_, control_), safe_merges(parts_, control_)),
        as_written_(found_in(parts_.added, false), {}),
        as_normalized_(found_in(parts_.added, true), parts_.normalizer) {
    parts_.merges = {};
    names_.resize(control_.size());
    for (size_t i = 0; i < parts_.vocabulary.size(); ++i) names_[i] = parts_.vocabulary[i].bytes;
    for (const AddedToken& token : parts_.added) {
      names_[static_cast<size_t>(token.id)] = token.name;
      ids_.emplace(token.name, token.id);
    }
  }

  std::vector<TokenId> encode_spans(const std::vector<TextSpan>& spans) const override {
    const MarkedText marked = marked_text(spans);
    if (marked.text.size() > kMaxTextBytes) {
      throw Error("the text is too long to be encoded at once")
          .value("bytes", marked.text.size())
          .value("limit", kMaxTextBytes)
          .way_out("give it in pieces");
    }
    Encoding encoding{MatchBudget(marked.text.size())};
    for (const TextPart& part : as_written_.cut(marked)) {
      if (part.id >= 0) {
        encoding.ids.push_back(part.id);
      } else if (as_normalized_.empty()) {
        append_plain(part.text.text, &encoding);
      } else {
        append_normalized(part.text, &encoding);
      }
    }
    return std::move(encoding.ids);
  }

  std::string_view bytes_of(TokenId id) const override { return names_[index(id)]; }
  bool is_control(TokenId id) const override { return control_[index(id)]; }
  bool is_special(TokenId id) const override { return special_[index(id)]; }
  TokenId size() const override { return static_cast<TokenId>(names_.size()); }
  std::optional<TokenId> find_added(std::string_view name) const override {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<TokenId>& prefix() const override { return parts_.prefix; }
  const std::vector<TokenId>& suffix() const override { return parts_.suffix; }

 private:
  struct Encoding {
    explicit Encoding(MatchBudget time) : budget(time) {}

    MatchBudget budget;
    std::vector<TokenId> ids;
    WordCache cache;
    BpeEncoder::Workspace workspace;
    std::string word;
  };

  size_t index(TokenId id) const {
    NIBBLE_CHECK(id >= 0 && static_cast<size_t>(id) < names_.size());
    return static_cast<size_t>(id);
  }

  void append_normalized(const MarkedText& marked, Encoding* encoding) const {
    const MarkedText normalized =
        parts_.normalizer.changes_nothing() ? marked : normalized_text(marked, parts_.normalizer);
    for (const TextPart& part : as_normalized_.cut(normalized)) {
      if (part.id >= 0) {
        encoding->ids.push_back(part.id);
      } else {
        append_plain(part.text.text, encoding);
      }
    }
  }

  void append_plain(const std::string& text, Encoding* encoding) const {
    const CutText cut = cut_words(parts_.normalizer.apply(utf16_of(text)), parts_.steps, &encoding->budget);
    for (const TextRange& range : cut.words) {
      encoding->word.clear();
      append_utf8(std::u16string_view(cut.text).substr(range.begin, range.end - range.begin), &encoding->word);
      encoding->cache.append(encoding->word, &encoding->ids, [&](std::string_view word, std::vector<TokenId>* ids) {
        encoder_.append_word(word, &encoding->workspace, ids);
      });
    }
  }

  TokenizerParts parts_;
  std::vector<bool> control_, special_;
  BpeEncoder encoder_;
  AddedTokenFinder as_written_, as_normalized_;
  std::vector<std::string_view> names_;                // by id
  std::unordered_map<std::string_view, TokenId> ids_;  // of added tokens
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_level_tokenizer(TokenizerParts parts) {
  return std::make_unique<ByteLevelTokenizer>(std::move(parts));
}

}  // namespace nibble
