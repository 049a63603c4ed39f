#include "nibble/base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxh_x86dispatch.h>  // picks the widest vectors at run time

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "nibble/base/check.h"

namespace nibble {

struct Xxh3::State {
  XXH3_state_t* raw = XXH3_createState();
  State() {
    NIBBLE_CHECK(raw != nullptr);
    XXH3_128bits_reset(raw);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(raw); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {}
Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

void Xxh3::update(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->raw, bytes.data(), bytes.size()); }

std::string Xxh3::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->raw);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

struct Sha256::State {
  EVP_MD_CTX* raw = EVP_MD_CTX_new();
  State() {
    NIBBLE_CHECK(raw != nullptr);
    NIBBLE_CHECK(EVP_DigestInit_ex(raw, EVP_sha256(), nullptr) == 1);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(raw); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  NIBBLE_CHECK(EVP_DigestUpdate(state_->raw, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  NIBBLE_CHECK(EVP_DigestFinal_ex(state_->raw, digest.data(), nullptr) == 1);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string xxh3_hex(std::span<const std::byte> bytes) {
  Xxh3 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const Path& path) {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  const InputFile file = InputFile::open(path);
  std::vector<std::byte> buffer(std::min(kPiece, file.size()));
  Sha256 hash;
  for (uint64_t offset = 0; offset < file.size(); offset += kPiece) {
    const std::span piece(buffer.data(), std::min(kPiece, file.size() - offset));
    file.read_at(offset, piece);
    hash.update(piece);
  }
  return hash.hex();
}

}  // namespace nibble
