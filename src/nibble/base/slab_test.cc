#include "nibble/base/slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace nibble {
namespace {

TEST(Slab, arrays_lie_apart_and_aligned) {
  Slab slab;
  std::vector<SharedBytes> arrays;
  for (const uint64_t bytes : std::vector<uint64_t>{1, 63, 64, 65, 1000, 0, uint64_t{200} << 20}) {
    arrays.push_back(slab.take(bytes));
    EXPECT_EQ(arrays.back().size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arrays.back().data()) % 64, 0U);
  }
  for (size_t i = 0; i < 5; ++i) std::memset(arrays[i].data(), static_cast<int>(i + 1), arrays[i].size());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(arrays[i].data()[0], static_cast<std::byte>(i + 1));
    EXPECT_EQ(arrays[i].data()[arrays[i].size() - 1], static_cast<std::byte>(i + 1));
  }
  EXPECT_EQ(arrays[1].data() - arrays[0].data(), 64);
}

TEST(Slab, memory_outlives_the_slab) {
  SharedBytes kept, copy;
  {
    Slab slab;
    kept = slab.take(100);
    std::memset(kept.data(), 7, 100);
    slab.start_anew();
    EXPECT_NE(slab.take(100).data(), kept.data() + 128);
    copy = kept;
    kept = AlignedBytes(64);
  }
  EXPECT_EQ(copy.data()[99], std::byte{7});
  EXPECT_EQ(kept.size(), 64U);
}

TEST(Slab, threads_get_memory_of_their_own) {
  Slab slab;
  std::vector<std::vector<SharedBytes>> of_thread(4);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        of_thread[t].push_back(slab.take(1000));
        std::memset(of_thread[t].back().data(), static_cast<int>(t), 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < 4; ++t) {
    for (const SharedBytes& array : of_thread[t]) {
      ASSERT_EQ(array.data()[0], static_cast<std::byte>(t));
      ASSERT_EQ(array.data()[999], static_cast<std::byte>(t));
    }
  }
}

}  // namespace
}  // namespace nibble
