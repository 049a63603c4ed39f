#include "nibble/hardware/disk_probe.h"

#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/rng.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kPiece = uint64_t{4} << 20;
constexpr uint64_t kLeast = uint64_t{64} << 10;
constexpr int kReaders = 4;  // a device that is asked for one piece at a time idles between them
constexpr int kPasses = 4;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_in_memory(const Path& folder) {
  constexpr uint64_t kTmpfs = 0x01021994;
  constexpr uint64_t kRamfs = 0x858458F6;
  struct ::statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) return false;  // the file that cannot be created says more
  const auto type = static_cast<uint64_t>(info.f_type) & 0xFFFFFFFF;
  return type == kTmpfs || type == kRamfs;
}

struct ProbeFile {
  OutputFile file;  // never committed: it goes with this object
  uint64_t bytes = 0;

  uint64_t pieces() const { return (bytes + kPiece - 1) / kPiece; }
  uint64_t piece_bytes(uint64_t piece) const { return std::min(kPiece, bytes - piece * kPiece); }
};

// Random words, since some file systems compress.
ProbeFile written(const Path& folder, uint64_t most, double seconds) {
  ProbeFile probe{OutputFile::create(folder / fmt::format(".nibble_calibrate_{}", ::getpid()))};
  const auto start = Clock::now();
  std::vector<uint64_t> words(std::min(kPiece, most) / sizeof(uint64_t));
  do {
    const uint64_t offset = probe.bytes;
    for (size_t i = 0; i < words.size(); ++i) words[i] = random_bits(offset, i);
    const auto piece = std::as_bytes(std::span(words)).first(std::min(words.size() * 8, most - offset));
    probe.file.write_at(offset, piece);
    probe.file.settle(offset, piece.size());  // nothing that is still to be written disturbs the reading
    probe.bytes += piece.size();
  } while (probe.bytes < most && seconds_since(start) < seconds);
  return probe;
}

// Pieces are asked for in order until `seconds` are over, at least the first.
double read_once(ProbeFile& probe, double seconds, int readers) {
  probe.file.settle(0, probe.bytes);
  std::atomic<uint64_t> read{0};
  const auto start = Clock::now();
  parallel_for(probe.pieces(), readers, [&](uint64_t piece) {
    if (piece > 0 && seconds_since(start) > seconds) return;
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPiece);
    probe.file.read_at(piece * kPiece, {buffer.get(), probe.piece_bytes(piece)});
    read += probe.piece_bytes(piece);
  });
  return static_cast<double>(read) / std::max(seconds_since(start), 1e-9);
}

}  // namespace

DiskRate disk_read_rate(const Path& folder, uint64_t max_bytes, double seconds, int threads) {
  if (is_in_memory(folder)) return {std::nullopt, fmt::format("{} lies in memory", folder.string())};
  const auto start = Clock::now();
  const uint64_t most = std::min(max_bytes, free_bytes(folder) / 4) / kLeast * kLeast;
  if (most == 0)
    throw Error("too little room to measure the disk")
        .file(folder.string())
        .value("free_bytes", free_bytes(folder))
        .value("max_bytes", max_bytes)
        .way_out("choose a folder with more free space");
  ProbeFile probe = written(folder, most, seconds / 3);
  const double slice = std::max(seconds - seconds_since(start), 0.0) / kPasses;
  const int readers = std::clamp(threads, 1, kReaders);
  MeasuredRange range;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double rate = read_once(probe, slice, readers);
    range.low = pass == 0 ? rate : std::min(range.low, rate);
    range.high = std::max(range.high, rate);
  }
  return {range, fmt::format("a file of {} read from front to back by {} threads, dropped from the page cache before "
                             "each of {} passes; caches of the device or of a host below are not",
                             human_bytes(probe.bytes), readers, kPasses)};
}

}  // namespace nibble
