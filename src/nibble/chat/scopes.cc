#include "nibble/chat/scopes.h"

#include <unordered_map>
#include <unordered_set>

#include "nibble/base/check.h"

namespace nibble::jinja {
namespace {

// The names of one frame. While the branches of an `if` are read, what each adds is kept in a layer of its own: a
// branch does not see the others.
class Symbols {
 public:
  Symbols(Scope& scope, const Symbols* outer) : scope_(scope), outer_(outer), layers_(1) {}

  void load(const std::string& name) {
    if (find(name) || (outer_ != nullptr && outer_->find_in_chain(name))) return;
    define(name, {Load::Kind::kVariable, name, {}});
  }

  void store(const std::string& name) {
    const bool is_new = !find(name);
    layers_.back().stores.insert(name);
    if (is_new) define(name, outside(name, Load::Kind::kUndefined));
  }

  uint32_t parameter(const std::string& name) {
    layers_.back().stores.insert(name);
    return define(name, {Load::Kind::kParameter, name, {}});
  }

  void begin_branch() { layers_.emplace_back(); }
  // All branches of an `if`, in order, which begin_branch began.
  struct Layer {
    std::unordered_map<std::string, Load> loads;
    std::unordered_set<std::string> stores;
  };
  Layer end_branch() {
    Layer layer = std::move(layers_.back());
    layers_.pop_back();
    return layer;
  }
  void merge(std::vector<Layer> branches) {
    std::unordered_set<std::string> stored;
    for (const Layer& branch : branches) {
      for (const std::string& name : branch.stores) {
        if (!is_stored(name)) stored.insert(name);
      }
    }
    for (Layer& branch : branches) {
      for (auto& [name, load] : branch.loads) layers_.back().loads.insert_or_assign(name, std::move(load));
      layers_.back().stores.merge(branch.stores);
    }
    // Whether the branch is taken is not known, so the value from outside has to be there.
    for (const std::string& name : stored) {
      layers_.back().loads.insert_or_assign(name, outside(name, Load::Kind::kVariable));
    }
  }

  // When everything has been read: what entering the frame does.
  void finish() {
    NIBBLE_CHECK(layers_.size() == 1);
    scope_.loads.resize(slots_.size());
    for (const auto& [name, load] : layers_.front().loads) scope_.loads[slots_.at(name)] = load;
  }

  Reference reference(const std::string& name) const {
    const auto found = find_in_chain(name);
    NIBBLE_CHECK(found.has_value());
    return *found;
  }

 private:
  bool find(const std::string& name) const {
    for (const Layer& layer : layers_) {
      if (layer.loads.contains(name)) return true;
    }
    return false;
  }
  bool is_stored(const std::string& name) const {
    for (const Layer& layer : layers_) {
      if (layer.stores.contains(name)) return true;
    }
    return false;
  }
  std::optional<Reference> find_in_chain(const std::string& name) const {
    uint32_t hops = 0;
    for (const Symbols* at = this; at != nullptr; at = at->outer_, ++hops) {
      if (at->find(name)) return Reference{hops, at->slots_.at(name)};
    }
    return std::nullopt;
  }
  Load outside(const std::string& name, Load::Kind otherwise) const {
    if (outer_ != nullptr) {
      if (const auto found = outer_->find_in_chain(name)) return {Load::Kind::kAlias, name, *found};
    }
    return {otherwise, name, {}};
  }
  uint32_t define(const std::string& name, Load load) {
    const auto slot = slots_.try_emplace(name, static_cast<uint32_t>(slots_.size())).first->second;
    layers_.back().loads.insert_or_assign(name, std::move(load));
    return slot;
  }

  Scope& scope_;
  const Symbols* outer_;
  std::vector<Layer> layers_;
  std::unordered_map<std::string, uint32_t> slots_;
};

// Reads what belongs to one frame: names of expressions, assignments, but not the blocks of nested frames.
class Collector {
 public:
  explicit Collector(Symbols& symbols) : symbols_(symbols) {}

  void block(const Block& body) {
    for (const auto& statement : body) this->statement(*statement);
  }

