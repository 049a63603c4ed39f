#include "nibble/quantize/shard_names.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(ShardNames, ThoseThatAreGivenAreKnown) {
  EXPECT_EQ(shard_name(0, 1), "model.safetensors");
  EXPECT_EQ(shard_name(1, 7), "model-00002-of-00007.safetensors");
  for (const size_t count : {1u, 2u, 99'999u, 100'000u, 1'234'567u}) {
    EXPECT_TRUE(is_shard_name(shard_name(0, count))) << count;
    EXPECT_TRUE(is_shard_name(shard_name(count - 1, count))) << count;
  }
}

TEST(ShardNames, NoOthersAre) {
  for (const char* name : {"",
                           "model",
                           "model.safetensors.partial",
                           "model-user.safetensors",
                           "model-of-.safetensors",
                           "model-of-",
                           "model--of-.safetensors",
                           "model-00000-of-00002.safetensors",
                           "model-00003-of-00002.safetensors",
                           "model-00001-of-00001.safetensors",
                           "model-1-of-2.safetensors",
                           "model-000001-of-00002.safetensors",
                           "model-00001-of-00002.safetensors.index.json",
                           "../model-00001-of-00002.safetensors",
                           "model-00001-of-00002-of-00003.safetensors",
                           "model-0000x-of-00002.safetensors",
                           "Model.safetensors",
                           "model-00001-of-99999999999999999999999.safetensors",
                           "model-+0001-of-00002.safetensors",
                           "notes.txt"})
    EXPECT_FALSE(is_shard_name(name)) << name;
}

}  // namespace
}  // namespace nibble
