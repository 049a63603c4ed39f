// Which weights are quantized, by role and by name, and why. Every decision has a reason; a pattern that matches
// nothing is an error that quotes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/text_pool.h"
#include "nibble/models/model.h"
#include "nibble/quantize/request.h"

namespace nibble {

enum class Action : uint8_t {
  kQuantized,  // rounded to the target format
  kRecast,     // moved to the target format or layout without rounding
  kKept,       // known, left in its own type on purpose
  kCopied,     // not a weight we know or could quantize
};
std::string_view action_name(Action action);

struct Decision {
  bool selected = false;  // wanted in the target format
  bool known = true;      // false: role unknown
  std::string_view reason;
};

// Errors for words of --include and --keep that are no role, all_linears or name:GLOB, and for malformed --generic
// patterns: what can be told without a checkpoint.
void check_words(const QuantizeRequest& request);

// One decision per weight of the model. Errors: unknown family without --generic (names the family; with a stack of
// dense experts also its shape and both readings), a pattern or role without a match, one that matches nothing that can
// be quantized, a selection that --keep takes back altogether, and what check_words refuses. `reasons` holds their
// texts.
std::vector<Decision> decide(const Model& model, const QuantizeRequest& request, TextPool* reasons);

}  // namespace nibble
