#include "nibble/base/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(Finding, OfAnErrorAndBack) {
  const Error error = Error("the scale is zero").file("f").tensor("t").value("at", 3).way_out("quantize again");
  const Finding finding = finding_of(error, "zero-scale");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.rule, "zero-scale");
  EXPECT_EQ(finding.file, "f");
  EXPECT_EQ(finding.tensor, "t");
  EXPECT_EQ(finding.message, "the scale is zero; try: quantize again");
  EXPECT_EQ(finding.values, error.values());
  const Error back = error_of(finding);
  EXPECT_EQ(back.file(), "f");
  EXPECT_EQ(back.tensor(), "t");
  EXPECT_EQ(back.values(), error.values());
  EXPECT_EQ(back.message(), "the scale is zero");
  ASSERT_EQ(back.ways_out().size(), 2u);
  EXPECT_EQ(back.ways_out()[0], "quantize again");
}

TEST(Finding, KeepsWhatWasBeingDoneAndEveryWayOut) {
  const Error error =
      Error("no such rule").context("reading the recipe").context("verifying").way_out("copy it").way_out("leave it");
  EXPECT_EQ(finding_of(error, "r").message,
            "no such rule [while reading the recipe] [while verifying]; try: copy it; try: leave it");
}

TEST(Finding, OnlyErrorsThrow) {
  Findings findings{{Severity::kNote, "a", "", "", "note", {}}, {Severity::kWarning, "b", "", "", "warning", {}}};
  EXPECT_FALSE(has_error(findings));
  EXPECT_NO_THROW(throw_first_error(findings));
  findings.push_back({Severity::kError, "c", "", "", "first", {}});
  findings.push_back({Severity::kError, "d", "", "", "second", {}});
  EXPECT_TRUE(has_error(findings));
  try {
    throw_first_error(findings);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "first");
  }
  EXPECT_FALSE(has_error({}));
}

TEST(Finding, SeverityNames) {
  EXPECT_STREQ(severity_name(Severity::kNote), "note");
  EXPECT_STREQ(severity_name(Severity::kWarning), "warning");
  EXPECT_STREQ(severity_name(Severity::kError), "error");
}

}  // namespace
}  // namespace nibble
