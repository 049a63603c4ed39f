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

// Sets an environment variable for one test and puts it back.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

struct ScopedIsa : ScopedVariable {
  explicit ScopedIsa(const char* value) : ScopedVariable("NIBBLE_ISA", value) {}
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

TEST(CpuFeatures, C108_extensions_are_taken_away_one_by_one) {
  const ScopedIsa unset(nullptr);
  bool vnni = false, avx_vnni = false, bf16 = false;
  {
    const ScopedVariable all("NIBBLE_WITHOUT", "");
    vnni = has_avx512_vnni();
    avx_vnni = has_avx_vnni();
    bf16 = has_avx512_bf16();
  }
  {
    const ScopedVariable without("NIBBLE_WITHOUT", "amx,vnni");
    EXPECT_FALSE(has_avx512_vnni());
    EXPECT_FALSE(has_avx_vnni());
    EXPECT_FALSE(has_amx_int8());
    EXPECT_EQ(has_avx512_bf16(), bf16);
  }
  const ScopedVariable without("NIBBLE_WITHOUT", "bf16");
  EXPECT_FALSE(has_avx512_bf16());
  EXPECT_EQ(has_avx512_vnni(), vnni);
  EXPECT_EQ(has_avx_vnni(), avx_vnni);
}

TEST(CpuFeatures, UnknownExtensionsAreRefused) {
  const ScopedIsa unset(nullptr);
  const ScopedVariable without("NIBBLE_WITHOUT", "vnni,sse9");
  EXPECT_THROW(has_avx512_vnni(), Error);
}

}  // namespace
}  // namespace nibble
