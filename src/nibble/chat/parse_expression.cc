#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/parser.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenReader& reader) : reader_(reader) {}

  ExprPtr tuple(bool with_condition, std::string_view end_name, bool in_brackets) {
    const Position at = reader_.peek().at;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (true) {
      if (!items.empty()) reader_.expect_operator(",");
      if (reader_.ends_tuple(end_name)) break;
      items.push_back(with_condition ? condition() : disjunction());
      if (!reader_.is_operator(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items.front());
    if (!is_tuple && !in_brackets) reader_.refuse_unexpected("an expression");
    return make(ExprKind::kTuple, at, std::move(items));
  }

  ExprPtr condition() {
    const NestingGuard guard(reader_);
    Position at = reader_.peek().at;
    ExprPtr value = disjunction();
    while (reader_.take_name("if")) {
      std::vector<ExprPtr> parts;
      parts.push_back(std::move(value));
      parts.push_back(disjunction());
      if (reader_.take_name("else")) parts.push_back(condition());
      value = make(ExprKind::kCondition, at, std::move(parts));
      at = reader_.peek().at;
    }
    return value;
  }

  ExprPtr disjunction() {
    return chain([this] { return conjunction(); }, [this] { return reader_.take_name("or"); }, ExprKind::kOr);
  }

  ExprPtr filters(ExprPtr input, bool begins) {
    while (begins || reader_.is_operator("|")) {
      if (!std::exchange(begins, false)) reader_.take();
      const Position at = reader_.peek().at;
      std::string name = dotted_name();
      std::vector<ExprPtr> children;
      if (input != nullptr) children.push_back(std::move(input));
      CallArguments call;
      if (reader_.is_operator("(")) call = arguments();
      input = make_call(ExprKind::kFilter, at, std::move(children), std::move(call));
      input->native = find_native(jinja::filters(), name);
      if (input->native == nullptr) reader_.refuse_at(at, fmt::format("the filter '{}' is not supported", name));
      // These apply filters and tests by name, and so see more than their arguments.
      for (const char* each : {"map", "select", "reject", "selectattr", "rejectattr"}) {
        if (name == each) input->is_constant = false;
      }
      input->name = std::move(name);
    }
    return input;
  }

  ExprPtr primary() {
    const Token token = reader_.peek();
    switch (token.kind) {
      case TokenKind::kName: return name(reader_.take());
      case TokenKind::kString: {
        std::string text;
        while (reader_.is(TokenKind::kString)) text += reader_.take().text;
        return constant(token.at, Value{template_text(std::move(text))});
      }
      case TokenKind::kInteger:
      case TokenKind::kFloat: return number(reader_.take());
      default: break;
    }
    if (reader_.take_operator("(")) {
      ExprPtr inner = tuple(true, {}, true);
      reader_.expect_operator(")");
      return inner;
    }
    if (reader_.is_operator("[")) return list();
    if (reader_.is_operator("{")) return dict();
    reader_.refuse_unexpected("an expression");
  }

 private:
  ExprPtr make(ExprKind kind, Position at, std::vector<ExprPtr> children) {
    return make_call(kind, at, std::move(children), {});
  }

  ExprPtr make_call(ExprKind kind, Position at, std::vector<ExprPtr> children, CallArguments call) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->at = at;
    expr->is_constant = kind != ExprKind::kName && kind != ExprKind::kCall;
    const auto deepen = [&expr](const ExprPtr& part) {
      if (part == nullptr) return;
      expr->depth = std::max(expr->depth, part->depth + 1);
      expr->is_constant = expr->is_constant && part->is_constant;
    };
    for (const ExprPtr& child : children) deepen(child);
    for (const ExprPtr& argument : call.positional) deepen(argument);
    for (const auto& [name, argument] : call.named) deepen(argument);
    deepen(call.more_positional);
    deepen(call.more_named);
    if (expr->depth > reader_.limits().nesting) reader_.refuse_at(at, "the expression nests too deeply");
    expr->children = std::move(children);
    expr->call = std::move(call);
    return expr;
  }

  ExprPtr pair(ExprKind kind, Position at, ExprPtr left, ExprPtr right) {
    std::vector<ExprPtr> children;
    children.push_back(std::move(left));
    children.push_back(std::move(right));
    return make(kind, at, std::move(children));
  }

  ExprPtr single(ExprKind kind, Position at, ExprPtr child) {
    std::vector<ExprPtr> children;
    children.push_back(std::move(child));
    return make(kind, at, std::move(children));
  }

  ExprPtr constant(Position at, Value value) {
    ExprPtr expr = make(ExprKind::kConstant, at, {});
    expr->constant = std::move(value);
    return expr;
  }

  template <typename Part, typename Take>
  ExprPtr chain(const Part& part, const Take& take, ExprKind kind) {
    Position at = reader_.peek().at;
    ExprPtr left = part();
    while (take()) {
      left = pair(kind, at, std::move(left), part());
      at = reader_.peek().at;
    }
    return left;
  }

  ExprPtr conjunction() {
    return chain([this] { return negation(); }, [this] { return reader_.take_name("and"); }, ExprKind::kAnd);
  }

  ExprPtr negation() {
    if (!reader_.is_name("not")) return comparison();
    const NestingGuard guard(reader_);
    const Position at = reader_.take().at;
    return single(ExprKind::kNot, at, negation());
  }

  bool take_comparison(std::vector<Comparison>* comparisons) {
    constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
        {"==", Comparison::kEqual},     {"!=", Comparison::kNotEqual}, {"<", Comparison::kLess},
        {"<=", Comparison::kLessEqual}, {">", Comparison::kGreater},   {">=", Comparison::kGreaterEqual}};
    for (const auto& [symbol, comparison] : kSymbols) {
      if (!reader_.take_operator(symbol)) continue;
      comparisons->push_back(comparison);
      return true;
    }
    if (reader_.take_name("in")) {
      comparisons->push_back(Comparison::kIn);
      return true;
    }
    if (!reader_.is_name("not") || !reader_.is_name("in", 1)) return false;
    reader_.take();
    reader_.take();
    comparisons->push_back(Comparison::kNotIn);
    return true;
  }

  ExprPtr comparison() {
    const Position at = reader_.peek().at;
    std::vector<ExprPtr> parts;
    std::vector<Comparison> comparisons;
    parts.push_back(sum());
    while (take_comparison(&comparisons)) parts.push_back(sum());
    if (comparisons.empty()) return std::move(parts.front());
    ExprPtr expr = make(ExprKind::kCompare, at, std::move(parts));
    expr->comparisons = std::move(comparisons);
    return expr;
  }

  template <typename Part>
  ExprPtr arithmetic(const Part& part, std::initializer_list<std::pair<std::string_view, Binary>> operations) {
    Position at = reader_.peek().at;
    ExprPtr left = part();
    while (true) {
      const auto* found =
          std::ranges::find_if(operations, [this](const auto& each) { return reader_.is_operator(each.first); });
      if (found == operations.end()) return left;
      reader_.take();
      left = pair(ExprKind::kBinary, at, std::move(left), part());
      left->binary = found->second;
      at = reader_.peek().at;
    }
  }

  ExprPtr sum() {
    return arithmetic([this] { return concatenation(); }, {{"+", Binary::kAdd}, {"-", Binary::kSubtract}});
  }

  ExprPtr concatenation() {
    const Position at = reader_.peek().at;
    std::vector<ExprPtr> parts;
    do parts.push_back(product());
    while (reader_.take_operator("~"));
    return parts.size() == 1 ? std::move(parts.front()) : make(ExprKind::kConcat, at, std::move(parts));
  }

  ExprPtr product() {
    return arithmetic(
        [this] { return power(); },
        {{"*", Binary::kMultiply}, {"/", Binary::kDivide}, {"//", Binary::kFloorDivide}, {"%", Binary::kModulo}});
  }

  ExprPtr power() {
    return arithmetic([this] { return unary(true); }, {{"**", Binary::kPower}});
  }

  ExprPtr unary(bool with_filters) {
    const Position at = reader_.peek().at;
    ExprPtr expr;
    if (reader_.is_operator("-") || reader_.is_operator("+")) {
      const NestingGuard guard(reader_);
      const ExprKind kind = reader_.take().text == "-" ? ExprKind::kNegate : ExprKind::kPlus;
      expr = single(kind, at, unary(false));
    } else {
      expr = primary();
    }
    expr = postfix(std::move(expr));
    return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
  }

  ExprPtr name(const Token& token) {
    const std::string& text = token.text;
    if (text == "true" || text == "True") return constant(token.at, boolean(true));
    if (text == "false" || text == "False") return constant(token.at, boolean(false));
    if (text == "none" || text == "None") return constant(token.at, Value{None{}});
    ExprPtr expr = make(ExprKind::kName, token.at, {});
    expr->name = text;
    if (text == "loop") ++reader_.uses.loop_read;
    if (text == "caller") ++reader_.uses.caller;
    if (text == "kwargs") ++reader_.uses.kwargs;
    if (text == "varargs") ++reader_.uses.varargs;
    return expr;
  }

  ExprPtr number(const Token& token) {
    if (token.kind == TokenKind::kFloat) {
      const auto value = read_float(token.text);
      if (!value) reader_.refuse_at(token.at, "a number is written wrong");
      return constant(token.at, Value{*value});
    }
    bool too_large = false;
    const auto value = read_integer(token.text, 0, &too_large);
    if (!value || too_large) reader_.refuse_at(token.at, "a whole number does not fit 128 bits");
    return constant(token.at, Value{*value});
  }

  ExprPtr list() {
    const Position at = reader_.take().at;
    std::vector<ExprPtr> items;
    while (!reader_.is_operator("]")) {
      if (!items.empty()) reader_.expect_operator(",");
      if (reader_.is_operator("]")) break;
      items.push_back(condition());
    }
    reader_.expect_operator("]");
    return make(ExprKind::kList, at, std::move(items));
  }

  ExprPtr dict() {
    const Position at = reader_.take().at;
    std::vector<ExprPtr> parts;
    while (!reader_.is_operator("}")) {
      if (!parts.empty()) reader_.expect_operator(",");
      if (reader_.is_operator("}")) break;
      parts.push_back(condition());
      reader_.expect_operator(":");
      parts.push_back(condition());
    }
    reader_.expect_operator("}");
    return make(ExprKind::kDict, at, std::move(parts));
  }

  ExprPtr postfix(ExprPtr expr) {
    while (true) {
      if (reader_.is_operator(".")) {
        expr = attribute(std::move(expr));
      } else if (reader_.is_operator("[")) {
        expr = subscript(std::move(expr));
      } else if (reader_.is_operator("(")) {
        expr = call(std::move(expr));
      } else {
        return expr;
      }
    }
  }

  ExprPtr filters_and_tests(ExprPtr expr) {
    while (true) {
      if (reader_.is_operator("|")) {
        expr = filters(std::move(expr), false);
      } else if (reader_.is_name("is")) {
        expr = test(std::move(expr));
      } else if (reader_.is_operator("(")) {
        expr = call(std::move(expr));
      } else {
        return expr;
      }
    }
  }

  ExprPtr attribute(ExprPtr expr) {
    const Position at = reader_.take().at;
    if (reader_.is(TokenKind::kInteger)) {
      ExprPtr index = number(reader_.take());
      return pair(ExprKind::kItem, at, std::move(expr), std::move(index));
    }
    if (!reader_.is(TokenKind::kName)) reader_.refuse_unexpected("a name or a number");
    ExprPtr made = single(ExprKind::kAttribute, at, std::move(expr));
    made->name = reader_.take().text;
    return made;
  }

  // One bound of a slice; None if it is left out.
  ExprPtr bound() {
    if (reader_.is_operator(":") || reader_.is_operator("]") || reader_.is_operator(",")) {
      return constant(reader_.peek().at, Value{None{}});
    }
    return condition();
  }

  ExprPtr subscript(ExprPtr expr) {
    const Position at = reader_.take().at;
    std::vector<ExprPtr> parts;
    parts.push_back(std::move(expr));
    if (reader_.is_operator("]")) {  // value[]: an empty tuple as the key
      reader_.take();
      parts.push_back(make(ExprKind::kTuple, at, {}));
      return make(ExprKind::kItem, at, std::move(parts));
    }
    parts.push_back(bound());
    const bool is_slice = reader_.is_operator(":");
    if (is_slice) {
      reader_.take();
      parts.push_back(bound());
      parts.push_back(reader_.take_operator(":") ? bound() : constant(at, Value{None{}}));
    }
    if (reader_.is_operator(",")) {
      if (is_slice) reader_.refuse("a slice in several dimensions is not supported");
      std::vector<ExprPtr> keys;
      keys.push_back(std::move(parts.back()));
      while (reader_.take_operator(",")) keys.push_back(condition());
      parts.back() = make(ExprKind::kTuple, at, std::move(keys));
    }
    reader_.expect_operator("]");
    return make(is_slice ? ExprKind::kSlice : ExprKind::kItem, at, std::move(parts));
  }

  ExprPtr call(ExprPtr expr) {
    const Position at = reader_.peek().at;
    CallArguments given = arguments();
    std::vector<ExprPtr> children;
    children.push_back(std::move(expr));
    return make_call(ExprKind::kCall, at, std::move(children), std::move(given));
  }

  CallArguments arguments() {
    CallArguments out;
    const auto ensure = [this](bool holds) {
      if (!holds) reader_.refuse("the arguments of a call stand in a wrong order");
    };
    reader_.expect_operator("(");
    for (bool first = true; !reader_.is_operator(")"); first = false) {
      if (!first) reader_.expect_operator(",");
      if (reader_.is_operator(")")) break;
      if (reader_.take_operator("*")) {
        ensure(out.more_positional == nullptr && out.more_named == nullptr);
        out.more_positional = condition();
      } else if (reader_.take_operator("**")) {
        ensure(out.more_named == nullptr);
        out.more_named = condition();
      } else if (reader_.is(TokenKind::kName) && reader_.is_operator("=", 1)) {
        ensure(out.more_named == nullptr);
        std::string key = reader_.take().text;
        reader_.take();
        const bool is_new = std::ranges::none_of(out.named, [&key](const auto& each) { return each.first == key; });
        if (!is_new) reader_.refuse(fmt::format("the argument '{}' is given twice", key));
        out.named.emplace_back(std::move(key), condition());
      } else {
        ensure(out.more_positional == nullptr && out.more_named == nullptr && out.named.empty());
        out.positional.push_back(condition());
      }
    }
    reader_.expect_operator(")");
    return out;
  }

  std::string dotted_name() {
    std::string name = reader_.any_name();
    while (reader_.take_operator(".")) name += "." + reader_.any_name();
    return name;
  }

  // Does an argument without brackets follow the name of a test?
  bool has_bare_argument() const {
    const TokenKind kind = reader_.peek().kind;
    if (kind == TokenKind::kName) {
      return !reader_.is_name("else") && !reader_.is_name("or") && !reader_.is_name("and");
    }
    return kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
           reader_.is_operator("[") || reader_.is_operator("{");
  }

  ExprPtr test(ExprPtr expr) {
    const Position at = reader_.take().at;
    const bool negated = reader_.take_name("not");
    std::string name = dotted_name();
    CallArguments given;
    if (reader_.is_operator("(")) {
      given = arguments();
    } else if (has_bare_argument()) {
      if (reader_.is_name("is")) reader_.refuse("You cannot chain multiple tests with is");
      given.positional.push_back(postfix(primary()));
    }
    std::vector<ExprPtr> children;
    children.push_back(std::move(expr));
    ExprPtr made = make_call(ExprKind::kTest, at, std::move(children), std::move(given));
    made->native = find_native(tests(), name);
    if (made->native == nullptr) reader_.refuse_at(at, fmt::format("the test '{}' is not supported", name));
    made->name = std::move(name);
    return negated ? single(ExprKind::kNot, at, std::move(made)) : std::move(made);
  }

  TokenReader& reader_;
};

}  // namespace

ExprPtr parse_expression(TokenReader& reader) { return ExpressionParser(reader).condition(); }

ExprPtr parse_tuple(TokenReader& reader, bool with_condition, std::string_view end_name) {
  return ExpressionParser(reader).tuple(with_condition, end_name, false);
}

ExprPtr parse_filters(TokenReader& reader, ExprPtr input, bool begins) {
  return ExpressionParser(reader).filters(std::move(input), begins);
}

}  // namespace nibble::jinja
