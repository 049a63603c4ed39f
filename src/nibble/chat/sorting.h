// A stable sort that may throw while it compares, and that ends whatever the comparison says (NaN has no order).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nibble::jinja {

template <typename T, typename Less>
void merge_sort(std::vector<T>& items, const Less& less) {
  std::vector<T> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool from_right = left == middle || (right < end && less(items[right], items[left]));
        merged[at] = std::move(items[from_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
}

}  // namespace nibble::jinja
