#include "nibble/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace nibble {
namespace {

TEST(ThreadPool, every_index_once_in_thousands_of_short_loops) {
  ThreadPool pool(3);
  EXPECT_EQ(pool.threads(), 3);
  std::vector<uint64_t> visits(17);
  for (int round = 0; round < 500; ++round) {
    pool.run(visits.size(), [&](uint64_t i) { ++visits[i]; });  // each index has one writer, loops do not overlap
  }
  for (const uint64_t count : visits) EXPECT_EQ(count, 500U);
}

// More threads than processors, and loops that are over before most of them wake: none may come in late.
TEST(ThreadPool, workers_that_wake_too_late_do_no_harm) {
  ThreadPool pool(16);
  uint64_t sum = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    std::vector<uint64_t> values(2 + round % 3);
    pool.run(values.size(), [&, round](uint64_t i) { values[i] = round + i; });
    for (uint64_t i = 0; i < values.size(); ++i) sum += values[i] == round + i ? 1U : 0U;
  }
  EXPECT_EQ(sum, 3000U * 3);
}

TEST(ThreadPool, one_thread_and_nothing_to_do) {
  ThreadPool pool(1);
  EXPECT_EQ(pool.threads(), 1);
  int calls = 0;
  pool.run(0, [&](uint64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
  pool.run(5, [&](uint64_t) { ++calls; });
  EXPECT_EQ(calls, 5);
}

TEST(ThreadPool, the_lowest_failure_is_thrown_and_the_pool_goes_on) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::string what;
    try {
      pool.run(100, [](uint64_t i) {
        if (i >= 7) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "7");
  }
  std::atomic<int> calls{0};
  pool.run(10, [&](uint64_t) { ++calls; });
  EXPECT_EQ(calls, 10);
}

TEST(ThreadPool, a_loop_inside_a_body_runs_there) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  pool.run(4, [&](uint64_t) { pool.run(3, [&](uint64_t) { ++calls; }); });
  EXPECT_EQ(calls, 12);
}

}  // namespace
}  // namespace nibble
