#include "nibble/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/file_lock.h"
#include "nibble/base/mapped_files.h"
#include "nibble/base/syscalls.h"
#include "nibble/base/system_error.h"

namespace nibble {
namespace {

// Linux moves at most 2^31 - 4096 bytes a call; smaller pieces also keep a read interruptible.
constexpr size_t kMaxIoBytes = size_t{1} << 30;

// The error number, 0 when done.
int sync_descriptor(int fd) {
  while (syscalls().fsync(fd) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

void read_fully(int fd, const Path& path, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = syscalls().pread(fd, out.data(), std::min(out.size(), kMaxIoBytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error("cannot read", path, errno).value("offset", offset);
    if (n == 0) {
      throw Error("the file ends early")
          .file(path.string())
          .value("offset", offset)
          .value("missing_bytes", out.size())
          .way_out("it was cut or is still being written: fetch it again");
    }
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

// Two processes never write the same output.
int open_partial(const Path& partial) {
  const auto file = open_locked(partial, LockKind::kExclusive, LockWait::kNo);
  if (file) return file->fd;
  throw Error("another process is writing this file").file(partial.string()).way_out("wait for it, or stop it");
}

}  // namespace

InputFile InputFile::open(const Path& path, ReadMode mode) {
  InputFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: a FIFO must not hang us
  if (file.fd_ < 0) throw system_error("cannot open", path, errno);
  struct stat info{};
  if (::fstat(file.fd_, &info) != 0) throw system_error("cannot stat", path, errno);
  if (!S_ISREG(info.st_mode))
    throw Error("not a regular file").file(path.string()).way_out("name a file or a checkpoint folder");
  file.size_ = static_cast<uint64_t>(info.st_size);
  file.mtime_ns_ = static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (mode == ReadMode::kMmap && file.size_ > 0) {
    void* address = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, file.fd_, 0);
    if (address == MAP_FAILED) throw system_error("cannot map", path, errno).value("bytes", file.size_);
    file.mapping_ = {static_cast<const std::byte*>(address), file.size_};
    register_mapping(file.mapping_, path.string());
  }
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept { *this = std::move(other); }

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = std::exchange(other.size_, 0);
    mtime_ns_ = other.mtime_ns_;
    mapping_ = std::exchange(other.mapping_, {});
  }
  return *this;
}

InputFile::~InputFile() { close(); }

void InputFile::close() noexcept {
  if (!mapping_.empty()) {
    unregister_mapping(mapping_);
    ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size());
    mapping_ = {};
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    throw Error("read past the end of the file")
        .file(path_.string())
        .value("offset", offset)
        .value("bytes", out.size())
        .value("file_bytes", size_)
        .way_out("the file was cut: fetch it again");
  }
  if (!mapping_.empty()) {
    std::memcpy(out.data(), mapping_.data() + offset, out.size());
  } else {
    read_fully(fd_, path_, offset, out);
  }
}

OutputFile OutputFile::create(const Path& final_path, uint64_t reserve) {
  OutputFile file;
  file.final_path_ = final_path;
  file.partial_path_ = final_path;
  file.partial_path_ += ".partial";
  file.fd_ = open_partial(file.partial_path_);
  if (::ftruncate(file.fd_, 0) != 0) throw system_error("cannot truncate", file.partial_path_, errno);
  if (reserve > 0) {
    int code = EINTR;
    while (code == EINTR) code = syscalls().fallocate(file.fd_, 0, static_cast<off_t>(reserve));
    // Some file systems cannot reserve; then a full disk shows at the write.
    if (code != 0 && code != EOPNOTSUPP && code != EINVAL && code != ENOSYS) {
      throw system_error("cannot reserve space", file.partial_path_, code)
          .value("bytes", reserve)
          .value("free", free_bytes(final_path.parent_path()));
    }
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    abandon();
    final_path_ = std::move(other.final_path_);
    partial_path_ = std::move(other.partial_path_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

OutputFile::~OutputFile() { abandon(); }

void OutputFile::abandon() noexcept {
  if (fd_ < 0) return;
  ::unlink(partial_path_.c_str());  // while it is locked: afterwards the name may be another process' file
  ::close(std::exchange(fd_, -1));
}

void OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  NIBBLE_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t n =
        syscalls().pwrite(fd_, bytes.data(), std::min(bytes.size(), kMaxIoBytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw system_error("cannot write", partial_path_, n < 0 ? errno : ENOSPC).value("offset", offset);
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  read_fully(fd_, partial_path_, offset, out);
}

// A failed sync_file_range may be the only report of a lost page: a later fsync need not repeat it. Where the call does
// not exist, fsync does all the work.
void OutputFile::sync_range(uint64_t offset, uint64_t bytes, unsigned flags) {
  NIBBLE_CHECK(fd_ >= 0);
  int result = 0;
  do {
    result = syscalls().sync_file_range(fd_, static_cast<off64_t>(offset), static_cast<off64_t>(bytes), flags);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE && errno != EOPNOTSUPP)
    throw system_error("cannot write to the disk", partial_path_, errno).value("offset", offset).value("bytes", bytes);
}

void OutputFile::start_flush(uint64_t offset, uint64_t bytes) { sync_range(offset, bytes, SYNC_FILE_RANGE_WRITE); }

void OutputFile::settle(uint64_t offset, uint64_t bytes) {
  sync_range(offset, bytes, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);  // a hint
}

void OutputFile::commit() {
  NIBBLE_CHECK(fd_ >= 0);
  if (const int code = sync_descriptor(fd_); code != 0) throw system_error("cannot sync", partial_path_, code);
  if (syscalls().rename(partial_path_.c_str(), final_path_.c_str()) != 0)
    throw system_error("cannot rename", partial_path_, errno);
  ::close(std::exchange(fd_, -1));
  sync_folder(final_path_.parent_path());
}

std::string read_text(const Path& path, uint64_t limit) {
  const InputFile file = InputFile::open(path);
  if (file.size() > limit) {
    throw Error("the file is too large for what it should be")
        .file(path.string())
        .value("bytes", file.size())
        .value("limit", limit)
        .way_out("check that this is the right file");
  }
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_atomically(const Path& path, std::span<const std::byte> content) {
  OutputFile file = OutputFile::create(path);
  file.write_at(0, content);
  file.commit();
}

void write_atomically(const Path& path, std::string_view content) {
  write_atomically(path, std::as_bytes(std::span(content)));
}

void copy_atomically(const Path& from, const Path& to) {
  constexpr uint64_t kChunk = uint64_t{4} << 20;
  const InputFile in = InputFile::open(from);
  OutputFile out = OutputFile::create(to, in.size());
  std::vector<std::byte> buffer(std::min(kChunk, in.size()));
  for (uint64_t offset = 0; offset < in.size(); offset += kChunk) {
    const std::span piece(buffer.data(), std::min(kChunk, in.size() - offset));
    in.read_at(offset, piece);
    out.write_at(offset, piece);
  }
  out.commit();
}

std::vector<Path> list_files(const Path& folder) {
  std::vector<Path> files;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) files.push_back(it->path());
  }
  if (code) throw system_error("cannot list", folder, code.value());
  std::sort(files.begin(), files.end());
  return files;
}

NewFolders::NewFolders(const Path& folder) {
  std::error_code code;
  std::vector<Path> missing;
  Path place = folder;
  for (; !place.empty() && !std::filesystem::exists(place, code); place = place.parent_path()) missing.push_back(place);
  for (const Path& path : missing | std::views::reverse) {
    if (std::filesystem::create_directory(path, code)) made_.push_back(path);
    if (!code) continue;
    Error error = system_error("cannot make the folder", folder, code.value());
    error.value("nearest_that_exists", place.empty() ? std::string(".") : place.string());
    if (code.value() == ENOTDIR) error.way_out("a file stands where a folder would have to be: name another place");
    remove_made();
    throw error.way_out("name a folder on a disk that you may write to");
  }
}

void NewFolders::remove_made() noexcept {
  std::error_code ignored;
  for (const Path& made : made_ | std::views::reverse) std::filesystem::remove(made, ignored);
}

bool is_named(int fd, const Path& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

uint64_t free_bytes(const Path& folder) {
  Path place = folder.empty() ? Path(".") : folder;
  std::error_code ignored;
  while (!std::filesystem::exists(place, ignored) && place.has_relative_path() && place != ".") {
    place = place.parent_path().empty() ? Path(".") : place.parent_path();
  }
  struct statvfs info{};
  if (syscalls().statvfs(place.c_str(), &info) != 0) throw system_error("cannot ask for free space", place, errno);
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

void sync_folder(const Path& folder) {
  const Path place = folder.empty() ? Path(".") : folder;
  const int fd = ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw system_error("cannot open the folder", place, errno);
  // Some network file systems cannot sync a folder (EINVAL); the rename itself is durable enough there.
  const int code = sync_descriptor(fd);
  ::close(fd);
  if (code != 0 && code != EINVAL) throw system_error("cannot sync the folder", place, code);
}

}  // namespace nibble
