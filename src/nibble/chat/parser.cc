#include "nibble/chat/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nibble/base/error.h"

namespace nibble::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData: return "text";
    case TokenKind::kVariableBegin: return "'{{'";
    case TokenKind::kVariableEnd: return "'}}'";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kString: return "a string";
    case TokenKind::kEnd: return "the end of the template";
    default: return fmt::format("'{}'", token.text);
  }
}

class Parser {
 public:
  explicit Parser(TokenReader& reader) : reader_(reader) {}

  Block whole() {
    Block body = block({});
    if (!reader_.is(TokenKind::kEnd)) reader_.refuse_unexpected("the end of the template");
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Up to a tag whose name is one of `ends`, which is the next token then.
  Block block(Ends ends) {
    const NestingGuard guard(reader_);
    Block body;
    while (!reader_.is(TokenKind::kEnd)) {
      if (reader_.is(TokenKind::kData)) {
        const Token data = reader_.take();
        auto text = std::make_unique<Expr>();
        text->at = data.at;
        text->constant = Value{template_text(data.text)};
        output(body, data.at).push_back(std::move(text));
      } else if (reader_.is(TokenKind::kVariableBegin)) {
        const Position at = reader_.take().at;
        ExprPtr value = parse_tuple(reader_);
        reader_.expect(TokenKind::kVariableEnd);
        output(body, at).push_back(std::move(value));
      } else {
        reader_.expect(TokenKind::kBlockBegin);
        if (std::ranges::any_of(ends, [this](std::string_view end) { return reader_.is_name(end); })) return body;
        body.push_back(statement());
        reader_.expect(TokenKind::kBlockEnd);
      }
    }
    if (ends.size() > 0) reader_.refuse(fmt::format("the template ends before '{}'", *std::prev(ends.end())));
    return body;
  }

  // The rest of a tag, its block, and the name that ends it; behind that name.
  Block body(Ends ends) {
    reader_.take_operator(":");
    reader_.expect(TokenKind::kBlockEnd);
    return block(ends);
  }
  Block whole_body(std::string_view end) {
    Block made = body({end});
    reader_.take();
    return made;
  }

  static std::vector<ExprPtr>& output(Block& body, Position at) {
    if (body.empty() || body.back()->kind != StatementKind::kOutput) {
      body.push_back(make(StatementKind::kOutput, at));
    }
    return body.back()->exprs;
  }

  static std::unique_ptr<Statement> make(StatementKind kind, Position at) {
    auto made = std::make_unique<Statement>();
    made->kind = kind;
    made->at = at;
    return made;
  }

  std::unique_ptr<Statement> statement() {
    const Token tag = reader_.peek();
    if (tag.kind != TokenKind::kName) reader_.refuse_unexpected("the name of a tag");
    reader_.take();
    if (tag.text == "for") return for_loop(tag.at);
    if (tag.text == "if") return if_else(tag.at);
    if (tag.text == "set") return assignment(tag.at);
    if (tag.text == "macro") return macro(tag.at);
    if (tag.text == "call") return call_block(tag.at);
    if (tag.text == "filter") return filter_block(tag.at);
    if (tag.text == "with") return with(tag.at);
    if (tag.text == "generation") return generation(tag.at);
    if (tag.text == "print") return print(tag.at);
    if (tag.text == "break" || tag.text == "continue") return jump(tag);
    for (const std::string_view end : {"endfor", "endif", "endset", "endmacro", "endcall", "endfilter", "endwith",
                                       "endgeneration", "else", "elif"}) {
      if (tag.text == end) reader_.refuse_at(tag.at, fmt::format("'{}' stands where nothing is to end", end));
    }
    refuse_syntax(reader_.name(), tag.at, fmt::format("the tag '{}' is not supported", tag.text),
                  "use a template that needs no other files and no extensions");
  }

  std::unique_ptr<Statement> for_loop(Position at) {
    auto made = make(StatementKind::kFor, at);
    const TokenReader::Uses before = reader_.uses;
    made->targets.push_back(parse_target(reader_, "in"));
    reader_.expect_name("in");
    made->exprs.push_back(parse_tuple(reader_, false, "recursive"));
    if (reader_.take_name("if")) made->exprs.push_back(parse_expression(reader_));
    if (reader_.is_name("recursive")) reader_.refuse("a loop that is 'recursive' is not supported");
    const TokenReader::Uses outside = reader_.uses;
    ++loops_;
    made->blocks.push_back(body({"else", "endfor"}));
    --loops_;
    made->uses_loop = reader_.uses.loop_read > outside.loop_read;
    made->has_else = reader_.take().text == "else";
    made->blocks.emplace_back();
    if (made->has_else) made->blocks.back() = whole_body("endfor");
    if (reader_.uses.loop_assigned > before.loop_assigned) {
      reader_.refuse_at(at, "Can't assign to special loop variable in for-loop target");
    }
    return made;
  }

  std::unique_ptr<Statement> if_else(Position at) {
    auto made = make(StatementKind::kIf, at);
    while (true) {
      made->exprs.push_back(parse_tuple(reader_, false));
      made->blocks.push_back(body({"elif", "else", "endif"}));
      const std::string end = reader_.take().text;
      if (end == "elif") continue;
      if (end == "else") {
        made->has_else = true;
        made->blocks.push_back(whole_body("endif"));
      }
      return made;
    }
  }

  std::unique_ptr<Statement> assignment(Position at) {
    auto made = make(StatementKind::kSet, at);
    made->targets.push_back(parse_target(reader_, {}, true));
    if (reader_.take_operator("=")) {
      made->exprs.push_back(parse_tuple(reader_));
      return made;
    }
    made->kind = StatementKind::kSetBlock;
    made->call = parse_filters(reader_, nullptr);
    made->blocks.push_back(whole_body("endset"));
    return made;
  }

  void signature(Statement& made) {
    reader_.expect_operator("(");
    while (!reader_.is_operator(")")) {
      if (!made.parameters.empty()) reader_.expect_operator(",");
      Parameter parameter;
      parameter.at = reader_.peek().at;
      parameter.name = reader_.any_name();
      const bool needs_default = !made.parameters.empty() && made.parameters.back().otherwise != nullptr;
      if (std::ranges::any_of(made.parameters, [&](const Parameter& each) { return each.name == parameter.name; })) {
        reader_.refuse_at(parameter.at, fmt::format("the parameter '{}' is there twice", parameter.name));
      }
      if (reader_.take_operator("=")) {
        parameter.otherwise = parse_expression(reader_);
      } else if (needs_default) {
        reader_.refuse("non-default argument follows default argument");
      }
      made.parameters.push_back(std::move(parameter));
    }
    reader_.expect_operator(")");
  }

  // The body of a macro or of a call block, which is one without a name.
  void macro_body(Statement& made, std::string_view end) {
    const TokenReader::Uses before = reader_.uses;
    const size_t loops = std::exchange(loops_, 0);
    made.blocks.push_back(whole_body(end));
    loops_ = loops;
    const auto is_parameter = [&made](std::string_view name) {
      return std::ranges::any_of(made.parameters, [name](const Parameter& each) { return each.name == name; });
    };
    for (const Parameter& parameter : made.parameters) {
      if (parameter.name == "caller" && parameter.otherwise == nullptr && reader_.uses.caller > before.caller) {
        reader_.refuse_at(parameter.at, "the special parameter 'caller' must be omitted or be given a default");
      }
    }
    made.uses_caller = reader_.uses.caller > before.caller;
    made.uses_kwargs = reader_.uses.kwargs > before.kwargs && !is_parameter("kwargs");
    made.uses_varargs = reader_.uses.varargs > before.varargs && !is_parameter("varargs");
  }

  std::unique_ptr<Statement> macro(Position at) {
    auto made = make(StatementKind::kMacro, at);
    made->name = reader_.any_name();
    signature(*made);
    macro_body(*made, "endmacro");
    return made;
  }

  std::unique_ptr<Statement> call_block(Position at) {
    auto made = make(StatementKind::kCallBlock, at);
    if (reader_.is_operator("(")) signature(*made);
    made->call = parse_expression(reader_);
    if (made->call->kind != ExprKind::kCall) reader_.refuse_at(at, "expected a call");
    macro_body(*made, "endcall");
    return made;
  }

  // The part of a text that the model has written: rendered in place, with variables of its own.
  std::unique_ptr<Statement> generation(Position at) {
    auto made = make(StatementKind::kCallBlock, at);
    macro_body(*made, "endgeneration");
    return made;
  }

  std::unique_ptr<Statement> filter_block(Position at) {
    auto made = make(StatementKind::kFilterBlock, at);
    made->call = parse_filters(reader_, nullptr, true);
    made->blocks.push_back(whole_body("endfilter"));
    return made;
  }

  std::unique_ptr<Statement> with(Position at) {
    auto made = make(StatementKind::kWith, at);
    while (!reader_.is(TokenKind::kBlockEnd)) {
      if (!made->targets.empty()) reader_.expect_operator(",");
      made->targets.push_back(parse_target(reader_));
      reader_.expect_operator("=");
      made->exprs.push_back(parse_expression(reader_));
    }
    made->blocks.push_back(whole_body("endwith"));
    return made;
  }

  std::unique_ptr<Statement> print(Position at) {
    auto made = make(StatementKind::kOutput, at);
    while (!reader_.is(TokenKind::kBlockEnd)) {
      if (!made->exprs.empty()) reader_.expect_operator(",");
      made->exprs.push_back(parse_expression(reader_));
    }
    return made;
  }

  std::unique_ptr<Statement> jump(const Token& tag) {
    if (loops_ == 0) reader_.refuse_at(tag.at, fmt::format("'{}' stands outside of a loop", tag.text));
    return make(tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue, tag.at);
  }

  TokenReader& reader_;
  size_t loops_ = 0;  // around the current place, up to the next macro
};

}  // namespace

void TokenReader::expect_operator(std::string_view text) {
  if (!take_operator(text)) refuse_unexpected(fmt::format("'{}'", text));
}

void TokenReader::expect_name(std::string_view text) {
  if (!take_name(text)) refuse_unexpected(fmt::format("'{}'", text));
}

void TokenReader::expect(TokenKind kind) {
  if (!is(kind)) refuse_unexpected(described(Token{kind, "", {}}));
  take();
}

std::string TokenReader::any_name() {
  if (!is(TokenKind::kName)) refuse_unexpected("a name");
  return take().text;
}

void TokenReader::refuse_unexpected(std::string_view wanted) const {
  refuse(fmt::format("expected {}, found {}", wanted, described(peek())));
}

NestingGuard::NestingGuard(TokenReader& reader) : reader_(reader) {
  if (++reader_.depth > reader_.limits().nesting) {
    --reader_.depth;
    reader_.refuse("the template nests too deeply");
  }
}

Template parse_template(std::string_view source, const std::string& name, const ChatLimits& limits) {
  Template made;
  made.name = name;
  TokenReader reader(tokenize(source, name), name, limits);
  made.body = Parser(reader).whole();
  return made;
}

}  // namespace nibble::jinja
