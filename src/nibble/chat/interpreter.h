// Carries a template out.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "nibble/chat/ast.h"
#include "nibble/chat/run.h"

namespace nibble::jinja {

// The variables of one scope while it is active.
struct Frame {
  Frame* outer = nullptr;
  std::vector<Value> slots;
  bool is_kept = false;  // a macro was defined in it: it lives as long as the rendering
};

class Interpreter final : public Run {
 public:
  Interpreter(const Template& made, const ChatLimits& limits, const ChatClock& now);
  ~Interpreter() override;

  void set_variable(const std::string& name, Value value) { variables_.insert_or_assign(name, std::move(value)); }
  // The rendered text. Errors say where in the template they arose.
  TextPtr render();

  Value call(const Value& callee, Arguments given) override;
  // The body of a macro or a call block, with `outer` around it.
  Value call_macro(const Statement& macro, Frame* outer, Arguments given);

 private:
  class FrameGuard;
  class LevelGuard;
  class OutputGuard;
  class TestedItems;
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  void enter(const Scope& scope, Frame& frame);
  Value& place(const Reference& reference);
  void assign(const Target& target, Value value);
  void check_namespaces(const Target& target);

  Flow block(const Block& body);
  Flow statement(const Statement& statement);
  Flow for_loop(const Statement& statement);
  bool for_items(const Statement& statement, const IteratorPtr& items, std::optional<int64_t> length);
  Flow if_else(const Statement& statement);
  Flow with(const Statement& statement);
  void output(const Statement& statement);
  Flow filter_block(const Statement& statement);
  Flow set_block(const Statement& statement);
  void call_block(const Statement& statement);
  Value make_macro(const Statement& statement);
  void bind_parameters(const Statement& macro, Arguments given);

  Value eval(const Expr& expr);
  Value eval_kind(const Expr& expr);
  Value name(const Expr& expr);
  Value items(const Expr& expr);
  Value dict(const Expr& expr);
  Value item(const Expr& expr);
  Value slice(const Expr& expr);
  Value concatenation(const Expr& expr);
  Value comparison(const Expr& expr);
  Value condition(const Expr& expr);
  Value call_expr(const Expr& expr, Value caller);
  // The filters of a block, on its text.
  Value filter_text(const Expr* expr, Value text);
  Arguments arguments(const CallArguments& call);

  const Template& template_;
  std::map<std::string, Value, std::less<>> variables_;
  std::vector<std::unique_ptr<Frame>> kept_;
  Frame* frame_ = nullptr;
  TextBuilder* out_ = nullptr;
  Position at_;
  uint32_t level_ = 0, macro_level_ = 0;
  bool is_constant_output_ = false;
};

}  // namespace nibble::jinja
