#include "nibble/verify/finding_list.h"

#include <gtest/gtest.h>

#include <string>

namespace nibble {
namespace {

Finding finding(Severity severity, const char* rule, const std::string& tensor) {
  return {severity, rule, "f", tensor, "m", {}};
}

TEST(FindingList, ComparesNumbersInsideNames) {
  EXPECT_LT(compare_natural("layers.2.x", "layers.10.x"), 0);
  EXPECT_GT(compare_natural("layers.10.x", "layers.9.y"), 0);
  EXPECT_EQ(compare_natural("a1", "a1"), 0);
  EXPECT_LT(compare_natural("a", "a1"), 0);
  EXPECT_NE(compare_natural("a01", "a1"), 0);
  EXPECT_LT(compare_natural("99999999999999999999999", "100000000000000000000000"), 0);
}

TEST(FindingList, ErrorsFirstThenRuleThenTensor) {
  Findings findings = {finding(Severity::kNote, "a", "1"), finding(Severity::kError, "b", "t10"),
                       finding(Severity::kError, "b", "t9"), finding(Severity::kWarning, "a", "1")};
  sort_and_group(&findings);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].tensor, "t9");
  EXPECT_EQ(findings[1].tensor, "t10");
  EXPECT_EQ(findings[2].severity, Severity::kWarning);
  EXPECT_EQ(findings[3].severity, Severity::kNote);
}

TEST(FindingList, CausesFirstAndConsequencesLast) {
  Findings findings = {finding(Severity::kError, "empty-parameter", "1"),
                       finding(Severity::kError, "missing-shard", "2"),
                       finding(Severity::kError, "unfinished-run", "3"), finding(Severity::kNote, "a", "4")};
  sort_and_group(&findings);
  EXPECT_EQ(findings[0].rule, "unfinished-run");
  EXPECT_EQ(findings[1].rule, "missing-shard");
  EXPECT_EQ(findings[2].rule, "empty-parameter");
  EXPECT_EQ(findings[3].severity, Severity::kNote);
}

TEST(FindingList, HalfAMillionFindingsBecomeTwentyOneLines) {
  Findings findings;
  for (int i = 0; i < 500'000; ++i) findings.push_back(finding(Severity::kError, "r", std::to_string(i)));
  findings.push_back(finding(Severity::kWarning, "r", "w"));
  sort_and_group(&findings);
  ASSERT_EQ(findings.size(), 22u);
  EXPECT_EQ(findings[0].tensor, "0");
  EXPECT_EQ(findings[19].tensor, "19");
  EXPECT_NE(findings[20].message.find("500,000"), std::string::npos) << findings[20].message;
  EXPECT_EQ(findings[20].severity, Severity::kError);
  EXPECT_EQ(findings[21].tensor, "w");
}

}  // namespace
}  // namespace nibble
