#include "nibble/base/mapped_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "nibble/base/file.h"

namespace nibble {
namespace {

// Fixed slots: a signal handler may not allocate or lock. Beyond the slots the message just lacks the name.
struct Slot {
  std::atomic<const std::byte*> begin{nullptr};
  size_t size = 0;
  std::array<char, 512> path{};
};
std::array<Slot, 512> slots;
std::mutex slots_mutex;

void put(const char* text) {
  // Nothing can be done about a failed write from here.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void on_sigbus(int, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {  // not a page that could not be read: sent by somebody, or a bug of ours
    ::signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);
    return;
  }
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  put("nibble: error: cannot read a mapped page");
  for (const Slot& slot : slots) {
    const std::byte* begin = slot.begin.load(std::memory_order_acquire);
    if (begin == nullptr || address < begin || address >= begin + slot.size) continue;
    std::array<char, 24> digits{};
    size_t at = digits.size() - 1;
    for (auto offset = static_cast<uint64_t>(address - begin); at > 0; offset /= 10) {
      digits[--at] = static_cast<char>('0' + offset % 10);
      if (offset < 10) break;
    }
    put(" (file ");
    put(slot.path.data());
    put(", offset ");
    put(digits.data() + at);
    put(")");
  }
  put("; try: check the disk, or read without mappings\n");
  ::_exit(1);
}

}  // namespace

void register_mapping(std::span<const std::byte> range, const std::string& path) {
  const std::scoped_lock lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.begin.load(std::memory_order_relaxed) != nullptr) continue;
    slot.size = range.size();
    const size_t length = std::min(path.size(), slot.path.size() - 1);
    std::memcpy(slot.path.data(), path.data(), length);
    slot.path[length] = '\0';
    slot.begin.store(range.data(), std::memory_order_release);
    return;
  }
}

void unregister_mapping(std::span<const std::byte> range) {
  const std::scoped_lock lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.begin.load(std::memory_order_relaxed) == range.data())
      slot.begin.store(nullptr, std::memory_order_release);
  }
}

void install_mapping_error_handler() {
  struct sigaction action{};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace nibble