  void expr(const Expr& expr) {
    if (expr.kind == ExprKind::kName) symbols_.load(expr.name);
    for (const ExprPtr& child : expr.children) this->expr(*child);
    for (const ExprPtr& argument : expr.call.positional) this->expr(*argument);
    for (const auto& [name, argument] : expr.call.named) this->expr(*argument);
    if (expr.call.more_positional != nullptr) this->expr(*expr.call.more_positional);
    if (expr.call.more_named != nullptr) this->expr(*expr.call.more_named);
  }

  void target(const Target& target, bool is_parameter) {
    if (target.kind == Target::Kind::kAttribute) return symbols_.load(target.name);
    for (const Target& part : target.parts) this->target(part, is_parameter);
    if (target.kind == Target::Kind::kTuple) return;
    if (is_parameter) {
      symbols_.parameter(target.name);
    } else {
      symbols_.store(target.name);
    }
  }

 private:
  void statement(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kOutput:
      case StatementKind::kWith:
        for (const ExprPtr& each : statement.exprs) expr(*each);
        break;
      case StatementKind::kFor: expr(*statement.exprs.front()); break;
      case StatementKind::kIf: branches(statement); break;
      case StatementKind::kMacro: symbols_.store(statement.name); break;
      case StatementKind::kCallBlock:
      case StatementKind::kFilterBlock:
        if (statement.call != nullptr) expr(*statement.call);
        break;
      case StatementKind::kSet:
        expr(*statement.exprs.front());
        target(statement.targets.front(), false);
        break;
      case StatementKind::kSetBlock: target(statement.targets.front(), false); break;
      case StatementKind::kBreak:
      case StatementKind::kContinue: break;
    }
  }

  // Three of them, whatever is there: what the first test guards, all others that have a test, and what else.
  void branches(const Statement& statement) {
    expr(*statement.exprs.front());
    std::vector<Symbols::Layer> layers;
    symbols_.begin_branch();
    block(statement.blocks.front());
    layers.push_back(symbols_.end_branch());
    symbols_.begin_branch();
    for (size_t i = 1; i < statement.exprs.size(); ++i) {
      // Each counts as an `if` without an `else`.
      expr(*statement.exprs[i]);
      symbols_.begin_branch();
      block(statement.blocks[i]);
      std::vector<Symbols::Layer> inner;
      inner.push_back(symbols_.end_branch());
      symbols_.merge(std::move(inner));
    }
    layers.push_back(symbols_.end_branch());
    symbols_.begin_branch();
    if (statement.has_else) block(statement.blocks.back());
    layers.push_back(symbols_.end_branch());
    symbols_.merge(std::move(layers));
  }

  Symbols& symbols_;
};

// Writes references into the tree, frame by frame from the outside in.
class Resolver {
 public:
  void block(Block& body, const Symbols& symbols) {
    for (const auto& statement : body) this->statement(*statement, symbols);
  }

 private:
  void expr(Expr& expr, const Symbols& symbols) {
    if (expr.kind == ExprKind::kName) expr.reference = symbols.reference(expr.name);
    for (const ExprPtr& child : expr.children) this->expr(*child, symbols);
    for (const ExprPtr& argument : expr.call.positional) this->expr(*argument, symbols);
    for (const auto& [name, argument] : expr.call.named) this->expr(*argument, symbols);
    if (expr.call.more_positional != nullptr) this->expr(*expr.call.more_positional, symbols);
    if (expr.call.more_named != nullptr) this->expr(*expr.call.more_named, symbols);
  }

  void target(Target& target, const Symbols& symbols) {
    if (target.kind != Target::Kind::kTuple) target.reference = symbols.reference(target.name);
    for (Target& part : target.parts) this->target(part, symbols);
  }

  // The one body of `statement`, in a frame of its own.
  Symbols inner(Statement& statement, const Symbols& outer) {
    statement.scopes.resize(1);
    return {statement.scopes.front(), &outer};
  }
  void finish_body(Statement& statement, Symbols& symbols) {
    Collector(symbols).block(statement.blocks.front());
    if (statement.kind == StatementKind::kFilterBlock) Collector(symbols).expr(*statement.call);
    symbols.finish();
    block(statement.blocks.front(), symbols);
  }

