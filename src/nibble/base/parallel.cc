#include "nibble/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "nibble/base/cgroup.h"
#include "nibble/base/log.h"

namespace nibble {
namespace {

constexpr int kMostProcessors = 1 << 16;

// The kernel refuses a mask that is too small for the machine, and cpu_set_t ends at 1,024.
int processors_in_mask() {
  for (int size = CPU_SETSIZE; size <= kMostProcessors; size *= 2) {
    std::vector<cpu_set_t> mask(static_cast<size_t>(size / CPU_SETSIZE));
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
  }
  return 1;
}

}  // namespace

void parallel_for(uint64_t count, int threads, const std::function<void(uint64_t)>& body) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  uint64_t failed_index = UINT64_MAX;
  std::exception_ptr failure;
  const auto run = [&] {
    for (uint64_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {  // carried to the caller below, never swallowed
        const std::scoped_lock lock(mutex);
        next = count;  // hand out no more
        if (i < failed_index) {
          failed_index = i;
          failure = std::current_exception();
        }
      }
    }
  };
  const uint64_t helpers =
      std::min<uint64_t>(threads > 0 ? static_cast<uint64_t>(threads) : 1, std::max<uint64_t>(count, 1)) - 1;
  {
    std::vector<std::jthread> pool;
    pool.reserve(helpers);
    try {
      for (uint64_t i = 0; i < helpers; ++i) pool.emplace_back(run);
    } catch (const std::system_error& error) {
      log::warning(std::string("the system gives no more threads, those there are do the work: ") + error.what());
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

int default_threads() {
  const int processors = std::max(1, processors_in_mask());
  const auto quota = cpu_quota();
  return quota && *quota < processors ? std::max(1, static_cast<int>(std::ceil(*quota))) : processors;
}

}  // namespace nibble
