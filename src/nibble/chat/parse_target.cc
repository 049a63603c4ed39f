// What is assigned to.
#include <fmt/format.h>

#include "nibble/chat/parser.h"

namespace nibble::jinja {
namespace {

Target one_target(TokenReader& reader, bool with_attributes);

Target several_targets(TokenReader& reader, std::string_view end_name, bool with_attributes, bool in_brackets) {
  Target out;
  out.kind = Target::Kind::kTuple;
  out.at = reader.peek().at;
  bool is_tuple = false;
  while (true) {
    if (!out.parts.empty()) reader.expect_operator(",");
    if (reader.ends_tuple(end_name)) break;
    out.parts.push_back(one_target(reader, with_attributes));
    if (!reader.is_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple || (out.parts.empty() && in_brackets)) return out;
  if (out.parts.empty()) reader.refuse_unexpected("a name");
  Target only = std::move(out.parts.front());
  return only;
}

Target one_target(TokenReader& reader, bool with_attributes) {
  if (reader.take_operator("(")) {
    const NestingGuard guard(reader);
    Target inner = several_targets(reader, {}, with_attributes, true);
    reader.expect_operator(")");
    return inner;
  }
  Target out;
  out.at = reader.peek().at;
  if (!reader.is(TokenKind::kName)) reader.refuse_unexpected("a name to assign to");
  out.name = reader.take().text;
  for (const std::string_view fixed : {"true", "false", "none", "True", "False", "None"}) {
    if (out.name == fixed) reader.refuse_at(out.at, fmt::format("can't assign to '{}'", fixed));
  }
  if (with_attributes && reader.take_operator(".")) {
    out.kind = Target::Kind::kAttribute;
    out.attribute = reader.any_name();
  } else if (out.name == "loop") {
    ++reader.uses.loop_assigned;
  }
  return out;
}

}  // namespace

Target parse_target(TokenReader& reader, std::string_view end_name, bool with_attributes) {
  return several_targets(reader, end_name, with_attributes, false);
}

}  // namespace nibble::jinja
