#include <algorithm>

#include "nibble/chat/interpreter.h"
#include "nibble/chat/interpreter_guards.h"
#include "nibble/chat/loop.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {

// The items of a loop with a condition. The condition sees the loop's names in a frame of its own.
class Interpreter::TestedItems final : public Iterator {
 public:
  TestedItems(Interpreter& interpreter, const Statement& statement, IteratorPtr items)
      : interpreter_(interpreter), statement_(statement), items_(std::move(items)) {
    frame_.outer = interpreter.frame_;
    hold(interpreter.budget, Value{ObjectPtr(items_)});
    interpreter_.enter(statement.scopes[2], frame_);
  }

  bool next(Run& run, Value* out) override {
    while (items_->next(run, out)) {
      Frame* const before = std::exchange(interpreter_.frame_, &frame_);
      const Restore restore{interpreter_, before};
      interpreter_.assign(statement_.targets[1], *out);
      if (truth(run, interpreter_.eval(*statement_.exprs[1]))) return true;
    }
    return false;
  }

 private:
  struct Restore {
    Interpreter& interpreter;
    Frame* before;
    ~Restore() { interpreter.frame_ = before; }
  };

  Interpreter& interpreter_;
  const Statement& statement_;
  IteratorPtr items_;
  Frame frame_;
};

Interpreter::Flow Interpreter::block(const Block& body) {
  for (const auto& each : body) {
    const Flow flow = statement(*each);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::statement(const Statement& statement) {
  const LevelGuard guard(*this);
  at_ = statement.at;
  switch (statement.kind) {
    case StatementKind::kOutput: output(statement); break;
    case StatementKind::kFor: return for_loop(statement);
    case StatementKind::kIf: return if_else(statement);
    case StatementKind::kMacro: place(statement.reference) = make_macro(statement); break;
    case StatementKind::kCallBlock: call_block(statement); break;
    case StatementKind::kFilterBlock: return filter_block(statement);
    case StatementKind::kWith: return with(statement);
    case StatementKind::kSet:
      check_namespaces(statement.targets.front());
      assign(statement.targets.front(), eval(*statement.exprs.front()));
      break;
    case StatementKind::kSetBlock: return set_block(statement);
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

void Interpreter::output(const Statement& statement) {
  for (const ExprPtr& expr : statement.exprs) {
    if (const Text* text = expr->constant.text()) {
      out_->add(*text);
      continue;
    }
    is_constant_output_ = expr->is_constant;
    const Value value = eval(*expr);
    is_constant_output_ = false;
    at_ = expr->at;
    append_text(*this, *out_, value);
  }
}

// Whether some round came to the end of the body: Jinja's `else` looks at that.
bool Interpreter::for_items(const Statement& statement, const IteratorPtr& items, std::optional<int64_t> length) {
  FrameGuard guard(*this, frame_);
  Frame& frame = guard.frame();
  const auto loop = statement.uses_loop ? std::make_shared<Loop>(items, length) : nullptr;
  struct Finish {
    Loop* loop;
    Frame& frame;
    ~Finish() {
      if (loop != nullptr) loop->finish();
      std::ranges::fill(frame.slots, Value{Missing{}});
    }
  } const finish{loop.get(), frame};
  bool completed = false;
  Value item;
  while (true) {
    guard.leave();
    const bool has_item = loop != nullptr ? loop->next(*this, &item) : items->next(*this, &item);
    guard.enter();
    if (!has_item) return completed;
    budget.step();
    enter(statement.scopes[0], frame);
    assign(statement.targets.front(), std::move(item));
    if (loop != nullptr) frame.slots[statement.loop.slot] = Value{ObjectPtr(loop)};
    const Flow flow = block(statement.blocks[0]);
    if (flow == Flow::kNext) completed = true;
    if (flow == Flow::kBreak) return completed;
  }
}

Interpreter::Flow Interpreter::for_loop(const Statement& statement) {
  const Value iterated = eval(*statement.exprs.front());
  at_ = statement.exprs.front()->at;
  const bool has_test = statement.exprs.size() > 1;
  IteratorPtr items = iterate(*this, iterated);
  const auto length = has_test ? std::nullopt : try_length(*this, iterated);
  if (has_test) items = std::make_shared<TestedItems>(*this, statement, std::move(items));
  const bool completed = for_items(statement, items, length);
  if (completed || !statement.has_else) return Flow::kNext;
  FrameGuard guard(*this, frame_);
  enter(statement.scopes[1], guard.frame());
  return block(statement.blocks[1]);
}

Interpreter::Flow Interpreter::if_else(const Statement& statement) {
  for (size_t i = 0; i < statement.exprs.size(); ++i) {
    if (truth(*this, eval(*statement.exprs[i]))) return block(statement.blocks[i]);
  }
  return statement.has_else ? block(statement.blocks.back()) : Flow::kNext;
}

Interpreter::Flow Interpreter::with(const Statement& statement) {
  FrameGuard guard(*this, frame_);
  enter(statement.scopes.front(), guard.frame());
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    guard.leave();
    Value value = eval(*statement.exprs[i]);
    guard.enter();
    assign(statement.targets[i], std::move(value));
  }
  return block(statement.blocks.front());
}

Interpreter::Flow Interpreter::filter_block(const Statement& statement) {
  FrameGuard guard(*this, frame_);
  enter(statement.scopes.front(), guard.frame());
  OutputGuard output(*this);
  const Flow flow = block(statement.blocks.front());
  output.leave();
  // A jump out of the block leaves what it has written behind.
  if (flow == Flow::kNext) append_text(*this, *out_, filter_text(statement.call.get(), output.finish()));
  return flow;
}

Interpreter::Flow Interpreter::set_block(const Statement& statement) {
  Value made;
  {
    FrameGuard guard(*this, frame_);
    enter(statement.scopes.front(), guard.frame());
    OutputGuard output(*this);
    const Flow flow = block(statement.blocks.front());
    if (flow != Flow::kNext) return flow;
    made = filter_text(statement.call.get(), output.finish());
  }
  check_namespaces(statement.targets.front());
  assign(statement.targets.front(), std::move(made));
  return Flow::kNext;
}

}  // namespace nibble::jinja