  void statement(Statement& statement, const Symbols& symbols) {
    switch (statement.kind) {
      case StatementKind::kFor: return for_loop(statement, symbols);
      case StatementKind::kMacro:
        statement.reference = symbols.reference(statement.name);
        return macro(statement, symbols);
      case StatementKind::kCallBlock:
        if (statement.call != nullptr) expr(*statement.call, symbols);
        return macro(statement, symbols);
      case StatementKind::kFilterBlock: {
        Symbols own = inner(statement, symbols);
        finish_body(statement, own);
        return expr(*statement.call, own);
      }
      case StatementKind::kSetBlock: {
        target(statement.targets.front(), symbols);
        Symbols own = inner(statement, symbols);
        finish_body(statement, own);
        if (statement.call != nullptr) set_filters(statement, own);
        return;
      }
      case StatementKind::kWith: {
        for (const ExprPtr& value : statement.exprs) expr(*value, symbols);
        Symbols own = inner(statement, symbols);
        for (const Target& each : statement.targets) Collector(own).target(each, true);
        finish_body(statement, own);
        for (Target& each : statement.targets) target(each, own);
        return;
      }
      default:
        for (const ExprPtr& each : statement.exprs) expr(*each, symbols);
        for (Target& each : statement.targets) target(each, symbols);
        for (Block& each : statement.blocks) block(each, symbols);
    }
  }

  // Names in the filters of a set block belong to nobody unless its body has them, too.
  void set_filters(Statement& statement, Symbols& own) {
    Collector(own).expr(*statement.call);
    own.finish();
    expr(*statement.call, own);
  }

  void for_loop(Statement& statement, const Symbols& symbols) {
    expr(*statement.exprs.front(), symbols);
    statement.scopes.resize(3);
    Symbols body(statement.scopes[0], &symbols);
    if (statement.uses_loop) statement.loop = {0, body.parameter("loop")};
    Collector(body).target(statement.targets.front(), true);
    Collector(body).block(statement.blocks[0]);
    body.finish();
    block(statement.blocks[0], body);
    Symbols otherwise(statement.scopes[1], &symbols);
    Collector(otherwise).block(statement.blocks[1]);
    otherwise.finish();
    block(statement.blocks[1], otherwise);
    Symbols test(statement.scopes[2], &symbols);
    Collector(test).target(statement.targets.front(), true);
    if (statement.exprs.size() > 1) {
      Collector(test).expr(*statement.exprs[1]);
      expr(*statement.exprs[1], test);
    }
    test.finish();
    // The same names in both frames, each at its place.
    statement.targets.push_back(statement.targets.front());
    target(statement.targets[0], body);
    target(statement.targets[1], test);
  }

  void macro(Statement& statement, const Symbols& symbols) {
    Symbols own = inner(statement, symbols);
    for (Parameter& parameter : statement.parameters) parameter.reference = {0, own.parameter(parameter.name)};
    for (const Parameter& parameter : statement.parameters) {
      if (parameter.otherwise != nullptr) Collector(own).expr(*parameter.otherwise);
    }
    const auto special = [&own](bool is_used, const char* name) {
      return is_used ? Reference{0, own.parameter(name)} : Reference{};
    };
    statement.caller = special(statement.uses_caller, "caller");
    statement.kwargs = special(statement.uses_kwargs, "kwargs");
    statement.varargs = special(statement.uses_varargs, "varargs");
    finish_body(statement, own);
    for (const Parameter& parameter : statement.parameters) {
      if (parameter.otherwise != nullptr) expr(*parameter.otherwise, own);
    }
  }
};

}  // namespace

void resolve_names(Template& made) {
  Symbols symbols(made.scope, nullptr);
  Collector(symbols).block(made.body);
  symbols.finish();
  Resolver().block(made.body, symbols);
}

}  // namespace nibble::jinja
