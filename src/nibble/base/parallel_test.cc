#include "nibble/base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace nibble {
namespace {

TEST(ParallelFor, EveryIndexOnce) {
  for (const int threads : {-1, 0, 1, 2, 7, 64}) {
    for (const uint64_t count : {0u, 1u, 2u, 63u, 1000u}) {
      std::vector<int> visits(count, 0);  // by index, so no two threads share an element
      parallel_for(count, threads, [&](uint64_t i) { ++visits[i]; });
      EXPECT_EQ(visits, std::vector<int>(count, 1)) << threads << " threads, " << count;
    }
  }
}

TEST(ParallelFor, OneThreadIsTheCallersInOrder) {
  std::vector<uint64_t> order;
  const auto caller = std::this_thread::get_id();
  parallel_for(100, 1, [&](uint64_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 100u);
}

TEST(ParallelFor, UsesTheThreadsItIsGiven) {
  // Each of four pieces waits for the other three, so that four threads must be there at once.
  std::atomic<int> arrived{0};
  parallel_for(4, 4, [&](uint64_t) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 4);
}

TEST(ParallelFor, IndicesAreHandedOutAscending) {
  std::mutex mutex;
  std::set<uint64_t> seen;
  uint64_t widest = 0;
  parallel_for(1000, 4, [&](uint64_t i) {
    const std::scoped_lock lock(mutex);
    seen.insert(i);
    widest = std::max(widest, *seen.rbegin() + 1 - seen.size());  // how far the front is ahead of the gaps
  });
  EXPECT_LE(widest, 3u);  // one index may be under way in each other thread
}

// Whichever thread meets its error first, the lowest index that threw wins, and everything below it has been visited.
TEST(ParallelFor, LowestExceptionWins) {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> visits(100, 0);
    try {
      parallel_for(100, 8, [&](uint64_t i) {
        ++visits[i];
        if (i == 17 || i == 18 || i > 40) {
          if (i == 17) std::this_thread::yield();
          throw std::runtime_error(std::to_string(i));
        }
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      // 17 is always handed out before 18 and its like, and always throws.
      EXPECT_STREQ(error.what(), "17");
    }
    for (size_t i = 0; i <= 17; ++i) EXPECT_EQ(visits[i], 1);
  }
}

TEST(ParallelFor, StopsHandingOutAfterAnError) {
  std::atomic<uint64_t> visited{0};
  EXPECT_THROW(parallel_for(uint64_t{1} << 40, 4,
                            [&](uint64_t i) {
                              ++visited;
                              if (i == 10) throw 7;
                            }),
               int);
  EXPECT_LT(visited, uint64_t{1} << 30);
}

TEST(ParallelFor, NestsAndSumsByIndex) {
  std::vector<uint64_t> sums(16);
  parallel_for(16, 4, [&](uint64_t i) {
    std::vector<uint64_t> parts(50);
    parallel_for(50, 3, [&](uint64_t j) { parts[j] = i * j; });
    for (const uint64_t part : parts) sums[i] += part;
  });
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(sums[i], i * 49 * 50 / 2);
}

TEST(DefaultThreads, AtMostTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_GE(default_threads(), 1);
  EXPECT_LE(default_threads(), CPU_COUNT(&all));
  size_t first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  std::thread([&] {  // the mask is a thread's own
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(default_threads(), 1);
  })
      .join();
}

}  // namespace
}  // namespace nibble
