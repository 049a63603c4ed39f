#include "nibble/engine/bench/tune.h"

#include <gtest/gtest.h>

#include <map>

#include "nibble/kernels/select.h"

namespace nibble {
namespace {

TEST(Tune, C109_every_number_of_tokens_gets_one_of_the_kernels_that_run) {
  ThreadPool pool(2);
  TuneRequest request;
  request.formats = {"mxfp4", "bf16", "mxfp4"};
  request.arithmetic.integer_activations = ActivationKind::kInt8;
  request.rows = request.cols = 64;
  request.seconds = 1e-4;
  request.memory = 1;
  const TuneResult result = tune(request, &pool, {});
  ASSERT_EQ(result.table.size(), 2 * kTokenClasses);  // the same format twice is measured once
  std::map<std::pair<std::string, uint64_t>, int> chosen;
  for (const TuneRow& row : result.rows) {
    EXPECT_GT(row.seconds, 0);
    chosen[{row.format, row.tokens}] += row.chosen ? 1 : 0;
  }
  EXPECT_EQ(chosen.size(), 2 * kTokenClasses);
  for (const auto& [key, count] : chosen) EXPECT_EQ(count, 1) << key.first << " " << key.second;
  TuningTable table;
  for (const TuningRow& row : result.table) table.add(row);
  const WeightLayout layout = choose_layout(parse_format("mxfp4"), 64, 64).layout.value();
  for (const TuningRow& row : result.table) {
    if (row.layout != layout_kind(layout)) continue;
    EXPECT_EQ(choose_kernel(layout, ActivationKind::kInt8, "", row.tokens, table).name, row.kernel) << row.tokens;
  }
}

}  // namespace
}  // namespace nibble
