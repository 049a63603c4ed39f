#include "nibble/tokenizer/bpe.h"

#include <algorithm>
#include <bit>

namespace nibble {
namespace {

constexpr int32_t kMerged = -2;

uint64_t key_of(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// The heap's front is the lowest rank, of equal ones the leftmost.
struct Later {
  bool operator()(const BpeEncoder::Workspace::Candidate& a, const BpeEncoder::Workspace::Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

}  // namespace

BpeEncoder::BpeEncoder(BpeModel model, const std::vector<BpeMerge>& merges) : model_(std::move(model)) {
  const size_t slots = std::bit_ceil(std::max<size_t>(2 * merges.size(), 16));
  table_.resize(slots);
  shift_ = 64 - std::countr_zero(slots);
  for (size_t rank = 0; rank < merges.size(); ++rank) insert(merges[rank], static_cast<uint32_t>(rank));
}

void BpeEncoder::insert(const BpeMerge& merge, uint32_t rank) {
  const uint64_t pair = key_of(merge.left, merge.right);
  size_t slot = pair * 0x9E3779B97F4A7C15u >> shift_;
  while (table_[slot].pair != UINT64_MAX && table_[slot].pair != pair) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = {pair, rank, merge.made};
}

const BpeEncoder::Entry* BpeEncoder::find(TokenId left, TokenId right) const {
  const uint64_t pair = key_of(left, right);
  for (size_t slot = pair * 0x9E3779B97F4A7C15u >> shift_; table_[slot].pair != UINT64_MAX;
       slot = (slot + 1) & (table_.size() - 1)) {
    if (table_[slot].pair == pair) return &table_[slot];
  }
  return nullptr;
}

void BpeEncoder::fill_symbols(std::string_view bytes, Workspace* workspace) const {
  auto& symbols = workspace->symbols;
  symbols.clear();
  bool after_unknown = false;
  for (const char byte : bytes) {
    TokenId id = model_.byte_ids[static_cast<uint8_t>(byte)];
    const bool unknown = id < 0;
    if (unknown) {
      if (model_.unknown < 0 || (after_unknown && model_.fuse_unknown)) continue;
      id = model_.unknown;
    }
    after_unknown = unknown;
    const auto position = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, position - 1, position + 1});
  }
  if (!symbols.empty()) symbols.back().next = -1;
}

// Puts the pair that begins at `position` into the queue if the vocabulary merges it.
void BpeEncoder::offer(int32_t position, Workspace* workspace) const {
  const auto& symbols = workspace->symbols;
  const auto& left = symbols[static_cast<size_t>(position)];
  if (left.next < 0) return;
  const auto& right = symbols[static_cast<size_t>(left.next)];
  const Entry* entry = find(left.id, right.id);
  if (entry == nullptr) return;
  workspace->queue.push_back({entry->rank, position, left.id, right.id, entry->made});
  std::push_heap(workspace->queue.begin(), workspace->queue.end(), Later{});
}

void BpeEncoder::merge_all(Workspace* workspace) const {
  auto& symbols = workspace->symbols;
  auto& queue = workspace->queue;
  queue.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<int32_t>(i), workspace);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), Later{});
    const auto top = queue.back();
    queue.pop_back();
    auto& left = symbols[static_cast<size_t>(top.position)];
    if (left.next < 0 || left.id != top.left) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != top.right) continue;
    left.id = top.made;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = top.position;
    right.next = kMerged;
    if (left.previous >= 0) offer(left.previous, workspace);
    offer(top.position, workspace);
  }
}

void BpeEncoder::append_word(std::string_view bytes, Workspace* workspace, std::vector<TokenId>* ids) const {
  if (!model_.whole_words.empty()) {
    const auto whole = model_.whole_words.find(bytes);
    if (whole != model_.whole_words.end()) return ids->push_back(whole->second);
  }
  fill_symbols(bytes, workspace);
  if (workspace->symbols.size() > 1) merge_all(workspace);
  for (const auto& symbol : workspace->symbols) {
    if (symbol.next != kMerged) ids->push_back(symbol.id);
  }
}

}  // namespace nibble
