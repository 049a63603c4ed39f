// Files: reading at offsets, writing so that nobody ever sees half a file, and the folder operations around both.
//
// InputFile reads by pread (default: bounded memory, I/O errors become Error with the offset) or through a mapping.
// OutputFile writes to a temporary sibling, `NAME.partial`, that commit() syncs and renames; without commit() it is
// removed. All sizes are 64-bit. All failures throw Error naming the file (and the offset). Instances are movable, not
// copyable; read_at and write_at may be called from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

using Path = std::filesystem::path;

enum class ReadMode { kPread, kMmap };

class InputFile {
 public:
  static InputFile open(const Path& path, ReadMode mode = ReadMode::kPread);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  uint64_t size() const { return size_; }
  int64_t mtime_ns() const { return mtime_ns_; }
  const Path& path() const { return path_; }
  // Fills all of `out` from `offset`; a short file is an error.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // The mapping, in kMmap mode (empty otherwise). A device error under a mapping arrives as SIGBUS: see
  // install_mapping_error_handler().
  std::span<const std::byte> mapping() const { return mapping_; }

 private:
  InputFile() = default;
  void close() noexcept;

  Path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t mtime_ns_ = 0;
  std::span<const std::byte> mapping_;
};

class OutputFile {
 public:
  // Creates (or truncates) `final_path` + ".partial" and locks it against other processes, where the file system can.
  // `reserve` bytes are allocated at once where it can, so that a full disk is met before the work and not after it;
  // the file is at least that long from then on.
  static OutputFile create(const Path& final_path, uint64_t reserve = 0);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  // Reads back what was written.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // Starts writing a range that will not change any more to the disk, without waiting for it.
  void start_flush(uint64_t offset, uint64_t bytes);
  // Waits until a range is on the disk and gives its memory back: a long file then takes no more of the page cache than
  // its newest part, and commit() has little left to sync. An error of the disk is found here or in commit().
  void settle(uint64_t offset, uint64_t bytes);
  // Syncs, renames to the final name and syncs the folder.
  void commit();
  const Path& final_path() const { return final_path_; }

 private:
  OutputFile() = default;
  void abandon() noexcept;
  void sync_range(uint64_t offset, uint64_t bytes, unsigned flags);

  Path final_path_, partial_path_;
  int fd_ = -1;
};

// The whole file, refused above `limit` bytes before anything is allocated.
std::string read_text(const Path& path, uint64_t limit);
// OutputFile in one call.
void write_atomically(const Path& path, std::string_view content);
void write_atomically(const Path& path, std::span<const std::byte> content);
// Copies content (not permissions) through OutputFile in bounded memory.
void copy_atomically(const Path& from, const Path& to);
// Regular files and links to them directly in `folder`, sorted by name. No recursion.
std::vector<Path> list_files(const Path& folder);

// Makes `folder` and those above it that are not there yet; Error with the path and the reason where that cannot be.
// Removes them again, as far as they are empty, unless keep() is called.
class NewFolders {
 public:
  explicit NewFolders(const Path& folder);
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() { remove_made(); }
  void keep() { made_.clear(); }

 private:
  void remove_made() noexcept;

  std::vector<Path> made_;  // outermost first
};

// Is the open file still the one of this name? Between open and lock another process may have replaced or removed it.
bool is_named(int fd, const Path& path);

// Free bytes for an unprivileged writer on the file system of `folder` (or its nearest existing parent).
uint64_t free_bytes(const Path& folder);
void sync_folder(const Path& folder);

// In kMmap mode an unreadable page raises SIGBUS. This handler prints the mapped file's name and offset and exits with
// 1; the program installs it at start.
void install_mapping_error_handler();

}  // namespace nibble
