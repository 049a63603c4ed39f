#include "nibble/quantize/side_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

constexpr uint32_t kGgufBf16 = 30, kGgufF16 = 1;

// A GGUF file whose embedding is of another type than its other matrices; both have two bytes.
std::string with_embedding_in_f16(std::string gguf) {
  const std::string name = "token_embd.weight";
  const size_t type = gguf.find(name) + name.size() + 4 + 2 * 8;  // behind the number of dimensions and two of these
  uint32_t stored = 0;
  std::memcpy(&stored, gguf.data() + type, 4);
  EXPECT_EQ(stored, kGgufBf16);
  std::memcpy(gguf.data() + type, &kGgufF16, 4);
  return gguf;
}

// A GGUF file says of each tensor what it is and nothing of the whole.
TEST(SideFiles, TheConfigurationOfAGgufNamesTheTypeThatIsWritten) {
  log::set_level(log::Level::kOff);
  const testing::TempDir dir;
  const Path golden = testing::golden_dir() / "models/gpt_oss_gguf/model.gguf";
  write_atomically(dir / "model.gguf", with_embedding_in_f16(read_text(golden, UINT64_MAX)));
  for (const char* format : {"mxfp4", "bf16"}) {
    QuantizeRequest request;
    request.source = dir / "model.gguf";
    request.target = dir / format;
    request.format = parse_format(format);
    if (!request.format.is_dense()) request.rule = default_rule(request.format);
    request.quiet = true;
    quantize(request);
    testing::TinyCheckpoint target = testing::TinyCheckpoint::load(dir / format);
    EXPECT_EQ(target.config()["torch_dtype"], "bfloat16") << format;
    for (const char* tensor : {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"})
      EXPECT_EQ(target.at(tensor).dtype, Dtype::kBF16) << format << " " << tensor;
  }
}

TEST(SideFiles, Documents) {
  for (const char* name : {"README.md", "LICENSE", "LICENSE.txt", "docs/figure.png", "USE_POLICY.md"})
    EXPECT_TRUE(is_document(name)) << name;
  for (const char* name :
       {"tokenizer.json", "merges.txt", "chat_template.jinja", "README/tokenizer.json", "md", "a.py"})
    EXPECT_FALSE(is_document(name)) << name;
}

}  // namespace
}  // namespace nibble
