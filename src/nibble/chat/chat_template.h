// The prompt of a conversation, as the checkpoint's own Jinja template writes it.
//
// Templates come with the weights and are not trusted. A small interpreter runs the part of Jinja that published
// templates use, with the settings of `transformers` (trim_blocks, lstrip_blocks, loop controls, `raise_exception`,
// `strftime_now`, `tojson`, the `generation` tag). It reaches nothing outside its inputs; a construct that it does not
// know is refused by name, line and column before anything is rendered; steps, nesting and output are bounded.
// Its output equals that of Python's jinja2, byte for byte.
//
// Characters remember where they came from: text of the template may hold control tokens, text of the conversation may
// not (TextSpan in tokenizer/tokenizer.h), through every filter, slice and concatenation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct ChatLimits {
  uint64_t steps = 10'000'000;           // statements and expressions evaluated
  uint64_t output_bytes = 64ULL << 20;   // rendered text, and any one string on the way
  uint64_t source_bytes = 1ULL << 20;    // of the template
  uint64_t memory_bytes = 512ULL << 20;  // all values that are alive at one time
  uint32_t nesting = 200;                // of blocks and expressions, of macro calls, of values, each
};

// What `strftime_now` says; fixed in tests. Seconds since the epoch, in UTC.
struct ChatClock {
  int64_t seconds = 0;
};

class ChatTemplate {
 public:
  // Parses `source`; `name` is the file that errors name. Throws Error with line and column: for syntax, for a
  // construct that is not known, by its name, and for a template that is too large.
  static ChatTemplate parse(std::string_view source, const std::string& name, const ChatLimits& limits = {});

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `variables` is an object whose members the template sees by name: messages, tools, add_generation_prompt,
  // bos_token, eos_token, and what the user passes besides (enable_thinking). All text in it is the user's, but for the
  // members that `trusted` names at the top (bos_token, eos_token). Neighbouring spans of the same kind are one span.
  // Throws Error with the template's own words for raise_exception, and for a limit that was reached.
  std::vector<TextSpan> render(const nlohmann::ordered_json& variables, const std::vector<std::string>& trusted = {},
                               const ChatClock& clock = {}) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace nibble
