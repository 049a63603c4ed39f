// What a template may use up while it runs: steps, live memory, the size of any one string, nesting. Everything that
// takes time or memory goes through here, so that no construct needs a limit of its own.
#pragma once

#include <cstdint>
#include <utility>

#include "nibble/chat/chat_template.h"

namespace nibble::jinja {

class Budget {
 public:
  explicit Budget(const ChatLimits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  const ChatLimits& limits() const { return limits_; }
  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) refuse_steps();
  }
  // For work that is linear in a text; short ones are covered by the step of their expression.
  void work(uint64_t bytes) { step(bytes / 256); }
  void check_size(uint64_t bytes) const {
    if (bytes > limits_.output_bytes) refuse_size(bytes);
  }
  void check_depth(uint32_t depth) const {
    if (depth > limits_.nesting) refuse_depth();
  }
  void reserve(uint64_t bytes) {
    live_ += bytes;
    if (live_ > limits_.memory_bytes) refuse_memory(bytes);
  }
  void release(uint64_t bytes) { live_ -= bytes; }

 private:
  [[noreturn]] void refuse_steps() const;
  [[noreturn]] void refuse_size(uint64_t bytes) const;
  [[noreturn]] void refuse_depth() const;
  [[noreturn]] void refuse_memory(uint64_t bytes);

  const ChatLimits limits_;
  uint64_t steps_ = 0, live_ = 0;
};

// Memory that is counted for as long as this lives. Values that the template itself holds have no budget.
class Lease {
 public:
  Lease() = default;
  explicit Lease(Budget* budget) : budget_(budget) {}
  Lease(Lease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Lease& operator=(Lease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Lease() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  void grow(uint64_t bytes) {
    if (budget_ == nullptr) return;
    budget_->reserve(bytes);
    bytes_ += bytes;
  }
  Budget* budget() const { return budget_; }

 private:
  Budget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace nibble::jinja
