// Texts that many rows share, each held once. The views stay valid while the pool, or the one it was moved into, lives.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace nibble {

class TextPool {
 public:
  TextPool() = default;
  TextPool(TextPool&&) = default;
  TextPool& operator=(TextPool&&) = default;
  TextPool(const TextPool&) = delete;  // its views would be the other one's
  TextPool& operator=(const TextPool&) = delete;
  ~TextPool() = default;

  std::string_view keep(std::string text) { return *texts_.insert(std::move(text)).first; }

 private:
  std::unordered_set<std::string> texts_;
};

}  // namespace nibble
