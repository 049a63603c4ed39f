// Content hashes: XXH3-128 (fast, for input tensors) and SHA-256 (for output shards). Hex, lower case, big-endian as
// the canonical form of both.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "nibble/base/file.h"

namespace nibble {

class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  void update(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  std::string hex();  // 64 digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string xxh3_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::span<const std::byte> bytes);
// Of a file's content, which is read in pieces.
std::string sha256_of_file(const Path& path);

}  // namespace nibble
