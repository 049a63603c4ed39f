// Threads that stay: for loops too short to start threads for, thousands of times a second (parallel.h starts them
// anew).
//
// Threads that have nothing to do look for work for some tens of microseconds before they sleep, since the next loop
// usually follows at once. One caller at a time; loops inside a body run on the body's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace nibble {

class ThreadPool {
 public:
  // The caller of run() is one of `threads`; at least 1. Fewer are started if the system has no more to give.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls the body once for each index in [0, count), handed out in ascending order, and returns when all have
  // returned. Nothing may depend on which thread runs what. If bodies throw, the exception of the lowest index that
  // threw is rethrown; indices above it may not have been visited.
  void run(uint64_t count, const std::function<void(uint64_t index)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nibble
