#include "nibble/engine/bench/floor.h"

#include <gtest/gtest.h>

#include <vector>

namespace nibble {
namespace {

// Rates whose quotients are exact.
Device machine() {
  Device device;
  device.memory_bandwidth = 32;
  device.int8_flops = 1024;
  device.f32_flops = 256;
  return device;
}

OpWork work(double int8, double f32, double bytes) { return {int8, f32, bytes}; }

TEST(Floor, of_a_step_is_the_longer_of_reading_and_multiplying) {
  const Floor reading = floor_of(work(1024, 0, 64), machine());
  EXPECT_EQ(reading.seconds, 2);
  EXPECT_EQ(reading.ceiling, "memory");
  const Floor int8 = floor_of(work(4096, 0, 64), machine());
  EXPECT_EQ(int8.seconds, 4);
  EXPECT_EQ(int8.ceiling, "int8");
  const Floor f32 = floor_of(work(0, 4096, 64), machine());
  EXPECT_EQ(f32.seconds, 16);
  EXPECT_EQ(f32.ceiling, "f32");
}

// Queries in one arithmetic beside values in another: the same cores do both.
TEST(Floor, arithmetics_of_one_step_add_up) {
  const Floor both = floor_of(work(2048, 768, 128), machine());
  EXPECT_EQ(both.seconds, 2 + 3);
  EXPECT_EQ(both.ceiling, "f32");
}

TEST(Floor, of_two_steps_at_two_peaks_is_their_sum) {
  const std::vector<OpWork> steps = {work(4096, 0, 64), work(0, 512, 32)};
  const Floor floor = floor_of(steps, machine());
  EXPECT_EQ(floor.seconds, 4 + 2);
  EXPECT_EQ(floor.ceiling, "int8");
}

// Reading of one step does not hide behind the multiplying of another.
TEST(Floor, of_steps_is_more_than_that_of_their_sum) {
  const std::vector<OpWork> steps = {work(4096, 0, 0), work(0, 0, 96), work(0, 0, 64)};
  EXPECT_EQ(floor_of(steps, machine()).seconds, 4 + 3 + 2);
  EXPECT_EQ(floor_of(steps, machine()).ceiling, "memory");
  EXPECT_EQ(floor_of(sum_of(steps), machine()).seconds, 5);
}

TEST(Floor, what_was_not_measured_costs_nothing) {
  Device lacking = machine();
  lacking.int8_flops = 0;
  EXPECT_EQ(floor_of(work(1e9, 256, 16), lacking).seconds, 1);
  EXPECT_EQ(floor_of(std::span<const OpWork>(), machine()).seconds, 0);
}

}  // namespace
}  // namespace nibble
