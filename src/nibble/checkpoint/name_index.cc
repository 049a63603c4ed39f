#include "nibble/checkpoint/name_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "nibble/base/check.h"

namespace nibble {
namespace {

uint64_t process_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

// Both halves of the 128-bit product, folded: every bit of both factors reaches the low bits.
uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_name(std::string_view name) {
  constexpr uint64_t kMultiplier = 0x9FB21C651E98DF25u;
  uint64_t hash = fold(process_seed() ^ name.size(), kMultiplier);
  while (!name.empty()) {
    uint64_t word = 0;
    const size_t length = std::min<size_t>(8, name.size());
    std::memcpy(&word, name.data(), length);
    hash = fold(hash ^ word, kMultiplier);
    name.remove_prefix(length);
  }
  return fold(hash, kMultiplier);
}

uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

uint64_t NameIndex::slot_of(std::string_view name, uint64_t hash) const {
  const uint64_t mask = slots_.size() - 1;
  uint64_t at = hash & mask;
  while (slots_[at].position != 0 && (slots_[at].tag != tag_of(hash) || names_[slots_[at].position - 1] != name)) {
    at = (at + 1) & mask;
  }
  return at;
}

void NameIndex::grow(uint64_t slots) {
  slots_.assign(slots, {});
  for (uint32_t i = 0; i < names_.size(); ++i) {
    const uint64_t hash = hash_name(names_[i]);
    Slot& slot = slots_[slot_of(names_[i], hash)];
    if (slot.position == 0) slot = {tag_of(hash), i + 1};
  }
}

void NameIndex::reserve(uint64_t names) {
  names_.reserve(names);
  const uint64_t slots = std::bit_ceil(std::max<uint64_t>(16, 2 * names));
  if (slots > slots_.size()) grow(slots);
}

int64_t NameIndex::insert(std::string_view name) {
  NIBBLE_CHECK(names_.size() < UINT32_MAX);
  if (2 * (names_.size() + 1) > slots_.size()) grow(std::max<uint64_t>(16, 2 * slots_.size()));
  const uint64_t hash = hash_name(name);
  Slot& slot = slots_[slot_of(name, hash)];
  names_.push_back(name);
  if (slot.position != 0) return slot.position - 1;
  slot = {tag_of(hash), static_cast<uint32_t>(names_.size())};
  return -1;
}

int64_t NameIndex::find(std::string_view name) const {
  if (slots_.empty()) return -1;
  return int64_t{slots_[slot_of(name, hash_name(name))].position} - 1;
}

}  // namespace nibble
