#include "nibble/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace nibble {
namespace {

constexpr int kSpins = 1000;  // a pause takes 40 to 140 cycles: some tens of microseconds

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether this thread is inside a body: a loop there runs on this thread.
thread_local bool inside_body = false;

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> threads;
  std::atomic<uint64_t> round{0};  // of run(): workers wait for the next
  std::atomic<uint64_t> next{0};   // index to be handed out
  // Workers inside the round, and kOpen while others may still come in. Only what is inside is waited for: a worker
  // that the system wakes too late, where other programs have its processor, finds the door closed.
  std::atomic<uint32_t> inside{0};
  std::atomic<bool> ending{false};
  uint64_t count = 0;
  const std::function<void(uint64_t)>* body = nullptr;
  std::mutex failure_mutex;
  uint64_t failed_index = 0;
  std::exception_ptr failure;

  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  bool enter() {
    uint32_t now = inside.load(std::memory_order_relaxed);
    while ((now & kOpen) != 0) {
      if (inside.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  void leave() {
    if (inside.fetch_sub(1, std::memory_order_acq_rel) == 1) inside.notify_one();  // the last, behind a closed door
  }

  // The caller of run(): no index is left to be handed out.
  void close_and_wait() {
    uint32_t left = inside.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    for (; left != 0; left = inside.load(std::memory_order_acquire)) wait_while(inside, left);
  }

  void work() {
    inside_body = true;
    for (;;) {
      const uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) break;
      try {
        (*body)(index);
      } catch (...) {  // carried to run()'s caller, never swallowed
        const std::scoped_lock lock(failure_mutex);
        if (!failure || index < failed_index) {
          failure = std::current_exception();
          failed_index = index;
        }
        // Indices above need not be visited; those below were handed out before.
        next.store(count, std::memory_order_relaxed);
      }
    }
    inside_body = false;
  }

  template <typename T>
  static void wait_while(std::atomic<T>& value, T unwanted) {
    for (int i = 0; i < kSpins; ++i) {
      if (value.load(std::memory_order_acquire) != unwanted) return;
      pause_processor();
    }
    value.wait(unwanted, std::memory_order_acquire);
  }

  void serve() {
    uint64_t seen = 0;
    for (;;) {
      wait_while(round, seen);
      seen = round.load(std::memory_order_acquire);
      if (ending.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;
      work();
      leave();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  for (int i = 1; i < threads; ++i) {
    try {
      state_->threads.emplace_back([state = state_.get()] { state->serve(); });
    } catch (const std::system_error&) {
      break;  // fewer then: the caller's thread is always there
    }
  }
}

ThreadPool::~ThreadPool() {
  state_->ending.store(true, std::memory_order_relaxed);
  state_->round.fetch_add(1, std::memory_order_release);
  state_->round.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadPool::run(uint64_t count, const std::function<void(uint64_t)>& body) {
  if (count == 0) return;
  if (inside_body || count == 1 || state_->threads.empty()) {
    for (uint64_t i = 0; i < count; ++i) body(i);
    return;
  }
  State& state = *state_;
  state.count = count;
  state.body = &body;
  state.failure = nullptr;
  state.next.store(0, std::memory_order_relaxed);
  state.inside.store(State::kOpen, std::memory_order_release);
  state.round.fetch_add(1, std::memory_order_release);
  state.round.notify_all();
  state.work();
  state.close_and_wait();
  if (state.failure) std::rethrow_exception(state.failure);
}

}  // namespace nibble
