#include "nibble/verify/matrix_map.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

struct Opened {
  explicit Opened(const TinyCheckpoint& tiny) {
    tiny.write(dir / "m");
    Findings findings;
    checkpoint.emplace(Checkpoint::scan(dir / "m", {}, &findings));
    model = load_model(*checkpoint, &findings);
  }
  TempDir dir;
  std::optional<Checkpoint> checkpoint;
  Model model;
};

TEST(MatrixMap, EveryMatrixHasOneKey) {
  const Opened opened(TinyCheckpoint::qwen3_moe());
  const MatrixMap map(opened.model);
  std::set<std::string> keys;
  for (size_t i = 0; i < map.places().size(); ++i) {
    keys.insert(map.key(i));
    EXPECT_EQ(map.find(map.key(i)), &map.places()[i]);
  }
  EXPECT_EQ(keys.size(), 45u);
}

// The same experts as stacks of gpt-oss, dense and packed: the same keys, and rows that belong together.
TEST(MatrixMap, FusedStacksAreTakenApart) {
  TinyCheckpoint tiny = TinyCheckpoint::gpt_oss();
  const Opened dense(tiny);
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  const Opened packed(tiny);
  const MatrixMap a(dense.model);
  const MatrixMap b(packed.model);
  ASSERT_EQ(a.places().size(), b.places().size());
  size_t experts = 0;
  size_t biases = 0;
  for (size_t i = 0; i < a.places().size(); ++i) {
    const MatrixPlace& place = a.places()[i];
    const MatrixPlace* partner = b.find(a.key(i));
    ASSERT_NE(partner, nullptr) << a.key(i);
    EXPECT_EQ(place.rows, partner->rows);
    EXPECT_EQ(place.cols, partner->cols);
    if (place.part.empty()) continue;
    biases += place.rows == 1 ? 1 : 0;
    if (place.rows == 1) continue;
    ++experts;
    const auto x = read_matrix_rows(*dense.checkpoint, dense.model.table.weights()[place.weight], place, 1, 3);
    const auto y = read_matrix_rows(*packed.checkpoint, packed.model.table.weights()[partner->weight], *partner, 1, 3);
    ASSERT_EQ(x.size(), 3 * place.cols);
    ASSERT_EQ(y.size(), x.size());
    double noise = 0;
    double signal = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      noise += static_cast<double>((x[j] - y[j]) * (x[j] - y[j]));
      signal += static_cast<double>(x[j] * x[j]);
    }
    EXPECT_LT(noise, 0.1 * signal) << a.key(i);
  }
  EXPECT_EQ(experts, 24u);  // 2 layers, 4 experts, gate, up and down
  EXPECT_EQ(biases, 24u);
}

}  // namespace
}  // namespace nibble
