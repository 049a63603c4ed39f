#include "nibble/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "nibble/base/log.h"
#include "nibble/base/thread_choice.h"

namespace nibble {

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

int default_threads() { return choose_threads(processors_in_mask()).threads; }

}  // namespace nibble
