// Against vectors of the model's own program (tools/make_tensor_core_goldens.py).
#include "nibble/kernels/cpu/reference/tensor_core.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

std::vector<uint8_t> bytes_of(const Json& json, const char* key) {
  const auto hex = json.at(key).get<std::string>();
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// One hexadecimal digit each.
std::vector<uint8_t> codes_of(const Json& json, const char* key) {
  std::vector<uint8_t> codes;
  for (const char digit : json.at(key).get<std::string>()) {
    codes.push_back(static_cast<uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10));
  }
  return codes;
}

uint32_t word_of(const std::vector<uint8_t>& bytes, uint64_t index) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + 4 * index, 4);
  return word;
}

// One output of a case, by steps of 64 columns.
float computed(const Json& json, uint64_t output, uint64_t columns, float acc) {
  const std::vector<uint8_t> weights = codes_of(json, "weights"), activations = codes_of(json, "activations");
  const std::vector<uint8_t> ws = bytes_of(json, "weight_scales"), xs = bytes_of(json, "activation_scales");
  const bool powers = json.at("scale") == "e8m0";
  const ScaleType type = powers ? ScaleType::kE8M0 : ScaleType::kE4M3;
  const uint64_t block = powers ? 32 : 16, blocks = columns / block;
  for (uint64_t begin = 0; begin < columns; begin += 64) {
    TensorCoreGroup groups[kTensorCoreGroups];
    for (uint64_t g = 0; g < kTensorCoreGroups; ++g) {
      const uint64_t first = begin + g * kTensorCoreGroup;
      groups[g].all_zero = true;
      for (uint64_t c = first; c < first + kTensorCoreGroup; ++c) {
        const double product = static_cast<double>(e2m1_decode(weights[output * columns + c])) *
                               static_cast<double>(e2m1_decode(activations[output * columns + c]));
        groups[g].sum += product;
        groups[g].all_zero = groups[g].all_zero && product == 0;
      }
      groups[g].weight_scale = scale_decode(type, ws[output * blocks + first / block]);
      groups[g].activation_scale = scale_decode(type, xs[output * blocks + first / block]);
      groups[g].scale_exponent = powers ? -127 : -6;
    }
    acc = tensor_core_step(groups, acc);
  }
  return acc;
}

TEST(TensorCore, equals_the_models_own_vectors) {
  const Json golden = read_json(Path(NIBBLE_SOURCE_DIR) / "tests/golden/kernels/tensor_core.json", uint64_t{1} << 24);
  uint64_t compared = 0;
  for (const Json& json : golden.at("cases")) {
    const std::vector<uint8_t> start = bytes_of(json, "start"), out = bytes_of(json, "out");
    for (uint64_t i = 0; i < golden.at("outputs").get<uint64_t>(); ++i) {
      const float got = computed(json, i, json.at("columns").get<uint64_t>(), bits_float(word_of(start, i)));
      ASSERT_EQ(float_bits(got), word_of(out, i)) << "case " << compared / 16 << ", output " << i;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 72U * 16);
}

}  // namespace
}  // namespace nibble
