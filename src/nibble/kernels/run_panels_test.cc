#include "nibble/kernels/run_panels.h"

#include <gtest/gtest.h>

#include "nibble/kernels/matrix_for_test.h"
#include "nibble/kernels/select.h"

namespace nibble {
namespace {

// Three matrices of different sizes, one of them without tokens, on 1 to 4 threads: the bits of one panel each.
TEST(RunPanels, threads_and_pieces_change_nothing) {
  RngForTest rng{21};
  const PackedForTest first("mxfp4", 200, 256, &rng), second("int4-g32", 33, 256, &rng), third("nvfp4", 64, 256, &rng);
  std::vector<float> x(5 * 256);
  for (float& value : x) value = rng.normal();
  Int8Quantizer quantizers[3];
  const PackedForTest* matrices[] = {&first, &second, &third};
  const uint64_t tokens[] = {5, 1, 0};
  std::vector<float> wanted[3];
  std::vector<PanelJob> jobs(3);
  for (size_t i = 0; i < 3; ++i) {
    const WeightLayout& layout = matrices[i]->layout;
    jobs[i].panel = choose_kernel(layout, ActivationKind::kInt8).panel(layout);
    PanelTask& task = jobs[i].task;
    task.weights = &matrices[i]->matrix;
    task.group_end = layout.row_groups();
    task.tokens = tokens[i];
    task.int8 = quantizers[i].run(layout, x.data(), tokens[i], 256);
    task.out_stride = layout.n;
    wanted[i].assign(5 * layout.n, -1);
    task.out = wanted[i].data();
    jobs[i].panel(task);
  }
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    std::vector<float> got[3];
    for (size_t i = 0; i < 3; ++i) {
      got[i].assign(wanted[i].size(), -1);
      jobs[i].task.out = got[i].data();
    }
    run_panels(jobs, &pool);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::memcmp(got[i].data(), wanted[i].data(), got[i].size() * sizeof(float)), 0) << threads << ", " << i;
    }
  }
}

}  // namespace
}  // namespace nibble
