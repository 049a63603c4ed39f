// The SHA-256 of a file that several threads write in any order, and the way of its bytes to the disk. Whoever writes
// may be asked to hash a while.
//
// Windows of the file go to the disk as soon as they are full, and leave the page cache once they are hashed and lie
// some way back: pages that come back are written again sooner than the kernel finds fresh ones, the page cache of
// other programs stays, and at the end there is little left to wait for.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/hash.h"

namespace nibble {

class HashBehind {
 public:
  // `file` will have `bytes` bytes, and outlives this.
  HashBehind(OutputFile& file, uint64_t bytes);

  // `bytes` are in the file from `begin` on. What continues the hashed part, or nearly, is hashed from memory, the rest
  // is read back later. From any thread; no byte may be written twice.
  void written(uint64_t begin, std::span<const std::byte> bytes);
  // Hashes what is complete in front, unless another thread is at it. `all`: to the end, waiting for the other thread.
  void advance(bool all);
  // After advance(true).
  uint64_t hashed() const { return done_; }
  std::string hex() { return hash_.hex(); }

 private:
  void add_range(uint64_t begin, uint64_t end);
  void fill_windows(uint64_t begin, uint64_t end, std::vector<uint64_t>* full);
  void read_back(uint64_t bytes);  // and hashes them; at most a chunk
  void settle_behind();
  uint64_t complete();

  OutputFile& file_;
  uint64_t bytes_;
  std::mutex mutex_;                     // of the next two
  std::map<uint64_t, uint64_t> ranges_;  // written, joined: begin -> end
  std::vector<uint32_t> filled_;         // bytes in each window
  std::mutex hashing_;                   // of the rest
  std::vector<std::byte> buffer_;
  Sha256 hash_;
  uint64_t done_ = 0, settled_ = 0;
};

}  // namespace nibble
