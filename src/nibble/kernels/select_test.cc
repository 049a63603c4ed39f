#include "nibble/kernels/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/error.h"

namespace nibble {
namespace {

WeightLayout layout_of(const char* format) { return choose_layout(parse_format(format), 64, 256).layout.value(); }

TEST(Select, one_is_chosen_and_every_other_has_its_reason) {
  for (const char* format : {"mxfp4", "bf16", "int8-g32", "fp8-block"}) {
    int chosen = 0;
    for (const Candidate& candidate : candidates(layout_of(format), ActivationKind::kF32)) {
      chosen += candidate.verdict == Verdict::kChosen ? 1 : 0;
      EXPECT_EQ(candidate.reason.empty(), candidate.verdict == Verdict::kOk) << candidate.kernel->name;
    }
    EXPECT_EQ(chosen, 1) << format;
  }
}

TEST(Select, by_name) {
  EXPECT_EQ(choose_kernel(layout_of("mxfp4"), ActivationKind::kInt8, "reference").name, "reference");
  try {
    choose_kernel(layout_of("mxfp4"), ActivationKind::kInt8, "tensor-core");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("reference (int8): not the one asked for"));
  }
}

TEST(Select, floats_have_no_integer_products) {
  EXPECT_THROW(choose_kernel(layout_of("bf16"), ActivationKind::kInt8), Error);
}

TEST(Select, a_lesser_instruction_set_is_respected) {
  ASSERT_EQ(setenv("NIBBLE_ISA", "scalar", 1), 0);
  const std::string_view name = choose_kernel(layout_of("mxfp4"), ActivationKind::kInt8).name;
  ASSERT_EQ(unsetenv("NIBBLE_ISA"), 0);
  EXPECT_EQ(name, "reference");
}

}  // namespace
}  // namespace nibble
