// From a name to its position among up to 2^32 - 1 names, in 16 to 32 bytes a name and no allocation per name. The
// names stay with the caller, who must keep them where they are. The hash is seeded per process, so that a hostile file
// cannot choose names that all collide; no result depends on the seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace nibble {

class NameIndex {
 public:
  void reserve(uint64_t names);
  // Adds the next name. If an equal one is there already, returns its position and adds nothing that find() would see;
  // -1 otherwise. Either way the next name has the next position.
  int64_t insert(std::string_view name);
  // Position, or -1.
  int64_t find(std::string_view name) const;
  uint64_t size() const { return names_.size(); }

 private:
  struct Slot {
    uint32_t tag = 0;       // the hash's upper half
    uint32_t position = 0;  // 1 + position; 0 means empty
  };
  // The slot of `name`, or the empty one where it belongs.
  uint64_t slot_of(std::string_view name, uint64_t hash) const;
  void grow(uint64_t slots);

  std::vector<std::string_view> names_;
  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace nibble
