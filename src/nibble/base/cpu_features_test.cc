#include "nibble/base/cpu_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "nibble/base/error.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Sets NIBBLE_ISA for one test and puts it back.
class ScopedIsa {
 public:
  explicit ScopedIsa(const char* value) {
    if (const char* before = std::getenv("NIBBLE_ISA")) before_ = before;
    value == nullptr ? ::unsetenv("NIBBLE_ISA") : ::setenv("NIBBLE_ISA", value, 1);
  }
  ~ScopedIsa() { before_ ? ::setenv("NIBBLE_ISA", before_->c_str(), 1) : ::unsetenv("NIBBLE_ISA"); }
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST(CpuFeatures, TheKernelSaysTheSame) {
  const ScopedIsa unset(nullptr);
  std::ifstream file("/proc/cpuinfo");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text = " " + text.substr(text.find("flags"));
  text = text.substr(0, text.find('\n')) + " ";
  const auto has = [&](std::initializer_list<const char*> flags) {
    return std::all_of(flags.begin(), flags.end(),
                       [&](const char* flag) { return text.find(" " + std::string(flag) + " ") != std::string::npos; });
  };
  const bool avx2 = has({"avx2", "fma", "f16c", "bmi2"});
  const bool avx512 = avx2 && has({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi"});
  EXPECT_EQ(best_isa(), avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kScalar);
}

TEST(CpuFeatures, TheVariableOnlyLowers) {
  Isa best{};
  {
    const ScopedIsa unset(nullptr);
    best = best_isa();
  }
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const ScopedIsa set(std::string(isa_name(isa)).c_str());
    EXPECT_EQ(best_isa(), std::min(isa, best));
  }
}

TEST(CpuFeatures, UnknownNamesAreRefused) {
  for (const char* name : {"", "sse9", "AVX2"}) {
    const ScopedIsa set(name);
    try {
      best_isa();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("NIBBLE_ISA"), HasSubstr("scalar, avx2 or avx512")));
    }
  }
}

}  // namespace
}  // namespace nibble
