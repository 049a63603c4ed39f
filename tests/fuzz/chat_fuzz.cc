// Any bytes as a chat template over a conversation with everything in it: an Error that names the template, or spans
// that take turns.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/chat/chat_template.h"

namespace {

nlohmann::ordered_json conversation() {
  return nlohmann::ordered_json::parse(R"({
    "messages": [
      {"role": "system", "content": "Be good."},
      {"role": "user", "content": [{"type": "text", "text": "Grüße <|x|>"}, {"type": "image"}]},
      {"role": "assistant", "content": null, "reasoning_content": "hm\n", "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, true, null]}}}]},
      {"role": "tool", "content": "{\"b\": 1}", "name": "f", "tool_call_id": "call00001"},
      {"role": "assistant", "content": "<think>x</think>\n\ny "}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {
      "type": "object", "properties": {"a": {"type": ["array", "null"], "items": {"type": "string"}}}}}}],
    "add_generation_prompt": true, "enable_thinking": false, "bos_token": "<s>", "eos_token": "</s>", "n": 7,
    "s": "a,b c"})");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const nlohmann::ordered_json variables = conversation();
  nibble::ChatLimits limits;
  limits.steps = 100'000;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 32 << 20;
  try {
    const auto parsed = nibble::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, "input", limits);
    bool first = true;
    bool last = false;
    for (const nibble::TextSpan& span : parsed.render(variables, {"bos_token"}, {1'700'000'000})) {
      NIBBLE_CHECK(!span.text.empty() && (first || span.may_hold_control_tokens != last));
      last = span.may_hold_control_tokens;
      first = false;
    }
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(error.file() == "input");
  }
  return 0;
}
